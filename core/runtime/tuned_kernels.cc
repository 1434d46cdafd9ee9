#include "core/runtime/tuned_kernels.h"

#include <algorithm>

#include "core/base/text.h"
#include "core/runtime/kernel_set.h"

namespace netcl {

namespace {

constexpr const char* kCheckVersion = "check/1";

size_t place_of(const std::string& id, const std::vector<const Manifest*>& able) {
  const auto found =
      std::find_if(able.begin(), able.end(), [&](const Manifest* m) { return m->id == id; });
  return static_cast<size_t>(found - able.begin());
}

}  // namespace

std::filesystem::path user_verdicts_file() {
  const std::filesystem::path directory = user_tuned_dir();
  return directory.empty() ? directory : directory / "checks.txt";
}

std::string verdict_key(const std::string& plugin, const PluginContent& content,
                        const std::string& variant, const TunedQuestion& question,
                        const DeviceInfo& device) {
  const TunedDevice model = tuned_device(device);
  return TunedVerdicts::key(
      join({kCheckVersion, plugin, content.kernels, content.library, variant, question.text(),
            model.vendor, model.arch, model.name, std::to_string(model.compute_units),
            tuned_software(device).str()},
           "\n"));
}

TunedKernels::TunedKernels(PluginHost& plugins, TunedOptions options)
    : plugins_(plugins),
      options_(std::move(options)),
      store_(options_.files, options_.log),
      verdicts_(options_.verdicts, options_.log) {}

TunedAnswer TunedKernels::choose(Device& device, const KernelQuestion& question,
                                 const std::vector<const Manifest*>& able, const Recipe& untuned,
                                 const RecordCheck::Planner& usual) {
  TunedAnswer out;
  // Of an op that layers made no record can be checked by itself.
  if (store_.empty() || !question.op.infer || !question.op.reference) return out;
  const TunedQuestion asked = tuned_question(question);
  for (const TunedMatch& match : match_records(
           store_.near(asked), asked, tuned_device(device.info()), tuned_software(device.info()))) {
    const TunedRecord& record = match.stored->record;
    std::string why;
    if (match.level >= TunedLevel::kOtherShape && record.plugin == record.default_plugin &&
        record.variant == record.default_variant) {
      // Which variant a set prefers depends on the shape: only that it knows best is taken over.
      out.refused.push_back({record.plugin, record.variant,
                             "tuned record " + match.stored->place + ": for the shape " +
                                 record.question.shapes() + " the default is the best"});
      return out;
    }
    try {
      out.recipe = use(match, device, question, able, untuned, usual, &why);
    } catch (const std::exception& e) {
      why = e.what();
    }
    if (out.recipe != nullptr) {
      out.reason = match.reason();
      return out;
    }
    out.refused.push_back(
        {record.plugin, record.variant, "tuned record " + match.stored->place + ": " + why});
  }
  return out;
}

std::shared_ptr<const Recipe> TunedKernels::use(const TunedMatch& match, Device& device,
                                                const KernelQuestion& question,
                                                const std::vector<const Manifest*>& able,
                                                const Recipe& untuned,
                                                const RecordCheck::Planner& usual,
                                                std::string* why) {
  const TunedRecord& record = match.stored->record;
  const size_t place = place_of(record.plugin, able);
  if (place == able.size()) {
    *why = "its plugin does not serve the op on this device";
    return nullptr;
  }
  const auto& sets = record.kernel_sets;
  if (place_of(untuned.plugin, able) < place &&
      std::find(sets.begin(), sets.end(), untuned.plugin) == sets.end()) {
    *why = "it was not measured against " + untuned.plugin +
           ", which is asked before its set; run netcl-app tune";
    return nullptr;
  }
  const Manifest& manifest = *able[place];
  const std::string& content = contents_.of(manifest, question.op).kernels;
  if (record.content != content) {
    *why = "it is of other kernels (content " + record.content.substr(0, 12) + ", the plugin has " +
           content.substr(0, 12) + "); run netcl-app tune";
    return nullptr;
  }
  const KernelSet set(plugins_.load(manifest.id));
  auto recipe = set.plan(device, question, record.variant, why);
  if (recipe == nullptr) return nullptr;
  const TunedVerdict checked = verdict(record, manifest, device, question, usual);
  if (checked.passed()) return recipe;
  *why = checked.state == TunedVerdict::State::kNone
             ? "it was never checked on this device, and this program has no check"
             : "it failed its check: " + checked.why;
  return nullptr;
}

TunedVerdict TunedKernels::verdict(const TunedRecord& record, const Manifest& manifest,
                                   Device& device, const KernelQuestion& question,
                                   const RecordCheck::Planner& usual) {
  const std::string key = verdict_key(manifest.id, contents_.of(manifest, question.op),
                                      record.variant, record.question, device.info());
  if (options_.check == nullptr) return verdicts_.of(key);
  const bool known = verdicts_.of(key).state != TunedVerdict::State::kNone;
  const TunedVerdict out = verdicts_.decide(key, [&] {
    const KernelSet set(plugins_.load(manifest.id));
    const std::vector<TensorDesc>& in = record.question.in;
    const std::vector<TensorDesc> outputs = question.op.infer({question.op, in, question.attrs});
    return options_.check->wrong(
        device, {question.op, in, outputs, question.attrs},
        [&](const KernelQuestion& asked, std::string* reason) {
          return set.plan(device, asked, record.variant, reason);
        },
        usual);
  });
  if (!known && !out.passed()) {
    options_.log.warning(str_cat("the tuned variant ", record.plugin, "/", record.variant, " of ",
                                 record.question.op, " ", record.question.shapes(),
                                 " is not used on ", device.info().name, ": ", out.why));
  }
  return out;
}

}  // namespace netcl
