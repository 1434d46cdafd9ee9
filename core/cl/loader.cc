#include "core/cl/loader.h"

#include <CL/cl.h>
#include <dlfcn.h>

#include <atomic>
#include <mutex>

#include "core/base/error.h"

namespace netcl::cl_loader {

namespace {

constexpr const char* kLibrary = "libOpenCL.so.1";

std::atomic<bool>& open_flag() {
  static std::atomic<bool> flag{false};
  return flag;
}

// The handle stays open for the life of the process: drivers do not survive dlclose.
void* library() {
  static std::mutex mutex;
  static void* handle = nullptr;
  const std::lock_guard<std::mutex> lock(mutex);
  if (handle != nullptr) return handle;
  handle = ::dlopen(kLibrary, RTLD_NOW | RTLD_LOCAL);
  if (handle == nullptr) {
    const char* reason = ::dlerror();
    fail(ErrorCode::kDevice, "OpenCL cannot be used: ", reason != nullptr ? reason : kLibrary,
         ". Install an OpenCL ICD loader (Debian: ocl-icd-libopencl1) and the driver of a device "
         "(for a CPU: pocl-opencl-icd)");
  }
  open_flag() = true;
  return handle;
}

void* resolve(const char* name) {
  void* address = ::dlsym(library(), name);
  NETCL_CHECK(address != nullptr, ErrorCode::kDevice, kLibrary, " lacks the function ", name,
              "; OpenCL 1.2 or newer is needed");
  return address;
}

}  // namespace

void require_opencl() { library(); }
bool opencl_is_open() { return open_flag(); }

}  // namespace netcl::cl_loader

// One definition per entry point that core uses; a missing one is an undefined symbol at link time.
#define NETCL_FORWARD(result, name, params, args)                              \
  extern "C" result name params {                                              \
    static const auto function =                                               \
        reinterpret_cast<decltype(&::name)>(netcl::cl_loader::resolve(#name)); \
    return function args;                                                      \
  }

NETCL_FORWARD(cl_int, clGetPlatformIDs, (cl_uint n, cl_platform_id* p, cl_uint* out), (n, p, out))
NETCL_FORWARD(cl_int, clGetPlatformInfo,
              (cl_platform_id p, cl_platform_info i, size_t n, void* v, size_t* out),
              (p, i, n, v, out))
NETCL_FORWARD(cl_int, clGetDeviceIDs,
              (cl_platform_id p, cl_device_type t, cl_uint n, cl_device_id* d, cl_uint* out),
              (p, t, n, d, out))
NETCL_FORWARD(cl_int, clGetDeviceInfo,
              (cl_device_id d, cl_device_info i, size_t n, void* v, size_t* out), (d, i, n, v, out))
NETCL_FORWARD(cl_int, clCreateSubDevices,
              (cl_device_id d, const cl_device_partition_property* p, cl_uint n, cl_device_id* v,
               cl_uint* out),
              (d, p, n, v, out))
NETCL_FORWARD(cl_int, clRetainDevice, (cl_device_id d), (d))
NETCL_FORWARD(cl_int, clReleaseDevice, (cl_device_id d), (d))
NETCL_FORWARD(cl_context, clCreateContext,
              (const cl_context_properties* p, cl_uint n, const cl_device_id* d,
               void (*f)(const char*, const void*, size_t, void*), void* u, cl_int* e),
              (p, n, d, f, u, e))
NETCL_FORWARD(cl_int, clRetainContext, (cl_context c), (c))
NETCL_FORWARD(cl_int, clReleaseContext, (cl_context c), (c))
NETCL_FORWARD(cl_int, clGetContextInfo,
              (cl_context c, cl_context_info i, size_t n, void* v, size_t* out), (c, i, n, v, out))
NETCL_FORWARD(cl_command_queue, clCreateCommandQueueWithProperties,
              (cl_context c, cl_device_id d, const cl_queue_properties* p, cl_int* e), (c, d, p, e))
NETCL_FORWARD(cl_int, clRetainCommandQueue, (cl_command_queue q), (q))
NETCL_FORWARD(cl_int, clGetCommandQueueInfo,
              (cl_command_queue q, cl_command_queue_info i, size_t n, void* v, size_t* out),
              (q, i, n, v, out))
NETCL_FORWARD(cl_int, clReleaseCommandQueue, (cl_command_queue q), (q))
NETCL_FORWARD(cl_mem, clCreateBuffer, (cl_context c, cl_mem_flags f, size_t n, void* p, cl_int* e),
              (c, f, n, p, e))
NETCL_FORWARD(cl_mem, clCreateSubBuffer,
              (cl_mem m, cl_mem_flags f, cl_buffer_create_type t, const void* i, cl_int* e),
              (m, f, t, i, e))
NETCL_FORWARD(cl_int, clRetainMemObject, (cl_mem m), (m))
NETCL_FORWARD(cl_int, clReleaseMemObject, (cl_mem m), (m))
NETCL_FORWARD(cl_int, clGetMemObjectInfo, (cl_mem m, cl_mem_info i, size_t n, void* v, size_t* out),
              (m, i, n, v, out))
NETCL_FORWARD(cl_program, clCreateProgramWithSource,
              (cl_context c, cl_uint n, const char** s, const size_t* l, cl_int* e),
              (c, n, s, l, e))
NETCL_FORWARD(cl_program, clCreateProgramWithBinary,
              (cl_context c, cl_uint n, const cl_device_id* d, const size_t* l,
               const unsigned char** b, cl_int* s, cl_int* e),
              (c, n, d, l, b, s, e))
NETCL_FORWARD(cl_int, clBuildProgram,
              (cl_program p, cl_uint n, const cl_device_id* d, const char* o,
               void (*f)(cl_program, void*), void* u),
              (p, n, d, o, f, u))
NETCL_FORWARD(cl_int, clGetProgramInfo,
              (cl_program p, cl_program_info i, size_t n, void* v, size_t* out), (p, i, n, v, out))
NETCL_FORWARD(cl_int, clGetProgramBuildInfo,
              (cl_program p, cl_device_id d, cl_program_build_info i, size_t n, void* v,
               size_t* out),
              (p, d, i, n, v, out))
NETCL_FORWARD(cl_int, clRetainProgram, (cl_program p), (p))
NETCL_FORWARD(cl_int, clReleaseProgram, (cl_program p), (p))
NETCL_FORWARD(cl_kernel, clCreateKernel, (cl_program p, const char* n, cl_int* e), (p, n, e))
NETCL_FORWARD(cl_int, clRetainKernel, (cl_kernel k), (k))
NETCL_FORWARD(cl_int, clReleaseKernel, (cl_kernel k), (k))
NETCL_FORWARD(cl_int, clSetKernelArg, (cl_kernel k, cl_uint i, size_t n, const void* v),
              (k, i, n, v))
NETCL_FORWARD(cl_int, clGetKernelInfo,
              (cl_kernel k, cl_kernel_info i, size_t n, void* v, size_t* out), (k, i, n, v, out))
NETCL_FORWARD(cl_int, clGetKernelWorkGroupInfo,
              (cl_kernel k, cl_device_id d, cl_kernel_work_group_info i, size_t n, void* v,
               size_t* out),
              (k, d, i, n, v, out))
NETCL_FORWARD(cl_int, clEnqueueNDRangeKernel,
              (cl_command_queue q, cl_kernel k, cl_uint d, const size_t* o, const size_t* g,
               const size_t* l, cl_uint n, const cl_event* w, cl_event* e),
              (q, k, d, o, g, l, n, w, e))
NETCL_FORWARD(cl_int, clEnqueueReadBuffer,
              (cl_command_queue q, cl_mem m, cl_bool b, size_t o, size_t s, void* p, cl_uint n,
               const cl_event* w, cl_event* e),
              (q, m, b, o, s, p, n, w, e))
NETCL_FORWARD(cl_int, clEnqueueWriteBuffer,
              (cl_command_queue q, cl_mem m, cl_bool b, size_t o, size_t s, const void* p,
               cl_uint n, const cl_event* w, cl_event* e),
              (q, m, b, o, s, p, n, w, e))
NETCL_FORWARD(cl_int, clEnqueueCopyBuffer,
              (cl_command_queue q, cl_mem a, cl_mem b, size_t i, size_t j, size_t s, cl_uint n,
               const cl_event* w, cl_event* e),
              (q, a, b, i, j, s, n, w, e))
NETCL_FORWARD(cl_int, clEnqueueFillBuffer,
              (cl_command_queue q, cl_mem m, const void* p, size_t ps, size_t o, size_t s,
               cl_uint n, const cl_event* w, cl_event* e),
              (q, m, p, ps, o, s, n, w, e))
NETCL_FORWARD(void*, clEnqueueMapBuffer,
              (cl_command_queue q, cl_mem m, cl_bool b, cl_map_flags f, size_t o, size_t s,
               cl_uint n, const cl_event* w, cl_event* e, cl_int* err),
              (q, m, b, f, o, s, n, w, e, err))
NETCL_FORWARD(cl_int, clEnqueueUnmapMemObject,
              (cl_command_queue q, cl_mem m, void* p, cl_uint n, const cl_event* w, cl_event* e),
              (q, m, p, n, w, e))
NETCL_FORWARD(cl_int, clEnqueueMarkerWithWaitList,
              (cl_command_queue q, cl_uint n, const cl_event* w, cl_event* e), (q, n, w, e))
NETCL_FORWARD(cl_int, clWaitForEvents, (cl_uint n, const cl_event* e), (n, e))
NETCL_FORWARD(cl_int, clGetEventInfo, (cl_event v, cl_event_info i, size_t n, void* p, size_t* out),
              (v, i, n, p, out))
NETCL_FORWARD(cl_int, clGetEventProfilingInfo,
              (cl_event v, cl_profiling_info i, size_t n, void* p, size_t* out), (v, i, n, p, out))
NETCL_FORWARD(cl_int, clRetainEvent, (cl_event e), (e))
NETCL_FORWARD(cl_int, clReleaseEvent, (cl_event e), (e))
NETCL_FORWARD(cl_int, clFlush, (cl_command_queue q), (q))
NETCL_FORWARD(cl_int, clFinish, (cl_command_queue q), (q))
