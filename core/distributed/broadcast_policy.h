// When the replicas' parameters are made those of one replica again.
//
// Replicas begin equal and make the same updates, so on devices of one make they stay equal to the
// bit. Devices of different make round differently; a broadcast now and then bounds how far they
// drift apart.
#ifndef NETCL_CORE_DISTRIBUTED_BROADCAST_POLICY_H_
#define NETCL_CORE_DISTRIBUTED_BROADCAST_POLICY_H_

#include <cstdint>

#include "core/base/error.h"

namespace netcl {

class BroadcastPolicy {
 public:
  static BroadcastPolicy never() { return BroadcastPolicy(0); }
  static BroadcastPolicy every_step() { return BroadcastPolicy(1); }
  // After steps k, 2k, ... Errors: kUsage for k < 1.
  static BroadcastPolicy every_steps(int64_t k) {
    NETCL_CHECK(k >= 1, ErrorCode::kUsage, "a broadcast every ", k,
                " steps: expected at least 1, or BroadcastPolicy::never()");
    return BroadcastPolicy(k);
  }
  // Whether it is time after `steps` steps.
  bool due(int64_t steps) const { return every_ > 0 && steps > 0 && steps % every_ == 0; }

 private:
  explicit BroadcastPolicy(int64_t every) : every_(every) {}
  int64_t every_;
};

}  // namespace netcl

#endif  // NETCL_CORE_DISTRIBUTED_BROADCAST_POLICY_H_
