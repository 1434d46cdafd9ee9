// The kernel set `openblas`: products on processors by the library OpenBLAS, called from a native
// kernel, which runs on the device's own memory in the order of the host's queue.
#include <CL/cl.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>
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
// Rows and columns of a block. The smallest is tried by tuning alone.
constexpr std::array<int64_t, 5> kSides = {1024, 512, 256, 128, 64};
constexpr size_t kSmallest = 3;
// A block for every so many operations, and no more of them unless by tuning: enough for some
// cores, few enough that packing the same parts of a and b for several of them costs little.
constexpr double kOperations = 16e6, kBlocks = 16;
constexpr std::string_view kPrefix = "blocks";

// What a native kernel needs. Its own copies: the recipe may be gone when the command runs.
struct Task {
  std::shared_ptr<const Library> library;
  std::shared_ptr<Crew> crew;
  Product product;
  bool bias;
};

struct Arguments {
  Task* task;
  const float *a, *b, *bias;
  float* y;
};

void CL_CALLBACK run(void* memory) {
  const Arguments& in = *static_cast<Arguments*>(memory);
  const std::unique_ptr<Task> task(in.task);
  task->crew->run(task->product.num_pieces(), [&](size_t piece) {
    task->product.compute(piece, *task->library, in.a, in.b, in.bias, in.y);
  });
}

void check(cl_int code, const char* call) {
  if (code == CL_SUCCESS) return;
  throw Failure(NETCL_E_DEVICE,
                std::string(call) + " failed with OpenCL error " + std::to_string(code), code);
}

// Buffers mapped around a native kernel, which is code of the host: on a processor that moves
// nothing. Not left to clEnqueueNativeKernel, since PoCL 3.1 passes null for memory that no command
// has used before, and for a part of a buffer the address of the whole.
class Mapped {
 public:
  explicit Mapped(cl_command_queue queue) : queue_(queue) {}
  float* map(void* memory, cl_map_flags flags) {
    auto* const buffer = static_cast<cl_mem>(memory);
    size_t bytes = 0;
    check(clGetMemObjectInfo(buffer, CL_MEM_SIZE, sizeof(bytes), &bytes, nullptr),
          "clGetMemObjectInfo");
    cl_int code = CL_SUCCESS;
    void* address =
        clEnqueueMapBuffer(queue_, buffer, CL_FALSE, flags, 0, bytes, 0, nullptr, nullptr, &code);
    check(code, "clEnqueueMapBuffer");
    list_.emplace_back(buffer, address);
    return static_cast<float*>(address);
  }
  // `event`, unless null, becomes that of the last command.
  void unmap(cl_event* event) {
    for (const auto& [buffer, address] : list_) {
      const bool last = address == list_.back().second;
      check(clEnqueueUnmapMemObject(queue_, buffer, address, 0, nullptr, last ? event : nullptr),
            "clEnqueueUnmapMemObject");
    }
  }

 private:
  const cl_command_queue queue_;
  std::vector<std::pair<cl_mem, void*>> list_;
};

void enqueue(const Task& task, const NativeCall& call) {
  task.crew->start();
  auto own = std::make_unique<Task>(task);
  auto* const queue = static_cast<cl_command_queue>(call.queue);
  Mapped mapped(queue);
  Arguments arguments{};
  arguments.task = own.get();
  arguments.a = mapped.map(call.in[0], CL_MAP_READ);
  arguments.b = mapped.map(call.in[1], CL_MAP_READ);
  if (task.bias) arguments.bias = mapped.map(call.in[2], CL_MAP_READ);
  arguments.y = mapped.map(call.out[0], CL_MAP_WRITE_INVALIDATE_REGION);
  check(clEnqueueNativeKernel(queue, &run, &arguments, sizeof(arguments), 0, nullptr, nullptr, 0,
                              nullptr, nullptr),
        "clEnqueueNativeKernel");
  static_cast<void>(own.release());  // the command's
  mapped.unmap(reinterpret_cast<cl_event*>(call.event));
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
    for (const int64_t side : kSides) {
      const std::string number = std::to_string(side);
      out.push_back({std::string(kPrefix) + number + "-" + name,
                     "f32; y in blocks of " + number + " x " + number});
    }
    const size_t best = usual_side(product(call, 1));
    std::rotate(out.begin(), out.begin() + static_cast<ptrdiff_t>(best),
                out.begin() + static_cast<ptrdiff_t>(best + 1));
    return out;
  }

  void plan(const KernelCall& call, Recipe& recipe) const override {
    const cl_device_id device = checked(call);
    const std::string side(call.variant().substr(kPrefix.size()));
    const Product work = product(call, std::atoi(side.c_str()));
    const int64_t elements = work.batch * work.m * work.n;
    if (elements == 0) return;  // nothing to compute
    const auto blas = library();
    const Task task{blas, crew(device, call.device("compute_units"), *blas), work,
                    call.attrs().integer("has_bias") != 0};
    recipe.native([task](const NativeCall& native) { enqueue(task, native); });
    const std::string_view activation = call.attrs().text("activation");
    if (activation == "none" || activation == "relu") return;
    recipe.launch("matmul_openblas_activation")
        .source("matmul_activation.cl")
        .define("SIGMOID", activation == "sigmoid" ? "1" : "0")
        .output(0)
        .i64(elements)
        .over({plugin::round_up(static_cast<uint64_t>(elements), 64)}, {64});
  }

 private:
  static Product product(const KernelCall& call, int64_t side) {
    const auto fact = [&](const char* name) { return call.attrs().integer(name); };
    return {fact("M"),
            fact("N"),
            fact("K"),
            fact("batch"),
            fact("a_batch"),
            fact("b_batch"),
            fact("transpose_a") != 0,
            fact("transpose_b") != 0,
            call.attrs().text("activation") == "relu",
            side,
            side};
  }

  // The place in kSides of what is used unasked.
  static size_t usual_side(Product work) {
    const double operations =
        2.0 * static_cast<double>(work.batch * work.m * work.n) * static_cast<double>(work.k);
    const auto wanted = static_cast<size_t>(std::min(operations / kOperations + 1, kBlocks));
    size_t place = 0;
    for (; place < kSmallest; ++place) {
      work.rows = work.columns = kSides[place];
      if (work.num_pieces() >= wanted) break;
    }
    return place;
  }

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
