// Which tuned records speak of a question on a device, the nearest first. A pure function; whether
// a record may be used is asked later (tuned_kernels.h).
// Threads: any.
#ifndef NETCL_CORE_RUNTIME_TUNED_MATCH_H_
#define NETCL_CORE_RUNTIME_TUNED_MATCH_H_

#include <string>
#include <vector>

#include "core/runtime/tuned_store.h"

namespace netcl {

enum class TunedLevel {
  kExact,          // this question, this model of device, this software
  kOtherSoftware,  // another driver or platform version
  kOtherShape,     // another shape on this model of device
  kOtherDevice,    // another device of the same arch
};

struct TunedMatch {
  const StoredRecord* stored = nullptr;
  TunedLevel level = TunedLevel::kExact;
  double distance = 0;

  // "tuned record, exact: 1.42x the default (user record FILE:LINE)"
  std::string reason() const;
};

// By level, then distance, then equal software, then measured time. Records of plugins that a
// user's record for the same question has measured, too, are left out.
std::vector<TunedMatch> match_records(const std::vector<const StoredRecord*>& records,
                                      const TunedQuestion& question, const TunedDevice& device,
                                      const TunedSoftware& software);

}  // namespace netcl

#endif  // NETCL_CORE_RUNTIME_TUNED_MATCH_H_
