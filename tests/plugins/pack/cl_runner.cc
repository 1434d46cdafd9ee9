#include "tests/plugins/pack/cl_runner.h"

#include <algorithm>
#include <chrono>
#include <functional>
#include <stdexcept>

#include "plugins/pack/pack_plugin.h"

namespace netcl {
namespace testing {
namespace {

void need(cl_int code, const std::string& what) {
  if (code != CL_SUCCESS) throw std::runtime_error(what + ": OpenCL error " + std::to_string(code));
}

size_t byte_count(const netcl_desc& desc) {
  size_t n = desc.dtype == NETCL_U8 || desc.dtype == NETCL_BOOL ? 1 : 4;
  for (uint32_t i = 0; i < desc.rank; ++i) n *= static_cast<size_t>(desc.dim[i]);
  return n;
}

using RecipeUse = std::function<void(const netcl_recipe&)>;

netcl_rc call_use(void* ctx, const void* item) {
  (*static_cast<RecipeUse*>(ctx))(*static_cast<const netcl_recipe*>(item));
  return NETCL_OK;
}

}  // namespace

struct ClRunner::Memory {
  std::vector<cl_mem> in, out, scratch;
  ~Memory() {
    for (auto* list : {&in, &out, &scratch}) {
      for (const cl_mem m : *list) clReleaseMemObject(m);
    }
  }
};

ClRunner::ClRunner(const std::string& plugin_dir) : host_(fake_host()) {
  cl_platform_id platform = nullptr;
  need(clGetPlatformIDs(1, &platform, nullptr), "no OpenCL platform");
  need(clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, 1, &device_, nullptr), "no OpenCL device");
  cl_int code = CL_SUCCESS;
  context_ = clCreateContext(nullptr, 1, &device_, nullptr, nullptr, &code);
  need(code, "clCreateContext");
  queue_ = clCreateCommandQueueWithProperties(context_, device_, nullptr, &code);
  need(code, "clCreateCommandQueueWithProperties");
  query_device();
  call_.plugin_dir = plugin_dir;
  api_.size = sizeof(api_);
  const netcl_rc rc = plugin::open_plugin<pack::PackPlugin>(&host_, call_.handle(), &api_);
  if (rc != NETCL_OK) throw std::runtime_error(call_.text);
  kernels_ = static_cast<const netcl_kernels_api*>(
      api_.query(api_.self, plugin::to_abi(NETCL_KERNELS_INTERFACE)));
}

ClRunner::~ClRunner() {
  for (auto& [key, built] : kernels_built_) {
    clReleaseKernel(built.second);
    clReleaseProgram(built.first);
  }
  if (api_.self != nullptr) api_.close(api_.self);
  clReleaseCommandQueue(queue_);
  clReleaseContext(context_);
}

void ClRunner::query_device() {
  char name[256] = {};
  clGetDeviceInfo(device_, CL_DEVICE_NAME, sizeof(name), name, nullptr);
  name_ = name;
  cl_device_type type = 0;
  cl_uint units = 0;
  cl_ulong local = 0;
  size_t group = 0;
  clGetDeviceInfo(device_, CL_DEVICE_TYPE, sizeof(type), &type, nullptr);
  clGetDeviceInfo(device_, CL_DEVICE_MAX_COMPUTE_UNITS, sizeof(units), &units, nullptr);
  clGetDeviceInfo(device_, CL_DEVICE_LOCAL_MEM_SIZE, sizeof(local), &local, nullptr);
  clGetDeviceInfo(device_, CL_DEVICE_MAX_WORK_GROUP_SIZE, sizeof(group), &group, nullptr);
  const bool cpu = (type & CL_DEVICE_TYPE_CPU) != 0;
  facts_.integers["is_cpu"] = cpu;
  facts_.integers["is_gpu"] = !cpu && (type & CL_DEVICE_TYPE_GPU) != 0;
  facts_.integers["compute_units"] = units;
  facts_.integers["local_mem_bytes"] = static_cast<int64_t>(local);
  facts_.integers["max_work_group"] = static_cast<int64_t>(group);
}

std::vector<std::string> ClRunner::variants(const OpKey& key) {
  std::vector<std::string> out;
  const netcl_opkey view = key.view();
  const netcl_rc rc = kernels_->enumerate(
      api_.self, call_.handle(), facts_.handle(), &view,
      [](void* ctx, const void* item) {
        static_cast<std::vector<std::string>*>(ctx)->emplace_back(
            plugin::view(static_cast<const netcl_variant*>(item)->id));
        return netcl_rc{NETCL_OK};
      },
      &out);
  if (rc != NETCL_OK) throw std::runtime_error(call_.text);
  return out;
}

cl_kernel ClRunner::kernel(const netcl_launch& launch) {
  const std::string entry(plugin::view(launch.entry)), options(plugin::view(launch.options));
  std::string key = entry + '\n' + options + '\n';
  std::vector<const char*> texts;
  std::vector<size_t> lengths;
  for (uint32_t i = 0; i < launch.n_sources; ++i) {
    texts.push_back(launch.sources[i].text.ptr);
    lengths.push_back(launch.sources[i].text.len);
    key += plugin::view(launch.sources[i].text);
  }
  const auto it = kernels_built_.find(key);
  if (it != kernels_built_.end()) return it->second.second;
  cl_int code = CL_SUCCESS;
  cl_program program =
      clCreateProgramWithSource(context_, launch.n_sources, texts.data(), lengths.data(), &code);
  need(code, "clCreateProgramWithSource");
  if (clBuildProgram(program, 1, &device_, options.c_str(), nullptr, nullptr) != CL_SUCCESS) {
    std::string log(1 << 16, '\0');
    clGetProgramBuildInfo(program, device_, CL_PROGRAM_BUILD_LOG, log.size(), log.data(), nullptr);
    throw std::runtime_error(entry + " does not build: " + log.c_str());
  }
  cl_kernel result = clCreateKernel(program, entry.c_str(), &code);
  need(code, entry);
  kernels_built_[key] = {program, result};
  return result;
}

void ClRunner::launch(const netcl_launch& launch, const Memory& memory) {
  size_t global[3], local[3];
  for (uint32_t d = 0; d < launch.dims; ++d) {
    global[d] = launch.global[d];
    local[d] = launch.local[d];
    if (global[d] == 0) return;
  }
  cl_kernel k = kernel(launch);
  for (cl_uint i = 0; i < launch.n_args; ++i) {
    const netcl_arg& arg = launch.args[i];
    const cl_int as_int = static_cast<cl_int>(arg.u.i);
    const cl_float as_float = static_cast<cl_float>(arg.u.f);
    cl_int code = CL_SUCCESS;
    switch (arg.kind) {
      case NETCL_ARG_INPUT:
        code = clSetKernelArg(k, i, sizeof(cl_mem), &memory.in.at(arg.index));
        break;
      case NETCL_ARG_OUTPUT:
        code = clSetKernelArg(k, i, sizeof(cl_mem), &memory.out.at(arg.index));
        break;
      case NETCL_ARG_SCRATCH:
        code = clSetKernelArg(k, i, sizeof(cl_mem), &memory.scratch.at(arg.index));
        break;
      case NETCL_ARG_LOCAL:
        code = clSetKernelArg(k, i, arg.u.bytes, nullptr);
        break;
      case NETCL_ARG_I32:
        code = clSetKernelArg(k, i, sizeof(as_int), &as_int);
        break;
      case NETCL_ARG_I64:
        code = clSetKernelArg(k, i, sizeof(arg.u.i), &arg.u.i);
        break;
      case NETCL_ARG_F32:
        code = clSetKernelArg(k, i, sizeof(as_float), &as_float);
        break;
      default:
        code = clSetKernelArg(k, i, 8 * sizeof(cl_int), arg.u.v8);
        break;
    }
    need(code, std::string(plugin::view(launch.entry)) + ", argument " + std::to_string(i));
  }
  need(clEnqueueNDRangeKernel(queue_, k, launch.dims, nullptr, global,
                              launch.local[0] == 0 ? nullptr : local, 0, nullptr, nullptr),
       std::string(plugin::view(launch.entry)));
}

std::vector<Bytes> ClRunner::run(const OpKey& key, const std::vector<Bytes>& inputs,
                                 const std::string& variant, int repeats, double* seconds) {
  Memory memory;
  const auto buffer = [&](size_t bytes, const Bytes* content) {
    cl_int code = CL_SUCCESS;
    const Bytes poison(std::max<size_t>(bytes, 4), 0xff);
    const Bytes& from = content != nullptr && !content->empty() ? *content : poison;
    cl_mem m = clCreateBuffer(context_, CL_MEM_READ_WRITE | CL_MEM_COPY_HOST_PTR, from.size(),
                              const_cast<unsigned char*>(from.data()), &code);
    need(code, "clCreateBuffer");
    return m;
  };
  for (const Bytes& bytes : inputs) memory.in.push_back(buffer(bytes.size(), &bytes));
  for (const netcl_desc& d : key.outputs()) memory.out.push_back(buffer(byte_count(d), nullptr));
  RecipeUse use = [&](const netcl_recipe& recipe) {
    for (uint32_t i = 0; i < recipe.n_scratch; ++i) {
      memory.scratch.push_back(buffer(recipe.scratch_bytes[i], nullptr));
    }
    for (int r = 0; r < repeats; ++r) {
      const auto start = std::chrono::steady_clock::now();
      for (uint32_t i = 0; i < recipe.n_launches; ++i) launch(recipe.launches[i], memory);
      need(clFinish(queue_), "clFinish");
      const std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
      if (seconds != nullptr) *seconds = r == 0 ? took.count() : std::min(*seconds, took.count());
    }
  };
  const netcl_opkey view = key.view();
  const netcl_rc rc = kernels_->plan(api_.self, call_.handle(), facts_.handle(), &view,
                                     plugin::to_abi(variant), &call_use, &use);
  if (rc != NETCL_OK) throw std::runtime_error("plan: " + call_.text);
  std::vector<Bytes> out;
  for (size_t i = 0; i < key.outputs().size(); ++i) {
    out.emplace_back(byte_count(key.outputs()[i]));
    if (out.back().empty()) continue;
    need(clEnqueueReadBuffer(queue_, memory.out[i], CL_TRUE, 0, out.back().size(),
                             out.back().data(), 0, nullptr, nullptr),
         "clEnqueueReadBuffer");
  }
  return out;
}

}  // namespace testing
}  // namespace netcl
