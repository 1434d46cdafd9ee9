#include "core/runtime/kernel_rank.h"

#include <algorithm>
#include <tuple>

#include "core/base/text.h"

namespace netcl {

bool KernelRank::before(const KernelRank& other) const {
  const auto order = [](const KernelRank& r) {
    return std::make_tuple(!r.yields, r.specificity, r.priority);
  };
  return order(*this) > order(other);
}

std::string KernelRank::str() const {
  return str_cat("specificity ", specificity, ", priority ", priority,
                 yields ? ", yields to sets that do not" : "");
}

bool offers(const Provision& provision, const OpRow& op) {
  return provision.op == op.name || (!provision.family.empty() && provision.family == op.family);
}

bool offers(const Provision& provision, const KernelQuestion& question) {
  if (!offers(provision, question.op)) return false;
  if (provision.dtypes.empty()) return true;
  return std::all_of(question.in.begin(), question.in.end(), [&](const TensorDesc& desc) {
    return std::find(provision.dtypes.begin(), provision.dtypes.end(), dtype_name(desc.dtype)) !=
           provision.dtypes.end();
  });
}

std::optional<KernelRank> rank_of(const Manifest& manifest, const DeviceInfo& device,
                                  const std::function<bool(const Provision&)>& offered,
                                  std::string* reason) {
  std::optional<KernelRank> best;
  std::string refused = "its manifest does not offer the op";
  for (const Provision& provision : manifest.provides) {
    if (!offered(provision)) continue;
    KernelRank rank{provision.yields, 0, provision.priority};
    if (const auto why = refuses_device(provision, device, &rank.specificity)) {
      refused = *why;
    } else if (!best || rank.before(*best)) {
      best = rank;
    }
  }
  if (!best && reason != nullptr) *reason = refused;
  return best;
}

}  // namespace netcl
