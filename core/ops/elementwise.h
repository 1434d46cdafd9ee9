// The elementwise family: one shape rule, one set of kernel facts and one reference for every row
// whose output element depends on one element of each input. Threads: any (pure functions).
#ifndef NETCL_CORE_OPS_ELEMENTWISE_H_
#define NETCL_CORE_OPS_ELEMENTWISE_H_

#include <functional>
#include <string>
#include <vector>

#include "core/ops/op.h"

namespace netcl {

enum class ElementwiseType {
  kFloat,    // the result is f32; at least one input must be
  kNumber,   // f32 if an input is f32, else i32
  kCompare,  // u8, 0 or 1
};

struct ElementwiseSpec {
  std::string name;
  size_t num_in = 1;
  std::string expression;
  double (*eval)(const double* x, const double* p) = nullptr;
  std::function<Grads(const GradCall&)> gradient;
  std::vector<OpCase> cases;
  std::vector<AttrRule> attrs = {};  // numbers; passed as p0, p1
  ElementwiseType type = ElementwiseType::kFloat;
};

// Makes a complete row with NumPy broadcasting over all inputs.
OpRow elementwise_row(ElementwiseSpec spec);

// Element strides of one input per output dimension.
using StrideRule =
    std::function<std::vector<int64_t>(const OpCall& call, const Shape& out, size_t input)>;

// Strides of input `input` broadcast against `out`: 0 where it is stretched.
std::vector<int64_t> broadcast_strides(const OpCall& call, const Shape& out, size_t input);

// Sets how kernels find elements: mode and, for mode strided, dims, strides0 ... (of `most`
// inputs), inner and step0 ... (kernels/README.md), from the element strides of each input for each
// dimension of the output. Neighbouring dimensions with the same pattern are collapsed. `whole`:
// every input has as many elements as the output.
void access_facts(const Shape& out, const std::vector<std::vector<int64_t>>& strides, bool whole,
                  size_t most, Attrs& facts);

// Sets the family's facts (kernels/README.md): expr, ctype, p0, p1, n, mode and those of
// access_facts().
void elementwise_facts(const OpCall& call, const StrideRule& strides, Attrs& facts);

// Runs eval for every output element.
void elementwise_reference(const OpCall& call, const StrideRule& strides,
                           double (*eval)(const double* x, const double* p),
                           const std::vector<const HostTensor*>& in, std::vector<HostTensor>& out);

// Cases over f32 inputs in [low, high]: one-element, odd, prime, zero-size, scalar.
std::vector<OpCase> unary_cases(double low, double high, const std::string& note = "",
                                const Attrs& attrs = {});
// The same for two inputs of equal shape (gradients of activations).
std::vector<OpCase> pair_cases(double low, double high, const std::string& note = "",
                               const Attrs& attrs = {});
// Two inputs, with broadcasting in every direction.
std::vector<OpCase> binary_cases(double low, double high, const std::string& note = "");

}  // namespace netcl

#endif  // NETCL_CORE_OPS_ELEMENTWISE_H_
