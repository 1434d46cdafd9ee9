#include "core/runtime/kernel_set.h"

#include <algorithm>
#include <cstring>

#include "core/base/crash_note.h"
#include "core/runtime/host_call.h"

namespace netcl {

namespace {

// A question as kernel sets see it: attributes and facts, borrowed from this object.
class OpKey {
 public:
  explicit OpKey(const KernelQuestion& question) : facts_(question.attrs) {
    if (question.op.facts) question.op.facts({question.op, question.in, question.attrs}, facts_);
    attrs_ = to_abi(facts_);
    for (const TensorDesc& desc : question.in) in_.push_back(to_abi(desc));
    for (const TensorDesc& desc : question.out) out_.push_back(to_abi(desc));
    key_.size = sizeof(key_);
    key_.op = {question.op.name.data(), question.op.name.size()};
    key_.family = {question.op.family.data(), question.op.family.size()};
    key_.n_in = static_cast<uint32_t>(in_.size());
    key_.n_out = static_cast<uint32_t>(out_.size());
    key_.n_attrs = static_cast<uint32_t>(attrs_.size());
    key_.numerics = NETCL_NUM_STRICT_FP32;
    key_.in = in_.data();
    key_.out = out_.data();
    key_.attrs = attrs_.data();
  }
  OpKey(const OpKey&) = delete;
  OpKey& operator=(const OpKey&) = delete;
  const netcl_opkey& abi() const { return key_; }

 private:
  Attrs facts_;
  std::vector<netcl_attr> attrs_;
  std::vector<netcl_desc> in_, out_;
  netcl_opkey key_{};
};

// What an opened handle and the question's words are during one call.
struct Asked {
  Asked(Device& device, const KernelQuestion& question)
      : key(question), handle{&device.info(), &device} {}
  OpKey key;
  netcl_device handle;
};

netcl_rc collect_variant(void* ctx, const void* item) {
  const netcl_str id = static_cast<const netcl_variant*>(item)->id;
  static_cast<std::vector<std::string>*>(ctx)->emplace_back(id.ptr, id.len);
  return NETCL_OK;
}

netcl_rc collect_tunable(void* ctx, const void* item) {
  const auto& from = *static_cast<const netcl_tunable*>(item);
  static_cast<std::vector<Tunable>*>(ctx)->push_back({std::string(from.name.ptr, from.name.len),
                                                      {from.values, from.values + from.n_values},
                                                      from.def});
  return NETCL_OK;
}

// Calls the plugin's function, and drops its state.
class PluginWork : public NativeWork {
 public:
  PluginWork(const LoadedPlugin& plugin, const netcl_native& native, std::string what)
      : plugin_(plugin), what_(std::move(what)) {
    std::memcpy(&native_, &native, std::min(native.size, sizeof(native_)));
  }
  PluginWork(const PluginWork&) = delete;
  PluginWork& operator=(const PluginWork&) = delete;
  ~PluginWork() override {
    if (native_.drop != nullptr) native_.drop(plugin_.self(), native_.state);
  }
  void enqueue(cl_command_queue queue, const cl_mem* in, const cl_mem* out, const cl_mem* scratch,
               cl_event* event) const override {
    plugin_.must(what_, [&](netcl_call* call) {
      return native_.enqueue(plugin_.self(), call, native_.state, queue, handles(in), handles(out),
                             handles(scratch), reinterpret_cast<void**>(event));
    });
  }

 private:
  static void* const* handles(const cl_mem* buffers) {
    return reinterpret_cast<void* const*>(buffers);
  }
  const LoadedPlugin& plugin_;
  netcl_native native_{};
  const std::string what_;
};

struct PlanSink {
  const LoadedPlugin* plugin;
  const KernelQuestion* question;
  const DeviceInfo* device;
  std::shared_ptr<const Recipe> recipe;
  std::string error;

  static netcl_rc accept(void* ctx, const void* item) {
    auto* self = static_cast<PlanSink*>(ctx);
    const auto& recipe = *static_cast<const netcl_recipe*>(item);
    try {
      // First of all, so that its state is dropped whatever is wrong with the rest.
      std::shared_ptr<const NativeWork> native;
      if (NETCL_HAS(&recipe, native)) {
        NETCL_CHECK(NETCL_HAS(recipe.native, enqueue), ErrorCode::kPlugin, "plugin ",
                    self->plugin->id(), ": native work without a function that enqueues it");
        native = std::make_shared<PluginWork>(*self->plugin, *recipe.native,
                                              "running " + self->question->op.name);
      }
      auto copied = std::make_shared<Recipe>(
          copy_recipe(recipe, self->plugin->id(), self->question->in.size(),
                      self->question->out.size(), *self->device));
      copied->native = std::move(native);
      for (const RecipeLaunch& launch : copied->launches)
        note_kernel(launch.entry, str_cat("kernel ", launch.entry, " of plugin ", copied->plugin,
                                          ", variant ", copied->variant));
      self->recipe = std::move(copied);
      return NETCL_OK;
    } catch (const std::exception& e) {
      self->error = e.what();
      return NETCL_E_BUG;
    }
  }
};

}  // namespace

KernelSet::KernelSet(LoadedPlugin& plugin)
    : plugin_(plugin), table_(plugin.table<netcl_kernels_api>(NETCL_KERNELS_INTERFACE)) {}

// Whatever a user asks for, a kernel set has only what the host tells it: what it finds wrong there
// is its own fault, as is a launch rule that divides by zero.
netcl_rc KernelSet::ask(const std::string& what, const std::function<netcl_rc(netcl_call*)>& body,
                        std::string* reason) const {
  try {
    return plugin_.call(what, body, reason);
  } catch (const Error& e) {
    if (e.code() != ErrorCode::kUsage) throw;
    fail(ErrorCode::kPlugin, e.message());
  }
}

std::shared_ptr<const Recipe> KernelSet::plan(Device& device, const KernelQuestion& question,
                                              const std::string& variant,
                                              std::string* reason) const {
  Asked asked(device, question);
  PlanSink sink{&plugin_, &question, &device.info(), nullptr, ""};
  const netcl_rc rc = ask(
      "planning " + question.op.name,
      [&](netcl_call* call) {
        const netcl_rc status =
            table_.plan(plugin_.self(), call, &asked.handle, &asked.key.abi(),
                        {variant.data(), variant.size()}, &PlanSink::accept, &sink);
        if (!sink.error.empty()) call->error = sink.error;
        return status;
      },
      reason);
  if (rc == NETCL_DECLINE) return nullptr;
  NETCL_CHECK(sink.recipe != nullptr, ErrorCode::kPlugin, "planning ", question.op.name,
              ": plugin ", plugin_.id(), " answered OK without a recipe");
  return sink.recipe;
}

std::vector<std::string> KernelSet::variants(Device& device, const KernelQuestion& question) const {
  Asked asked(device, question);
  std::vector<std::string> out;
  ask("listing variants of " + question.op.name, [&](netcl_call* call) {
    return table_.enumerate(plugin_.self(), call, &asked.handle, &asked.key.abi(), &collect_variant,
                            &out);
  });
  return out;
}

std::vector<Tunable> KernelSet::tunables(Device& device, const KernelQuestion& question,
                                         const std::string& variant) const {
  std::vector<Tunable> out;
  if (!NETCL_HAS(&table_, tunables)) return out;
  Asked asked(device, question);
  ask("listing tunables of " + question.op.name + ", variant " + variant, [&](netcl_call* call) {
    return table_.tunables(plugin_.self(), call, &asked.handle, &asked.key.abi(),
                           {variant.data(), variant.size()}, &collect_tunable, &out);
  });
  return out;
}

}  // namespace netcl
