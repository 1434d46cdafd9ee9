#include "opencl.h"

#include <dlfcn.h>

#include <string>

#include "netcl_plugin.hpp"

using netcl::plugin::Failure;

namespace {

template <typename Function>
void find(void* library, const char* name, Function* out) {
  *out = reinterpret_cast<Function>(dlsym(library, name));
  if (*out == nullptr) throw Failure(NETCL_E_DEVICE, std::string("libOpenCL has no ") + name);
}

}  // namespace

OpenCl open_opencl() {
  // netcl has it open, so this finds the same one; it stays open as long as the process lives.
  void* library = dlopen("libOpenCL.so.1", RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) throw Failure(NETCL_E_DEVICE, dlerror());
  OpenCl out{};
  find(library, "clCreateCommandQueue", &out.create_queue);
  find(library, "clReleaseCommandQueue", &out.release_queue);
  find(library, "clCreateBuffer", &out.create_buffer);
  find(library, "clReleaseMemObject", &out.release_buffer);
  find(library, "clEnqueueReadBuffer", &out.read);
  find(library, "clEnqueueWriteBuffer", &out.write);
  find(library, "clWaitForEvents", &out.wait);
  find(library, "clRetainEvent", &out.retain_event);
  find(library, "clReleaseEvent", &out.release_event);
  return out;
}

void check_opencl(int32_t code, const char* call) {
  if (code != 0)
    throw Failure(NETCL_E_DEVICE,
                  std::string(call) + " failed with OpenCL error " + std::to_string(code), code);
}
