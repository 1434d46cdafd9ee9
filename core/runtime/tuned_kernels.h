// TunedKernels: whether a tuned record decides who computes a question, and which. Records are
// asked in the order of tuned_match.h. One is used if its plugin serves the op on the device and
// has the content that was measured, if no kernel set has come since that it was not measured
// against, if the plugin still plans the variant, and if the variant was checked: once for each
// content, software and model of device, when it is first wanted.
// Threads: one at a time.
#ifndef NETCL_CORE_RUNTIME_TUNED_KERNELS_H_
#define NETCL_CORE_RUNTIME_TUNED_KERNELS_H_

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "core/runtime/plugin_content.h"
#include "core/runtime/plugin_host.h"
#include "core/runtime/record_check.h"
#include "core/runtime/tuned_match.h"
#include "core/runtime/tuned_options.h"
#include "core/runtime/tuned_store.h"
#include "core/runtime/tuned_verdicts.h"

namespace netcl {

// The file of verdicts of this user; empty without a home.
std::filesystem::path user_verdicts_file();

// What a verdict on a variant depends on.
std::string verdict_key(const std::string& plugin, const PluginContent& content,
                        const std::string& variant, const TunedQuestion& question,
                        const DeviceInfo& device);

// Whether a record decides.
struct TunedAnswer {
  struct Refused {  // a record that is not used, and why
    std::string plugin, variant, reason;
  };
  std::shared_ptr<const Recipe> recipe;  // null: none decides
  std::string reason;
  std::vector<Refused> refused;
};

class TunedKernels {
 public:
  TunedKernels(PluginHost& plugins, TunedOptions options);

  // `able`: plugins that serve the op on the device, in the order in which they are asked;
  // `untuned`: what is chosen without records; `usual`: recipes that count as right. Errors: none;
  // what goes wrong is a refusal.
  TunedAnswer choose(Device& device, const KernelQuestion& question,
                     const std::vector<const Manifest*>& able, const Recipe& untuned,
                     const RecordCheck::Planner& usual);

 private:
  // The recipe, or nullptr and why the record is not used.
  std::shared_ptr<const Recipe> use(const TunedMatch& match, Device& device,
                                    const KernelQuestion& question,
                                    const std::vector<const Manifest*>& able, const Recipe& untuned,
                                    const RecordCheck::Planner& usual, std::string* why);
  TunedVerdict verdict(const TunedRecord& record, const Manifest& manifest, Device& device,
                       const KernelQuestion& question, const RecordCheck::Planner& usual);

  PluginHost& plugins_;
  const TunedOptions options_;
  TunedStore store_;
  TunedVerdicts verdicts_;
  PluginContents contents_;
};

}  // namespace netcl

#endif  // NETCL_CORE_RUNTIME_TUNED_KERNELS_H_
