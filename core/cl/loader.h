// Opens the OpenCL ICD loader at run time.
//
// netcl is not linked against libOpenCL: the supervisor never needs it, and on a machine without it
// every command must answer with a sentence instead of the dynamic linker's error. loader.cc
// defines the OpenCL entry points that core uses and forwards them to libOpenCL.so.1, which is
// opened at the first call.
#ifndef NETCL_CORE_CL_LOADER_H_
#define NETCL_CORE_CL_LOADER_H_

namespace netcl::cl_loader {

// Opens the library if it is not open yet. Errors: kDevice, with what to install. Threads: any.
void require_opencl();

// True if require_opencl() has succeeded in this process.
bool opencl_is_open();

}  // namespace netcl::cl_loader

#endif  // NETCL_CORE_CL_LOADER_H_
