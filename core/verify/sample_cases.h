// Cases of an op for shapes that its row does not list: those that somebody trains with, and odd
// and smallest ones made from them.
// Threads: any.
#ifndef NETCL_CORE_VERIFY_SAMPLE_CASES_H_
#define NETCL_CORE_VERIFY_SAMPLE_CASES_H_

#include <optional>
#include <string>
#include <vector>

#include "core/ops/op.h"

namespace netcl {

// Inputs of these shapes with values like those of the row's cases; nullopt where inputs must be
// particular values (random ones would not be numbers, or not places in another input).
std::optional<OpCase> sample_case(const OpRow& row, const std::vector<TensorDesc>& in,
                                  const Attrs& attrs);

// The inputs with every size replaced by a prime of up to 79 that depends on the size alone, so
// that sizes which must agree still do; with sizes of one. Where the op does not take that, only
// the size of the first dimension is replaced; nullopt if it does not take that either, or if
// nothing changes.
std::optional<std::vector<TensorDesc>> odd_shapes(const OpRow& row,
                                                  const std::vector<TensorDesc>& in,
                                                  const Attrs& attrs);
std::optional<std::vector<TensorDesc>> edge_shapes(const OpRow& row,
                                                   const std::vector<TensorDesc>& in,
                                                   const Attrs& attrs);

// About how many elements the double-precision reference touches.
double reference_cost(const OpRow& row, const std::vector<TensorDesc>& in,
                      const std::vector<TensorDesc>& out);

}  // namespace netcl

#endif  // NETCL_CORE_VERIFY_SAMPLE_CASES_H_
