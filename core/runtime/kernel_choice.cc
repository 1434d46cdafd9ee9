#include "core/runtime/kernel_choice.h"

#include <algorithm>

#include "core/base/text.h"
#include "core/ops/fused.h"
#include "core/runtime/kernel_set.h"
#include "core/runtime/tuned_kernels.h"

namespace netcl {

namespace {

// "vec" of "vec(ROWS=24)".
std::string variant_id(const std::string& name) { return name.substr(0, name.find('(')); }

}  // namespace

KernelChoice::KernelChoice(PluginHost& plugins, std::map<std::string, KernelPin> pins,
                           TunedOptions tuned)
    : plugins_(plugins),
      pins_(std::move(pins)),
      tuned_(std::make_unique<TunedKernels>(plugins, std::move(tuned))) {}

KernelChoice::~KernelChoice() = default;

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
    std::string reason;
    auto rank = rank_of(
        *manifest, device, [&](const Provision& p) { return offers(p, question); }, &reason);
    if (rank && pin != nullptr && pin->plugin != manifest->id) {
      rank.reset();
      reason = "the op is pinned to " + pin->plugin;
    }
    if (rank) {
      out.push_back({manifest, *rank});
    } else if (refused != nullptr) {
      refused->push_back({manifest->id, "", "declined", reason});
    }
  }
  // Manifests come sorted by id.
  std::stable_sort(out.begin(), out.end(),
                   [](const Ranked& a, const Ranked& b) { return a.rank.before(b.rank); });
  return out;
}

std::shared_ptr<const Recipe> KernelChoice::choose(Device& device, const KernelQuestion& question,
                                                   std::vector<KernelCandidate>* refused) {
  const KernelPin* pin = pin_of(question.op.name);
  const std::string variant = pin != nullptr ? pin->variant : "";
  const std::vector<Ranked> able = candidates(device.info(), question, refused);
  for (const Ranked& candidate : able) {
    std::string reason;
    const auto answer =
        KernelSet(plugins_.load(candidate.manifest->id)).plan(device, question, variant, &reason);
    if (answer != nullptr) {
      const auto best = tuned(device, question, able, *answer).recipe;
      const auto& out = best != nullptr ? best : answer;
      chosen_.insert(question.op.name + ": " + out->plugin + "/" + out->variant);
      return out;
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

void KernelChoice::count(const std::string& key, const KernelQuestion& question) {
  Asked& asked = asked_[key];
  if (asked.times++ == 0) asked.question = tuned_question(question);
}

std::shared_ptr<const Recipe> KernelChoice::recipe(Device& device, const KernelQuestion& question) {
  const std::lock_guard<std::mutex> lock(mutex_);
  const std::string key = question_key(device, question);
  count(key, question);
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
    chosen_.insert(question.op.name + ": " + KernelPin::kTrace);
  }
  return recipes_[key] = answer;
}

TunedAnswer KernelChoice::tuned(Device& device, const KernelQuestion& question,
                                const std::vector<Ranked>& able, const Recipe& untuned) {
  const KernelPin* pin = pin_of(question.op.name);
  if (pin != nullptr && !pin->variant.empty()) return {};
  std::vector<const Manifest*> manifests;
  for (const Ranked& candidate : able) manifests.push_back(candidate.manifest);
  const auto usual = [&](const KernelQuestion& asked, std::string* reason) {
    return least_specific(device, asked, reason);
  };
  return tuned_->choose(device, question, manifests, untuned, usual);
}

std::vector<KernelCandidate> KernelChoice::why(Device& device, const KernelQuestion& question) {
  const std::lock_guard<std::mutex> lock(mutex_);
  std::vector<KernelCandidate> refused, out;
  const KernelPin* pin = pin_of(question.op.name);
  const std::vector<Ranked> able = candidates(device.info(), question, &refused);
  TunedAnswer best;
  bool chosen = false;
  for (const Ranked& candidate : able) {
    const std::string& id = candidate.manifest->id;
    const std::string variant = pin != nullptr ? pin->variant : "";
    std::string reason;
    const KernelSet set(plugins_.load(id));
    const auto answer = set.plan(device, question, variant, &reason);
    if (answer == nullptr) {
      out.push_back({id, variant, "declined", reason});
      continue;
    }
    if (!chosen) {
      best = tuned(device, question, able, *answer);
      if (best.recipe)
        out.push_back({best.recipe->plugin, best.recipe->variant, "chosen", best.reason});
    }
    const auto is_best = [&](const std::string& name) {
      return best.recipe && best.recipe->plugin == id && best.recipe->variant == name;
    };
    if (!is_best(answer->variant))
      out.push_back(
          {id, answer->variant, chosen || best.recipe ? "able" : "chosen", candidate.rank.str()});
    chosen = true;
    for (const std::string& other : set.variants(device, question)) {
      if (other == variant_id(answer->variant) || is_best(other)) continue;
      out.push_back({id, other, "able", "not the one chosen; pin it with --kernels"});
    }
  }
  for (const auto& r : best.refused) out.push_back({r.plugin, r.variant, "declined", r.reason});
  out.insert(out.end(), refused.begin(), refused.end());
  return out;
}

std::vector<KernelChoice::Asked> KernelChoice::asked() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  std::vector<Asked> out;
  for (const auto& [key, asked] : asked_) out.push_back(asked);
  return out;
}

std::vector<std::string> KernelChoice::sets(const DeviceInfo& device,
                                            const KernelQuestion& question) const {
  std::vector<std::string> out;
  for (const Ranked& candidate : candidates(device, question, nullptr))
    out.push_back(candidate.manifest->id);
  return out;
}

std::shared_ptr<const Recipe> KernelChoice::least_specific(Device& device,
                                                           const KernelQuestion& question,
                                                           std::string* reason) const {
  const std::vector<Ranked> able = candidates(device.info(), question, nullptr);
  std::shared_ptr<const Recipe> out;
  for (auto it = able.rbegin(); it != able.rend() && out == nullptr; ++it)
    out = KernelSet(plugins_.load(it->manifest->id)).plan(device, question, "", reason);
  return out;
}

std::vector<std::string> KernelChoice::chosen() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return {chosen_.begin(), chosen_.end()};
}

}  // namespace netcl
