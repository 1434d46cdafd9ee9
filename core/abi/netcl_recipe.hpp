// netcl_recipe.hpp - recipes for authors of kernel sets in C++: what to launch for an op, as data.
#ifndef NETCL_CORE_ABI_NETCL_RECIPE_HPP_
#define NETCL_CORE_ABI_NETCL_RECIPE_HPP_

#include <cstdint>
#include <deque>
#include <fstream>
#include <functional>
#include <iterator>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "netcl_plugin.hpp"

#pragma GCC visibility push(hidden)
namespace netcl {
namespace plugin {

// The least multiple of `step` that is not below `n`: global sizes are multiples of local ones.
inline uint64_t round_up(uint64_t n, uint64_t step) { return (n + step - 1) / step * step; }

// One kernel launch: a program, its arguments in the kernel's order, and its sizes.
class Launch {
 public:
  Launch(Host host, std::string_view entry) : host_(host), entry_(entry) {}

  // A file of the plugin's directory, which becomes part of the program.
  Launch& source(const std::string& file) {
    const std::string path = host_.plugin_dir() + "/" + file;
    std::ifstream in(path, std::ios::binary);
    std::string code((std::istreambuf_iterator<char>(in)), std::istreambuf_iterator<char>());
    if (!in || code.empty()) throw Failure(NETCL_E_STATE, path + " cannot be read, or is empty");
    return text(file, code);
  }
  // A piece of OpenCL C; `name` is for messages.
  Launch& text(const std::string& name, const std::string& code) {
    pieces_.emplace_back(name, code);
    return *this;
  }
  // Put before the sources. Shapes are better arguments: each define makes another program.
  Launch& define(const std::string& name, const std::string& value) {
    defines_ += "#define " + name + " " + value + "\n";
    return *this;
  }
  // Of the OpenCL compiler, such as -cl-fast-relaxed-math.
  Launch& option(const std::string& option) {
    options_ += (options_.empty() ? "" : " ") + option;
    return *this;
  }

  Launch& input(uint32_t i) { return buffer(NETCL_ARG_INPUT, i); }
  Launch& output(uint32_t i) { return buffer(NETCL_ARG_OUTPUT, i); }
  Launch& scratch(uint32_t i) { return buffer(NETCL_ARG_SCRATCH, i); }
  Launch& local(uint64_t bytes) {
    added(NETCL_ARG_LOCAL).u.bytes = bytes;
    return *this;
  }
  Launch& i32(int64_t value) {
    added(NETCL_ARG_I32).u.i = value;
    return *this;
  }
  Launch& i64(int64_t value) {
    added(NETCL_ARG_I64).u.i = value;
    return *this;
  }
  Launch& f32(double value) {
    added(NETCL_ARG_F32).u.f = value;
    return *this;
  }

  // Work-items in all and in a group; no `local`: the driver chooses. A zero: nothing is launched
  // (an empty batch), so an output that must be written all the same needs another launch.
  Launch& over(const std::vector<uint64_t>& global, const std::vector<uint64_t>& local = {}) {
    global_ = global;
    local_ = local;
    if (global.empty() || global.size() > 3 || (!local.empty() && local.size() != global.size()))
      throw Failure(NETCL_E_BUG, entry_ + ": one to three sizes, local ones as many or none");
    return *this;
  }

 private:
  friend class Recipe;
  netcl_arg& added(uint32_t kind) {
    args_.emplace_back();
    args_.back().kind = kind;
    return args_.back();
  }
  Launch& buffer(uint32_t kind, uint32_t i) {
    added(kind).index = i;
    return *this;
  }
  // Borrows from this object and from `sources`.
  netcl_launch to_abi_launch(std::vector<netcl_source>* sources) const {
    if (global_.empty()) throw Failure(NETCL_E_BUG, entry_ + ": over() was not called");
    if (!defines_.empty()) sources->push_back({to_abi("defines"), to_abi(defines_)});
    for (const auto& [name, code] : pieces_) sources->push_back({to_abi(name), to_abi(code)});
    netcl_launch out{};
    out.entry = to_abi(entry_);
    out.options = to_abi(options_);
    out.sources = sources->data();
    out.args = args_.data();
    out.n_sources = static_cast<uint32_t>(sources->size());
    out.n_args = static_cast<uint32_t>(args_.size());
    out.dims = static_cast<uint32_t>(global_.size());
    for (size_t d = 0; d < 3; ++d) {
      out.global[d] = d < global_.size() ? global_[d] : 1;
      out.local[d] = local_.empty() ? 0 : d < local_.size() ? local_[d] : 1;
    }
    return out;
  }

  Host host_;
  std::string entry_, options_, defines_;
  std::vector<std::pair<std::string, std::string>> pieces_;
  std::vector<netcl_arg> args_;
  std::vector<uint64_t> global_, local_;
};

// One run of native work: a queue in order, and buffers as in netcl_native.
struct NativeCall {
  void* queue;                                    // cl_command_queue
  void *const *in, *const *out, *const *scratch;  // cl_mem
  void** event;  // null, or where the event of the last command may go
};
// Enqueues an op by a vendor's library, and does not wait. Throws Failure.
using NativeWork = std::function<void(const NativeCall&)>;

// What to launch, in this order.
class Recipe {
 public:
  Recipe(Host host, std::string_view variant) : host_(host), variant_(variant) {}

  // A buffer that lives during the op; returns its index.
  uint32_t scratch(uint64_t bytes) {
    scratch_.push_back(bytes);
    return static_cast<uint32_t>(scratch_.size() - 1);
  }
  // Work of a library, before the launches. It is called in every step, from the threads of the
  // queues, and lives until the host needs the recipe no longer.
  Recipe& native(NativeWork work) {
    native_ = std::move(work);
    return *this;
  }
  // The reference stays valid.
  Launch& launch(std::string_view entry) {
    launches_.emplace_back(host_, entry);
    return launches_.back();
  }

  void emit(netcl_sink sink, void* ctx) const {
    std::vector<std::vector<netcl_source>> sources(launches_.size());
    std::vector<netcl_launch> launches;
    for (size_t i = 0; i < launches_.size(); ++i)
      launches.push_back(launches_[i].to_abi_launch(&sources[i]));
    netcl_recipe recipe{};
    recipe.size = sizeof(recipe);
    recipe.variant = to_abi(variant_);
    recipe.launches = launches.data();
    recipe.scratch_bytes = scratch_.data();
    recipe.n_launches = static_cast<uint32_t>(launches.size());
    recipe.n_scratch = static_cast<uint32_t>(scratch_.size());
    netcl_native native{};
    if (native_) {
      native.size = sizeof(native);
      native.state = new Native{host_.table(), native_};  // the host's from here on
      native.enqueue = &Native::enqueue;
      native.drop = &Native::drop;
      recipe.native = &native;
    }
    check(sink(ctx, &recipe), "sink");
  }

 private:
  struct Native {
    const netcl_host* host;
    NativeWork work;

    static netcl_rc enqueue(netcl_plugin*, netcl_call* call, void* state, void* queue,
                            void* const* in, void* const* out, void* const* scratch, void** event) {
      const Native& self = *static_cast<Native*>(state);
      return guard(self.host, call, [&] { self.work({queue, in, out, scratch, event}); });
    }
    static void drop(netcl_plugin*, void* state) { delete static_cast<Native*>(state); }
  };

  Host host_;
  std::string variant_;
  NativeWork native_;
  std::deque<Launch> launches_;
  std::vector<uint64_t> scratch_;
};

}  // namespace plugin
}  // namespace netcl
#pragma GCC visibility pop

#endif  // NETCL_CORE_ABI_NETCL_RECIPE_HPP_
