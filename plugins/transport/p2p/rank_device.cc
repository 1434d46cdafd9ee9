#include "plugins/transport/p2p/rank_device.h"

#include <fstream>
#include <iterator>

#include "core/abi/netcl_plugin.hpp"

namespace netcl::p2p_transport {

using plugin::Failure;

namespace {

struct DTypeFacts {
  uint32_t dtype;
  const char* name;
  size_t bytes;
};
constexpr DTypeFacts kTypes[] = {{NETCL_F32, "f32", 4},   {NETCL_F16, "f16", 2},
                                 {NETCL_BF16, "bf16", 2}, {NETCL_I32, "i32", 4},
                                 {NETCL_I64, "i64", 8},   {NETCL_U8, "u8", 1}};

std::string read_text(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) throw Failure(NETCL_E_STATE, "p2p transport: cannot read " + path);
  return {std::istreambuf_iterator<char>(file), {}};
}

std::string build_log(cl_program program, cl_device_id device) {
  size_t size = 0;
  clGetProgramBuildInfo(program, device, CL_PROGRAM_BUILD_LOG, 0, nullptr, &size);
  std::string log(size, '\0');
  clGetProgramBuildInfo(program, device, CL_PROGRAM_BUILD_LOG, size, log.data(), nullptr);
  return log;
}

}  // namespace

void check_cl(cl_int code, const char* call) {
  if (code == CL_SUCCESS) return;
  throw Failure(
      NETCL_E_DEVICE,
      std::string("p2p transport: ") + call + " failed with OpenCL error " + std::to_string(code),
      code);
}

size_t element_bytes(uint32_t dtype) {
  for (const DTypeFacts& facts : kTypes) {
    if (facts.dtype == dtype) return facts.bytes;
  }
  return 0;
}

RankDevice::RankDevice(cl_context context, cl_device_id device, std::string kernels,
                       uint32_t n_ranks)
    : context_(context), device_(device), kernels_(std::move(kernels)), n_ranks_(n_ranks) {
  cl_int code = CL_SUCCESS;
  queue_ = clCreateCommandQueue(context_, device_, 0, &code);
  check_cl(code, "clCreateCommandQueue");
  clRetainContext(context_);
  try {
    kernel(NETCL_F32, NETCL_SUM);  // what training needs, so that no step waits for a compiler
  } catch (...) {
    clReleaseCommandQueue(queue_);
    clReleaseContext(context_);
    throw;
  }
}

RankDevice::~RankDevice() {
  for (const auto& [key, kernel] : built_) clReleaseKernel(kernel);
  clReleaseCommandQueue(queue_);
  clReleaseContext(context_);
}

cl_kernel RankDevice::kernel(uint32_t dtype, uint32_t redop) {
  const auto found = built_.find({dtype, redop});
  if (found != built_.end()) return found->second;
  return built_[{dtype, redop}] = build(dtype, redop);
}

cl_kernel RankDevice::build(uint32_t dtype, uint32_t redop) const {
  std::string options = "-DRANKS=" + std::to_string(n_ranks_) + " -DOP=" + std::to_string(redop);
  for (const DTypeFacts& facts : kTypes) {
    if (facts.dtype == dtype) options += std::string(" -DDTYPE=") + facts.name;
  }
  const std::string source =
      read_text(kernels_ + "/storage.cl") + read_text(kernels_ + "/reduce_ranks.cl");
  const char* text = source.c_str();
  cl_int code = CL_SUCCESS;
  cl_program program = clCreateProgramWithSource(context_, 1, &text, nullptr, &code);
  check_cl(code, "clCreateProgramWithSource");
  code = clBuildProgram(program, 1, &device_, options.c_str(), nullptr, nullptr);
  if (code != CL_SUCCESS) {
    const std::string log = build_log(program, device_);
    clReleaseProgram(program);
    throw Failure(NETCL_E_DEVICE, "p2p transport: building reduce_ranks.cl with " + options +
                                      " failed with OpenCL error " + std::to_string(code) + ": " +
                                      log);
  }
  cl_kernel kernel = clCreateKernel(program, "reduce_ranks_p2p_part", &code);
  clReleaseProgram(program);
  check_cl(code, "clCreateKernel");
  return kernel;
}

}  // namespace netcl::p2p_transport
