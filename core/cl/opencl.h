// The one include of CLHPP in core, and the translation of its errors.
#ifndef NETCL_CORE_CL_OPENCL_H_
#define NETCL_CORE_CL_OPENCL_H_

#include <CL/opencl.hpp>
#include <string>
#include <utility>

#include "core/base/error.h"

namespace netcl {

// "CL_OUT_OF_RESOURCES", or "OpenCL error -1234".
std::string cl_error_name(cl_int code);

// Runs `body`; an OpenCL error becomes netcl::Error{kDevice} that says what was being done, which
// OpenCL call failed and how.
template <typename Body>
auto with_cl_errors(const std::string& what, Body&& body) -> decltype(body()) {
  try {
    return body();
  } catch (const cl::Error& e) {
    fail(ErrorCode::kDevice, what, ": ", e.what(), " failed with ", cl_error_name(e.err()));
  }
}

}  // namespace netcl

#endif  // NETCL_CORE_CL_OPENCL_H_
