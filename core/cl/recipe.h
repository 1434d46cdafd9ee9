// Recipes: how one op is computed on one device, as plain data (copied from a kernel set's answer),
// and their only launch path. A recipe is checked once; an Executable is built from it once, with
// all arguments that are not buffers; binding sets the buffers; running it is nothing but enqueues.
#ifndef NETCL_CORE_CL_RECIPE_H_
#define NETCL_CORE_CL_RECIPE_H_

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "core/abi/netcl_plugin.h"
#include "core/cl/device.h"
#include "core/cl/trace.h"

namespace netcl {

struct RecipeArg {
  uint32_t kind = 0, index = 0;
  int64_t i = 0;
  double f = 0;
  std::array<int32_t, 8> v8{};
};

struct RecipeLaunch {
  std::string entry, options, source;
  std::vector<RecipeArg> args;
  uint32_t dims = 1;
  std::array<uint64_t, 3> global{}, local{};

  bool empty() const;  // a global size of zero: nothing to launch
};

// Work that a plugin's library enqueues. Threads: one call at a time for one queue.
class NativeWork {
 public:
  virtual ~NativeWork() = default;
  // Enqueues without waiting; *event, unless null, receives the event of the last command, or null.
  // Errors: those of the plugin.
  virtual void enqueue(cl_command_queue queue, const cl_mem* in, const cl_mem* out,
                       const cl_mem* scratch, cl_event* event) const = 0;
};

struct Recipe {
  std::string plugin, variant;
  size_t n_in = 0, n_out = 0;
  std::shared_ptr<const NativeWork> native;  // before the launches; mostly null
  std::vector<RecipeLaunch> launches;
  std::vector<uint64_t> scratch_bytes;
};

// Copies and checks what a kernel set answered: argument indices, sizes, the device's limits. Of
// native work the caller makes a NativeWork. Errors: kPlugin, naming plugin and variant.
Recipe copy_recipe(const netcl_recipe& recipe, const std::string& plugin, size_t n_in, size_t n_out,
                   const DeviceInfo& device);

// One recipe with its kernels, bound to buffers. Not copyable between queues: kernel arguments
// belong to one queue's thread.
class Executable {
 public:
  // Builds the programs (from the cache where possible). Errors: kDevice.
  Executable(Device& device, const Recipe& recipe);

  // Native work counts as one.
  size_t num_launches() const { return launches_.size() + (recipe_->native ? 1 : 0); }
  const Recipe& recipe() const { return *recipe_; }

  // Sets every buffer argument. `scratch` has one buffer per recipe.scratch_bytes. The caller keeps
  // the buffers alive while the kernels may run: an OpenCL kernel does not. Errors: kDevice, naming
  // the kernel.
  void bind(const cl_mem* in, const cl_mem* out, const cl_mem* scratch);
  // The same, and keeps the buffers until the next bind.
  void bind(const std::vector<cl::Buffer>& in, const std::vector<cl::Buffer>& out,
            const std::vector<cl::Buffer>& scratch);
  // Enqueues the launches in order; `last`, if given, receives the event of the last one (none
  // without launches). Errors: kDevice, naming the kernel.
  void enqueue(const cl::CommandQueue& queue, cl::Event* last = nullptr) const;
  // The same, and tells the trace of every launch.
  void enqueue(const cl::CommandQueue& queue, Trace& trace) const;

 private:
  struct BufferArg {
    cl_uint position;
    uint32_t kind, index;
  };
  struct Bound {
    cl::Kernel kernel;
    const RecipeLaunch* launch;
    std::array<size_t, 3> global{}, local{};
    std::vector<BufferArg> buffers;
  };
  void launch(const cl::CommandQueue& queue, const Bound& bound, cl_event* event) const;
  void enqueue_native(const cl::CommandQueue& queue, cl::Event* event) const;

  std::shared_ptr<const Recipe> recipe_;
  // Kept by bind. Outlives the kernels: NVIDIA's driver looks at a kernel's arguments when it goes.
  std::vector<cl::Buffer> buffers_;
  std::vector<Bound> launches_;
  std::vector<cl_mem> native_in_, native_out_, native_scratch_;  // bound, for native work
};

}  // namespace netcl

#endif  // NETCL_CORE_CL_RECIPE_H_
