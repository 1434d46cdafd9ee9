// In which order kernel sets are asked for an op on a device: first those that do not yield, then
// by specificity of the matching rule (its number of members), then by priority, higher first; the
// id settles what is left. netcl's own sets yield, so that one which somebody adds is used wherever
// it serves.
#ifndef NETCL_CORE_RUNTIME_KERNEL_RANK_H_
#define NETCL_CORE_RUNTIME_KERNEL_RANK_H_

#include <functional>
#include <optional>
#include <string>

#include "core/cl/device_info.h"
#include "core/ops/kernel_provider.h"
#include "core/ops/op.h"
#include "core/runtime/manifest.h"

namespace netcl {

struct KernelRank {
  bool yields = false;
  int specificity = 0, priority = 0;

  // Whether a set of this rank is asked before one of the other. Ranks that are not before each
  // other are equal.
  bool before(const KernelRank& other) const;
  std::string str() const;
};

// Whether the provision is for the op or its family.
bool offers(const Provision& provision, const OpRow& op);
// Also for the types of the question's inputs; devices do not matter.
bool offers(const Provision& provision, const KernelQuestion& question);

// The best rank that a provision with `offered` gives the manifest's set on the device, or nullopt
// and the reason.
std::optional<KernelRank> rank_of(const Manifest& manifest, const DeviceInfo& device,
                                  const std::function<bool(const Provision&)>& offered,
                                  std::string* reason = nullptr);

}  // namespace netcl

#endif  // NETCL_CORE_RUNTIME_KERNEL_RANK_H_
