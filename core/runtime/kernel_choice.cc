#include "core/runtime/kernel_choice.h"

#include <algorithm>
#include <set>

#include "core/base/text.h"
#include "core/ops/fused.h"

namespace netcl {

namespace {

bool offers(const Provision& provision, const KernelQuestion& question) {
  if (provision.op != question.op.name &&
      (provision.family.empty() || provision.family != question.op.family)) {
    return false;
  }
  if (provision.dtypes.empty()) return true;
  return std::all_of(question.in.begin(), question.in.end(), [&](const TensorDesc& desc) {
    return std::find(provision.dtypes.begin(), provision.dtypes.end(), dtype_name(desc.dtype)) !=
           provision.dtypes.end();
  });
}

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

netcl_rc collect_variant(void* ctx, const void* item) {
  const netcl_str id = static_cast<const netcl_variant*>(item)->id;
  static_cast<std::vector<std::string>*>(ctx)->emplace_back(id.ptr, id.len);
  return NETCL_OK;
}

struct PlanSink {
  const Manifest* manifest;
  const KernelQuestion* question;
  const DeviceInfo* device;
  std::shared_ptr<const Recipe> recipe;
  std::string error;

  static netcl_rc accept(void* ctx, const void* item) {
    auto* self = static_cast<PlanSink*>(ctx);
    try {
      self->recipe = std::make_shared<Recipe>(
          copy_recipe(*static_cast<const netcl_recipe*>(item), self->manifest->id,
                      self->question->in.size(), self->question->out.size(), *self->device));
      return NETCL_OK;
    } catch (const std::exception& e) {
      self->error = e.what();
      return NETCL_E_BUG;
    }
  }
};

}  // namespace

const KernelPin* KernelChoice::pin_of(const std::string& op) const {
  const auto pin = pins_.find(op);
  if (pin != pins_.end()) return &pin->second;
  for (const auto& [forward, of_forward] : pins_) {
    if (of_forward.plugin == KernelPin::kTrace && gradient_name(forward) == op) return &of_forward;
  }
  return nullptr;
}

std::vector<KernelChoice::Ranked> KernelChoice::candidates(
    const DeviceInfo& device, const KernelQuestion& question,
    std::vector<KernelCandidate>* refused) const {
  const KernelPin* pin = pin_of(question.op.name);
  std::vector<Ranked> out;
  for (const Manifest* manifest : plugins_.manifests("kernels")) {
    std::string reason = "its manifest does not offer the op";
    std::optional<Ranked> best;
    for (const Provision& provision : manifest->provides) {
      if (!offers(provision, question)) continue;
      int specificity = 0;
      if (const auto why = refuses_device(provision, device, &specificity)) {
        reason = *why;
      } else if (!best || specificity > best->specificity) {
        best = Ranked{manifest, specificity, provision.priority};
      }
    }
    if (best && pin != nullptr && pin->plugin != manifest->id) {
      best.reset();
      reason = "the op is pinned to " + pin->plugin;
    }
    if (best) {
      out.push_back(*best);
    } else if (refused != nullptr) {
      refused->push_back({manifest->id, "", "declined", reason});
    }
  }
  std::sort(out.begin(), out.end(), [](const Ranked& a, const Ranked& b) {
    if (a.specificity != b.specificity) return a.specificity > b.specificity;
    if (a.priority != b.priority) return a.priority > b.priority;
    return a.manifest->id < b.manifest->id;
  });
  return out;
}

std::shared_ptr<const Recipe> KernelChoice::ask(Device& device, const KernelQuestion& question,
                                                const Manifest& manifest,
                                                const std::string& variant, std::string* reason) {
  LoadedPlugin& plugin = plugins_.load(manifest.id);
  const auto& table = plugin.table<netcl_kernels_api>(NETCL_KERNELS_INTERFACE);
  const OpKey key(question);
  netcl_device handle{&device.info(), &device};
  PlanSink sink{&manifest, &question, &device.info(), nullptr, ""};
  const netcl_rc rc = plugin.call(
      "planning " + question.op.name,
      [&](netcl_call* call) {
        const netcl_rc status =
            table.plan(plugin.self(), call, &handle, &key.abi(), {variant.data(), variant.size()},
                       &PlanSink::accept, &sink);
        if (!sink.error.empty()) call->error = sink.error;
        return status;
      },
      reason);
  if (rc == NETCL_DECLINE) return nullptr;
  NETCL_CHECK(sink.recipe != nullptr, ErrorCode::kPlugin, "planning ", question.op.name,
              ": plugin ", manifest.id, " answered OK without a recipe");
  return sink.recipe;
}

std::vector<std::string> KernelChoice::variants(Device& device, const KernelQuestion& question,
                                                const Manifest& manifest) {
  LoadedPlugin& plugin = plugins_.load(manifest.id);
  const auto& table = plugin.table<netcl_kernels_api>(NETCL_KERNELS_INTERFACE);
  const OpKey key(question);
  netcl_device handle{&device.info(), &device};
  std::vector<std::string> out;
  plugin.call("listing variants of " + question.op.name, [&](netcl_call* call) {
    return table.enumerate(plugin.self(), call, &handle, &key.abi(), &collect_variant, &out);
  });
  return out;
}

std::shared_ptr<const Recipe> KernelChoice::choose(Device& device, const KernelQuestion& question,
                                                   std::vector<KernelCandidate>* refused) {
  const KernelPin* pin = pin_of(question.op.name);
  const std::string variant = pin != nullptr ? pin->variant : "";
  for (const Ranked& candidate : candidates(device.info(), question, refused)) {
    std::string reason;
    const auto answer = ask(device, question, *candidate.manifest, variant, &reason);
    if (answer != nullptr) {
      chosen_[question.op.name + ": " + answer->plugin + "/" + answer->variant] = "";
      return answer;
    }
    refused->push_back({candidate.manifest->id, variant, "declined", reason});
  }
  return nullptr;
}

namespace {

std::string question_key(const Device& device, const KernelQuestion& question) {
  return device.info().selector + '|' + question.key();
}

[[noreturn]] void nobody_serves(const Device& device, const KernelQuestion& question,
                                const std::vector<KernelCandidate>& refused,
                                const PluginHost& plugins) {
  std::vector<std::string> reasons;
  for (const KernelCandidate& c : refused) reasons.push_back(c.plugin + ": " + c.reason);
  std::vector<std::string> shapes;
  for (const TensorDesc& desc : question.in) shapes.push_back(desc.str());
  fail(ErrorCode::kPlugin, "no kernel set computes ", question.op.name, "(", join(shapes, ", "),
       ") on ", device.info().selector, " (", device.info().name, "). ",
       reasons.empty() ? "No kernel-set plugin serves. " + plugins.rejections()
                       : join(reasons, "; "));
}

}  // namespace

std::shared_ptr<const Recipe> KernelChoice::recipe(Device& device, const KernelQuestion& question) {
  const std::lock_guard<std::mutex> lock(mutex_);
  const std::string key = question_key(device, question);
  const auto found = recipes_.find(key);
  if (found != recipes_.end()) return found->second;
  std::vector<KernelCandidate> refused;
  const auto answer = choose(device, question, &refused);
  if (answer == nullptr) nobody_serves(device, question, refused, plugins_);
  return recipes_[key] = answer;
}

std::shared_ptr<const Recipe> KernelChoice::fused_recipe(Device& device,
                                                         const KernelQuestion& question) {
  const std::lock_guard<std::mutex> lock(mutex_);
  const std::string key = question_key(device, question);
  const auto found = recipes_.find(key);
  if (found != recipes_.end()) return found->second;
  std::vector<KernelCandidate> refused;
  const KernelPin* pin = pin_of(question.op.name);
  const auto answer = choose(device, question, &refused);
  if (answer == nullptr) {
    if (pin != nullptr && pin->plugin != KernelPin::kTrace)
      nobody_serves(device, question, refused, plugins_);
    chosen_[question.op.name + ": " + KernelPin::kTrace] = "";
  }
  return recipes_[key] = answer;
}

std::vector<KernelCandidate> KernelChoice::why(Device& device, const KernelQuestion& question) {
  const std::lock_guard<std::mutex> lock(mutex_);
  std::vector<KernelCandidate> refused, out;
  const KernelPin* pin = pin_of(question.op.name);
  bool chosen = false;
  for (const Ranked& candidate : candidates(device.info(), question, &refused)) {
    const std::string variant = pin != nullptr ? pin->variant : "";
    std::string reason;
    const auto answer = ask(device, question, *candidate.manifest, variant, &reason);
    const std::string rank =
        str_cat("specificity ", candidate.specificity, ", priority ", candidate.priority);
    if (answer == nullptr) {
      out.push_back({candidate.manifest->id, variant, "declined", reason});
    } else {
      out.push_back({candidate.manifest->id, answer->variant, chosen ? "able" : "chosen", rank});
      chosen = true;
      for (const std::string& other : variants(device, question, *candidate.manifest)) {
        if (other == answer->variant) continue;
        out.push_back(
            {candidate.manifest->id, other, "able", "not the one chosen; pin it with --kernels"});
      }
    }
  }
  out.insert(out.end(), refused.begin(), refused.end());
  return out;
}

std::vector<std::string> KernelChoice::chosen() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  std::vector<std::string> out;
  for (const auto& [text, ignored] : chosen_) out.push_back(text);
  return out;
}

}  // namespace netcl
