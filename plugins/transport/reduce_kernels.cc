#include "plugins/transport/reduce_kernels.h"

#include <fstream>
#include <iterator>

#include "core/abi/netcl_plugin.hpp"

namespace netcl::transport {

using plugin::Failure;

namespace {

constexpr size_t kLocal = 64;

struct DTypeFacts {
  uint32_t dtype;
  const char* name;
  size_t bytes;
};
constexpr DTypeFacts kTypes[] = {{NETCL_F32, "f32", 4},   {NETCL_F16, "f16", 2},
                                 {NETCL_BF16, "bf16", 2}, {NETCL_I32, "i32", 4},
                                 {NETCL_I64, "i64", 8},   {NETCL_U8, "u8", 1}};

void check(cl_int code, const char* call) {
  if (code == CL_SUCCESS) return;
  throw Failure(
      NETCL_E_DEVICE,
      std::string("reduce_ranks.cl: ") + call + " failed with OpenCL error " + std::to_string(code),
      code);
}

std::string read_text(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) throw Failure(NETCL_E_STATE, "cannot read " + path);
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

size_t reduced_element_bytes(uint32_t dtype) {
  for (const DTypeFacts& facts : kTypes) {
    if (facts.dtype == dtype) return facts.bytes;
  }
  return 0;
}

ReduceKernels::ReduceKernels(cl_context context, cl_device_id device, std::string directory,
                             uint32_t n_ranks)
    : context_(context), device_(device), directory_(std::move(directory)), n_ranks_(n_ranks) {
  check(clGetDeviceInfo(device_, CL_DEVICE_SINGLE_FP_CONFIG, sizeof(precision_), &precision_,
                        nullptr),
        "clGetDeviceInfo");
  kernel(NETCL_F32, NETCL_SUM);
  clRetainContext(context_);
}

ReduceKernels::~ReduceKernels() {
  for (const auto& [key, kernel] : built_) clReleaseKernel(kernel);
  clReleaseContext(context_);
}

bool ReduceKernels::is_exact(uint32_t dtype, uint32_t redop) const {
  const bool is_float = dtype == NETCL_F32 || dtype == NETCL_F16 || dtype == NETCL_BF16;
  if (!is_float) return true;
  if ((precision_ & CL_FP_DENORM) == 0) return false;
  return redop != NETCL_MEAN || (precision_ & CL_FP_CORRECTLY_ROUNDED_DIVIDE_SQRT) != 0;
}

cl_kernel ReduceKernels::kernel(uint32_t dtype, uint32_t redop) {
  const auto found = built_.find({dtype, redop});
  if (found != built_.end()) return found->second;
  return built_[{dtype, redop}] = build(dtype, redop);
}

cl_kernel ReduceKernels::build(uint32_t dtype, uint32_t redop) const {
  std::string options = "-DRANKS=" + std::to_string(n_ranks_) + " -DOP=" + std::to_string(redop);
  for (const DTypeFacts& facts : kTypes) {
    if (facts.dtype == dtype) options += std::string(" -DDTYPE=") + facts.name;
  }
  if ((precision_ & CL_FP_CORRECTLY_ROUNDED_DIVIDE_SQRT) != 0) {
    options += " -cl-fp32-correctly-rounded-divide-sqrt";
  }
  const std::string source =
      read_text(directory_ + "/storage.cl") + read_text(directory_ + "/reduce_ranks.cl");
  const char* text = source.c_str();
  cl_int code = CL_SUCCESS;
  cl_program program = clCreateProgramWithSource(context_, 1, &text, nullptr, &code);
  check(code, "clCreateProgramWithSource");
  code = clBuildProgram(program, 1, &device_, options.c_str(), nullptr, nullptr);
  if (code != CL_SUCCESS) {
    const std::string log = build_log(program, device_);
    clReleaseProgram(program);
    throw Failure(NETCL_E_DEVICE, "building reduce_ranks.cl with " + options +
                                      " failed with OpenCL error " + std::to_string(code) + ": " +
                                      log);
  }
  cl_kernel kernel = clCreateKernel(program, "reduce_ranks_p2p_part", &code);
  clReleaseProgram(program);
  check(code, "clCreateKernel");
  return kernel;
}

cl_event ReduceKernels::enqueue(cl_command_queue queue, uint32_t dtype, uint32_t redop,
                                const std::vector<ReduceInput>& inputs, cl_mem out, uint64_t first,
                                uint64_t count, const std::vector<cl_event>& after) {
  cl_kernel kernel = this->kernel(dtype, redop);
  cl_uint arg = 0;
  const auto set = [&](const auto& value) {
    check(clSetKernelArg(kernel, arg++, sizeof(value), &value), "clSetKernelArg");
  };
  cl_ulong8 from{};
  cl_float8 weights{};
  double total = 0;
  for (size_t r = 0; r < inputs.size(); ++r) {
    set(inputs[r].buffer);
    from.s[r] = inputs[r].first;
    weights.s[r] = static_cast<float>(inputs[r].weight);
    total += inputs[r].weight;
  }
  set(out);
  set(from);
  set(cl_ulong{first});
  set(cl_ulong{count});
  set(weights);
  set(static_cast<cl_float>(total));
  const size_t local = kLocal, global = (count + kLocal - 1) / kLocal * kLocal;
  cl_event event = nullptr;
  check(clEnqueueNDRangeKernel(queue, kernel, 1, nullptr, &global, &local,
                               static_cast<cl_uint>(after.size()),
                               after.empty() ? nullptr : after.data(), &event),
        "clEnqueueNDRangeKernel");
  return event;
}

}  // namespace netcl::transport
