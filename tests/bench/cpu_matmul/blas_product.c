// Median time of OpenBLAS's sgemm, in microseconds.
//   blas_product LIBRARY THREADS M K N TRANSPOSE_A TRANSPOSE_B CALLS REPEATS
// Each of REPEATS times is that of CALLS products, divided by them. The library is opened at run
// time, so that nothing is linked to it.
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>

#include "timing.h"

typedef void (*Sgemm)(int, int, int, int, int, int, float, const float*, int, const float*, int,
                      float, float*, int);

int main(int argc, char** argv) {
  if (argc != 10) return 2;
  int v[8];
  for (int i = 0; i < 8; ++i) v[i] = atoi(argv[2 + i]);
  const int m = v[1], k = v[2], n = v[3], calls = v[6], repeats = v[7];
  void* library = dlopen(argv[1], RTLD_NOW);
  if (library == NULL) {
    fprintf(stderr, "%s\n", dlerror());
    return 1;
  }
  Sgemm sgemm = (Sgemm)dlsym(library, "cblas_sgemm");
  ((void (*)(int))dlsym(library, "openblas_set_num_threads"))(v[0]);
  const float* a = random_floats((size_t)m * k);
  const float* b = random_floats((size_t)k * n);
  float* y = random_floats((size_t)m * n);
  double* us = malloc((size_t)repeats * sizeof(double));
  for (int r = -1; r < repeats; ++r) {  // the first is warm-up
    const double start = now_us();
    for (int i = 0; i < calls; ++i)
      sgemm(101, v[4] ? 112 : 111, v[5] ? 112 : 111, m, n, k, 1.0f, a, v[4] ? m : k, b,
            v[5] ? k : n, 0.0f, y, n);
    if (r >= 0) us[r] = (now_us() - start) / calls;
  }
  qsort(us, (size_t)repeats, sizeof(double), compare);
  printf("%.3f\n", us[repeats / 2]);
  return 0;
}
