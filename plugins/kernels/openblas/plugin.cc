// The kernel set `openblas`: products on processors by the library OpenBLAS, called from a native
// kernel, which runs on the device's own memory in the order of the host's queue.
#include <CL/cl.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdlib>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "core/abi/netcl_kernels.hpp"
#include "plugins/kernels/openblas/crew.h"
#include "plugins/kernels/openblas/library.h"
#include "plugins/kernels/openblas/product.h"

namespace netcl::openblas {

namespace {

using plugin::Decline;
using plugin::Failure;
using plugin::KernelCall;
using plugin::NativeCall;
using plugin::Recipe;
using plugin::Variant;

constexpr const char* kFile = "libopenblas.so.0";
// Rows of a block; it has kWide times as many columns, since a row of blocks shares one part of a,
// and packing b costs more.
constexpr std::array<int64_t, 4> kRows = {512, 256, 128, 64};
constexpr int64_t kWide = 4;

// What a native kernel needs. Its own copies: the recipe may be gone when the command runs.
struct Task {
  std::shared_ptr<const Library> library;
  std::shared_ptr<Crew> crew;
  Product product;
  bool bias;
};

// Buffers become addresses when the command runs. Sub-buffers are passed as their parent and an
// offset: PoCL 3.1 gives a native kernel the parent's address for them.
struct Buffer {
  const std::byte* memory;
  size_t offset;

  const float* data() const { return reinterpret_cast<const float*>(memory + offset); }
};
struct Arguments {
  Task* task;
  Buffer a, b, bias, y;
};

void CL_CALLBACK run(void* memory) {
  const Arguments& in = *static_cast<Arguments*>(memory);
  const std::unique_ptr<Task> task(in.task);
  const float* bias = task->bias ? in.bias.data() : nullptr;
  auto* y = const_cast<float*>(in.y.data());
  task->crew->run(task->product.num_pieces(), [&](size_t piece) {
    task->product.compute(piece, *task->library, in.a.data(), in.b.data(), bias, y);
  });
}

void check(cl_int code, const char* call) {
  if (code == CL_SUCCESS) return;
  throw Failure(NETCL_E_DEVICE,
                std::string(call) + " failed with OpenCL error " + std::to_string(code), code);
}

class Buffers {
 public:
  void add(void* memory, Buffer* place) {
    auto* const buffer = static_cast<cl_mem>(memory);
    cl_mem parent = nullptr;
    check(clGetMemObjectInfo(buffer, CL_MEM_ASSOCIATED_MEMOBJECT, sizeof(parent), &parent, nullptr),
          "clGetMemObjectInfo");
    if (parent != nullptr) {
      check(
          clGetMemObjectInfo(buffer, CL_MEM_OFFSET, sizeof(place->offset), &place->offset, nullptr),
          "clGetMemObjectInfo");
    }
    list_.push_back(parent != nullptr ? parent : buffer);
    places_.push_back(&place->memory);
  }
  cl_uint size() const { return static_cast<cl_uint>(list_.size()); }
  const cl_mem* list() const { return list_.data(); }
  const void** places() { return places_.data(); }

 private:
  std::vector<cl_mem> list_;
  std::vector<const void*> places_;
};

void enqueue(const Task& task, const NativeCall& call) {
  task.crew->start();
  auto own = std::make_unique<Task>(task);
  Arguments arguments{};
  arguments.task = own.get();
  Buffers buffers;
  buffers.add(call.in[0], &arguments.a);
  buffers.add(call.in[1], &arguments.b);
  if (task.bias) buffers.add(call.in[2], &arguments.bias);
  buffers.add(call.out[0], &arguments.y);
  check(clEnqueueNativeKernel(static_cast<cl_command_queue>(call.queue), &run, &arguments,
                              sizeof(arguments), buffers.size(), buffers.list(), buffers.places(),
                              0, nullptr, reinterpret_cast<cl_event*>(call.event)),
        "clEnqueueNativeKernel");
  static_cast<void>(own.release());  // the command's
}

class OpenBlas : public plugin::KernelSet<> {
 public:
  using KernelSet::KernelSet;
  std::string_view id() const override { return "openblas"; }
  std::string_view version() const override { return "0.1.0"; }

  // The library's name is in the variants' names, so that what was measured or checked with another
  // version counts for that one alone.
  std::vector<Variant> variants(const KernelCall& call) const override {
    checked(call);
    const std::string name = library()->name();
    std::vector<Variant> out;
    for (const int64_t rows : kRows)
      out.push_back({"blocks" + std::to_string(rows) + "-" + name,
                     "blocks of " + std::to_string(rows) + " x " + std::to_string(kWide * rows)});
    return out;
  }

  void plan(const KernelCall& call, Recipe& recipe) const override {
    const cl_device_id device = checked(call);
    const auto fact = [&](const char* name) { return call.attrs().integer(name); };
    const std::string activation(call.attrs().text("activation"));
    const int64_t rows = std::atoi(std::string(call.variant().substr(6)).c_str());
    const Product product{fact("M"),
                          fact("N"),
                          fact("K"),
                          fact("batch"),
                          fact("a_batch"),
                          fact("b_batch"),
                          fact("transpose_a") != 0,
                          fact("transpose_b") != 0,
                          activation == "relu",
                          rows,
                          kWide * rows};
    const int64_t elements = product.batch * product.m * product.n;
    if (elements == 0) return;  // nothing to compute
    const auto blas = library();
    const Task task{blas, crew(device, call.device("compute_units"), *blas), product,
                    fact("has_bias") != 0};
    recipe.native([task](const NativeCall& work) { enqueue(task, work); });
    if (activation == "none" || activation == "relu") return;
    recipe.launch("matmul_openblas_activation")
        .source("matmul_activation.cl")
        .define("SIGMOID", activation == "sigmoid" ? "1" : "0")
        .output(0)
        .i64(elements)
        .over({plugin::round_up(static_cast<uint64_t>(elements), 64)}, {64});
  }

 private:
  // Declines what is not for this set; returns the device.
  static cl_device_id checked(const KernelCall& call) {
    if (call.op() != "matmul") throw Decline("OpenBLAS is asked for matmul alone");
    call.require_all(NETCL_F32, "f32");
    auto* const device = static_cast<cl_device_id>(call.device_cl().device);
    cl_device_exec_capabilities can = 0;
    check(clGetDeviceInfo(device, CL_DEVICE_EXECUTION_CAPABILITIES, sizeof(can), &can, nullptr),
          "clGetDeviceInfo");
    if ((can & CL_EXEC_NATIVE_KERNEL) == 0)
      throw Decline(
          "the device does not run native kernels (CL_EXEC_NATIVE_KERNEL), so OpenBLAS "
          "cannot reach its memory");
    return device;
  }

  // Opened at the first question; the answer stays what it was.
  std::shared_ptr<const Library> library() const {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (library_ == nullptr && missing_.empty()) {
      try {
        library_ = std::make_shared<const Library>(kFile);
      } catch (const Decline& e) {
        missing_ = e.what();
      }
    }
    if (library_ == nullptr) throw Decline(missing_);
    return library_;
  }

  std::shared_ptr<Crew> crew(cl_device_id device, int64_t compute_units,
                             const Library& library) const {
    const std::lock_guard<std::mutex> lock(mutex_);
    auto& crew = crews_[device];
    if (crew == nullptr) {
      crew = std::make_shared<Crew>(
          static_cast<int>(std::min<int64_t>(compute_units, library.max_callers())));
    }
    return crew;
  }

  mutable std::mutex mutex_;  // for what follows
  mutable std::shared_ptr<const Library> library_;
  mutable std::string missing_;
  mutable std::map<cl_device_id, std::shared_ptr<Crew>> crews_;
};

}  // namespace

}  // namespace netcl::openblas

NETCL_PLUGIN(netcl::openblas::OpenBlas)
