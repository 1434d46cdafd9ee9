// Reductions over any set of axes, made of the ops `sum`, `mean`, `max_reduce`, `min_reduce` and
// `var`, each of which reduces neighbouring axes only; and the axis arithmetic that rows share.
#ifndef NETCL_CORE_OPS_REDUCE_H_
#define NETCL_CORE_OPS_REDUCE_H_

#include <string>
#include <vector>

#include "core/ops/op.h"
#include "core/ops/reference/iterate.h"

namespace netcl {

// Records `op` over `axes` (empty: all; negative ones count from the end). Axes that are not
// neighbours are reduced group by group, or for `var` brought together by `permute` first.
// Shape: the axes are dropped, or kept with size 1 if `keep`.
// Errors: kUsage for an axis out of range or named twice.
ValueId reduce(Recorder& recorder, const std::string& op, ValueId x, std::vector<int64_t> axes,
               bool keep, int64_t correction = 1);

// The axes sorted and counted from the front; all of them for an empty list.
// Errors: kUsage for an axis out of range or named twice.
std::vector<int64_t> normal_axes(const std::vector<int64_t>& axes, size_t rank);

// True if no axis of size other than 1 lies between the first and the last of the sorted axes.
bool neighbours(const std::vector<int64_t>& axes, const Shape& shape);

// x seen as [outer, reduce, inner]. The shape must be concrete, the axes sorted neighbours.
ReduceSpan span_of(const Shape& shape, const std::vector<int64_t>& axes);

// The shape without the axes, or with size 1 in their place.
Shape reduced_shape(const Shape& shape, const std::vector<int64_t>& axes, bool keep);

// Sets the facts outer, reduce, inner.
void span_facts(const ReduceSpan& span, Attrs& facts);

}  // namespace netcl

#endif  // NETCL_CORE_OPS_REDUCE_H_
