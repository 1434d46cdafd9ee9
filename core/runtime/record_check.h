// What the choice of kernels needs from above: somebody who judges whether a variant computes what
// its op says. core/verify implements it.
#ifndef NETCL_CORE_RUNTIME_RECORD_CHECK_H_
#define NETCL_CORE_RUNTIME_RECORD_CHECK_H_

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "core/cl/device.h"
#include "core/ops/kernel_provider.h"

namespace netcl {

class RecordCheck {
 public:
  // A recipe for a question, or null and a reason.
  using Planner =
      std::function<std::shared_ptr<const Recipe>(const KernelQuestion&, std::string* reason)>;

  virtual ~RecordCheck() = default;

  // What is wrong with the recipes of `tuned`, or "". They are judged on the question, on an odd
  // shape and on one of ones; the recipes of `usual` count as right where the reference would take
  // too long. A shape that `tuned` declines is no mistake, but for the question's own.
  // Errors: kDevice, kPlugin. Threads: one at a time.
  virtual std::string wrong(Device& device, const KernelQuestion& question, const Planner& tuned,
                            const Planner& usual) = 0;
};

}  // namespace netcl

#endif  // NETCL_CORE_RUNTIME_RECORD_CHECK_H_
