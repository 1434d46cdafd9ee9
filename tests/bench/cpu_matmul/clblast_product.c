// Median time of CLBlast's single-precision product on the first CPU device, in microseconds.
//   clblast_product M K N TRANSPOSE_A TRANSPOSE_B CALLS REPEATS [NAME=VALUE ...]
// Each of REPEATS times is that of CALLS products, divided by them. NAME=VALUE: parameters of the
// kernel Xgemm as clblast_tuner_xgemm prints them; then the product goes through that kernel,
// whatever its size, else the way that the library chooses.
#define CL_TARGET_OPENCL_VERSION 120
#include <CL/cl.h>
#include <clblast_c.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "timing.h"

enum { kPlatforms = 16, kParameters = 32 };

static void require(int ok, const char* what, int status) {
  if (ok) return;
  fprintf(stderr, "clblast_product: %s: status %d\n", what, status);
  exit(1);
}

static cl_mem random_buffer(cl_context context, size_t count) {
  float* values = random_floats(count);
  cl_int status = 0;
  cl_mem out = clCreateBuffer(context, CL_MEM_COPY_HOST_PTR, count * sizeof(float), values, &status);
  require(status == CL_SUCCESS, "buffer", status);
  free(values);
  return out;
}

static void use_parameters(cl_device_id device, int count, char** settings) {
  const char* names[kParameters];
  size_t values[kParameters];
  require(count <= kParameters, "parameters", count);
  for (int i = 0; i < count; ++i) {
    char* sign = strchr(settings[i], '=');
    require(sign != NULL, settings[i], 0);
    *sign = '\0';
    names[i] = settings[i];
    values[i] = (size_t)atoi(sign + 1);
  }
  CLBlastStatusCode status = CLBlastOverrideParameters(device, "Xgemm", CLBlastPrecisionSingle,
                                                       (size_t)count, names, values);
  require(status == CLBlastSuccess, "parameters of Xgemm", status);
  const char* smallest = "XGEMM_MIN_INDIRECT_SIZE";
  const size_t always = 0;
  status = CLBlastOverrideParameters(device, "GemmRoutine", CLBlastPrecisionSingle, 1, &smallest,
                                     &always);
  require(status == CLBlastSuccess, "parameters of GemmRoutine", status);
}

int main(int argc, char** argv) {
  if (argc < 8) return 2;
  size_t v[7];
  for (int i = 0; i < 7; ++i) v[i] = (size_t)atoi(argv[1 + i]);
  const size_t m = v[0], k = v[1], n = v[2], calls = v[5], repeats = v[6];
  cl_platform_id platforms[kPlatforms];
  cl_uint platform_count = 0;
  cl_device_id device = NULL;
  clGetPlatformIDs(kPlatforms, platforms, &platform_count);
  for (cl_uint i = 0; i < platform_count && device == NULL; ++i)
    if (clGetDeviceIDs(platforms[i], CL_DEVICE_TYPE_CPU, 1, &device, NULL) != CL_SUCCESS)
      device = NULL;
  require(device != NULL, "no OpenCL CPU device", 0);
  cl_int status = 0;
  cl_context context = clCreateContext(NULL, 1, &device, NULL, NULL, &status);
  require(status == CL_SUCCESS, "context", status);
  cl_command_queue queue = clCreateCommandQueue(context, device, 0, &status);
  require(status == CL_SUCCESS, "queue", status);
  if (argc > 8) use_parameters(device, argc - 8, argv + 8);
  cl_mem a = random_buffer(context, m * k), b = random_buffer(context, k * n);
  cl_mem y = random_buffer(context, m * n);
  double* us = malloc(repeats * sizeof(double));
  for (size_t r = 0; r <= repeats; ++r) {  // the first is warm-up
    const double start = now_us();
    for (size_t i = 0; i < calls; ++i) {
      const CLBlastStatusCode done = CLBlastSgemm(
          CLBlastLayoutRowMajor, v[3] ? CLBlastTransposeYes : CLBlastTransposeNo,
          v[4] ? CLBlastTransposeYes : CLBlastTransposeNo, m, n, k, 1.0f, a, 0, v[3] ? m : k, b, 0,
          v[4] ? k : n, 0.0f, y, 0, n, &queue, NULL);
      require(done == CLBlastSuccess, "product", done);
    }
    clFinish(queue);
    if (r > 0) us[r - 1] = (now_us() - start) / (double)calls;
  }
  qsort(us, repeats, sizeof(double), compare);
  printf("%.3f\n", us[repeats / 2]);
  return 0;
}
