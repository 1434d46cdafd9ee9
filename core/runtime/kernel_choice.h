// Which kernel set computes an op on a device: the only place where that is decided.
//
// Candidates are the kernel-set plugins whose manifest offers the op (or its family) on the device,
// in the order of their ranks (kernel_rank.h). The first that plans wins, unless a tuned record of
// one of them knows better (tuned_kernels.h); every refusal keeps its reason. A pin (op -> plugin
// and variant) leaves one candidate, and for a fused op kTrace leaves none, so that its recorded
// ops run. An answer is frozen for the life of the object. Threads: any.
#ifndef NETCL_CORE_RUNTIME_KERNEL_CHOICE_H_
#define NETCL_CORE_RUNTIME_KERNEL_CHOICE_H_

#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include "core/ops/kernel_provider.h"
#include "core/runtime/kernel_rank.h"
#include "core/runtime/plugin_host.h"
#include "core/runtime/tuned_options.h"
#include "core/runtime/tuned_record.h"

namespace netcl {

class TunedKernels;
struct TunedAnswer;

struct KernelPin {
  // In place of a plugin: the ops that a layer recorded for a fused op, and for its gradient unless
  // that has a pin of its own.
  static constexpr const char* kTrace = "trace";

  std::string plugin, variant;  // variant empty: the plugin's own choice
};

struct KernelCandidate {
  std::string plugin, variant;
  std::string verdict;  // "chosen", "able" (it could, too) or "declined"
  std::string reason;
};

class KernelChoice : public KernelProvider {
 public:
  // Without `tuned` no record counts.
  KernelChoice(PluginHost& plugins, std::map<std::string, KernelPin> pins, TunedOptions tuned = {});
  ~KernelChoice() override;

  std::shared_ptr<const Recipe> recipe(Device& device, const KernelQuestion& question) override;
  std::shared_ptr<const Recipe> fused_recipe(Device& device,
                                             const KernelQuestion& question) override;

  // All candidates for a question with their verdicts, best first.
  std::vector<KernelCandidate> why(Device& device, const KernelQuestion& question);
  // The kernel sets that offer the op on such a device, in the order in which they are asked.
  std::vector<std::string> sets(const DeviceInfo& device, const KernelQuestion& question) const;
  // What the least specific of them answers unasked: it serves everything, everywhere, so that its
  // results count as right. nullptr and a reason if nobody serves.
  std::shared_ptr<const Recipe> least_specific(Device& device, const KernelQuestion& question,
                                               std::string* reason) const;
  // "matmul: generic/vec" for every question answered so far, sorted, each once; "example.gate:
  // trace" for a fused op whose recorded ops run.
  std::vector<std::string> chosen() const;
  // Every question answered so far, by its text, and how often it was asked.
  struct Asked {
    TunedQuestion question;
    int64_t times = 0;
  };
  std::vector<Asked> asked() const;

 private:
  struct Ranked {
    const Manifest* manifest;
    KernelRank rank;
  };
  std::vector<Ranked> candidates(const DeviceInfo& device, const KernelQuestion& question,
                                 std::vector<KernelCandidate>* refused) const;
  const KernelPin* pin_of(const std::string& op) const;
  // The first candidate's recipe, or nullptr; `refused` gets everybody who does not serve.
  std::shared_ptr<const Recipe> choose(Device& device, const KernelQuestion& question,
                                       std::vector<KernelCandidate>* refused);

  void count(const std::string& key, const KernelQuestion& question);
  // What a tuned record says; `untuned` was planned without.
  TunedAnswer tuned(Device& device, const KernelQuestion& question, const std::vector<Ranked>& able,
                    const Recipe& untuned);

  PluginHost& plugins_;
  const std::map<std::string, KernelPin> pins_;
  const std::unique_ptr<TunedKernels> tuned_;
  mutable std::mutex mutex_;
  std::unordered_map<std::string, std::shared_ptr<const Recipe>> recipes_;
  std::set<std::string> chosen_;
  std::map<std::string, Asked> asked_;
};

}  // namespace netcl

#endif  // NETCL_CORE_RUNTIME_KERNEL_CHOICE_H_
