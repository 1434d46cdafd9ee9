// Checks that shape rules share. Errors: kUsage. Threads: any (pure functions).
#ifndef NETCL_CORE_OPS_CHECKS_H_
#define NETCL_CORE_OPS_CHECKS_H_

#include <string>

#include "core/ops/op.h"

namespace netcl {

// The common type of the float inputs among `inputs` (all of them if empty).
// Errors: an input that is no float, or two different float types.
DType common_float(const OpCall& call, const std::vector<size_t>& inputs = {});
// Fails unless input `i` has this description; `what` names it.
void require_desc(const OpCall& call, size_t i, const TensorDesc& want, const std::string& what);
// Fails unless input `i` has this rank; the message shows the wanted form, such as "[N,C,H,W]".
void require_rank(const OpCall& call, size_t i, size_t rank, const std::string& form);
// An attribute that must be 0 or 1.
bool flag(const Attrs& attrs, const char* key);
// An attribute that must lie in [low, high].
int64_t integer_in(const Attrs& attrs, const char* key, int64_t low, int64_t high);

}  // namespace netcl

#endif  // NETCL_CORE_OPS_CHECKS_H_
