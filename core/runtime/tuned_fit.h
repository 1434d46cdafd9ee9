// Whether the question of a tuned record is one that its op can be asked, and its device can hold.
// Threads: any.
#ifndef NETCL_CORE_RUNTIME_TUNED_FIT_H_
#define NETCL_CORE_RUNTIME_TUNED_FIT_H_

#include <cstdint>
#include <string>

#include "core/runtime/tuned_record.h"

namespace netcl {

constexpr int64_t kMaxTunedElements = int64_t{1} << 40;  // of one tensor

// The row of the table, or nullptr.
const OpRow* row_of(const std::string& op);

// Why it is none, or "": an unknown op, inputs or attributes that the op does not take, a tensor of
// more than `max_alloc_bytes` (0: unknown).
std::string question_problem(const TunedQuestion& question, int64_t max_alloc_bytes);

}  // namespace netcl

#endif  // NETCL_CORE_RUNTIME_TUNED_FIT_H_
