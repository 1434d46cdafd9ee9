// The op table: what every op means. One row holds the op's name, attributes, shape rule, gradient,
// double-precision reference and test cases; kernels/README.md lists the contract that kernels see.
//
// Rows live in core/ops/rows_*.cc, one function a family, listed in op_table.cc: nothing registers
// itself. check_op_table() fails for a row that lacks any part.
#ifndef NETCL_CORE_OPS_OP_H_
#define NETCL_CORE_OPS_OP_H_

#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/ops/attrs.h"
#include "core/ops/recorder.h"
#include "core/tensor/shape.h"

namespace netcl {

// A tensor of the reference: every data type is held as double.
struct HostTensor {
  TensorDesc desc;
  std::vector<double> data;
};

// The facts of one call: what shape rules, kernel facts and references are given.
struct OpCall {
  const OpRow& row;
  const std::vector<TensorDesc>& in;
  const Attrs& attrs;
};

// What a gradient rule is given; it records ops and returns one entry per input (nullopt: none).
struct GradCall {
  Recorder& recorder;
  const Node& node;
  const std::vector<std::optional<ValueId>>& dy;  // per output; at least one is present
  const std::vector<bool>& needed;                // per input: others may be left nullopt

  const TensorDesc& in_desc(size_t i) const { return recorder.desc(node.in[i]); }
};
using Grads = std::vector<std::optional<ValueId>>;

struct AttrRule {
  std::string key;
  std::optional<Attrs::Item> def;  // nullopt: must be given
};

// How one test case makes its inputs.
struct OpCase {
  std::vector<TensorDesc> in;
  Attrs attrs;
  double low = -1, high = 1;           // range of f32 inputs, uniform
  std::vector<int64_t> int_high = {};  // per input: exclusive upper bound of i32 and u8 inputs
  double tolerance = 0;                // 0: the default of the data type; else with a reason
  std::string note = {};               // why the tolerance or the range was chosen
  // Inputs that hold given values instead of random ones: index of the input, its elements.
  std::vector<std::pair<size_t, std::vector<double>>> fixed = {};
  // In f32 alone, where programs are slow to build and another case covers the 16-bit types.
  bool f32_only = false;
};

// What the generated pages of kernels/README.md say of a row beside what the row itself knows.
struct OpDoc {
  std::string formula;   // "y[m,n] = act(sum_k a[m,k] b[k,n] + bias[n])"
  std::string gradient;  // "da = dz b^T, db = a^T dz, dbias = sum_m dz"; empty: none
  std::string source;    // the paper or definition, where there is one
};

// What mixed precision does with a row's float inputs.
enum class Autocast {
  kFollow,  // they keep their type; where the row wants one type, the widest
  kLow,     // cast to 16 bits: products, which dominate the time
  kFull,    // cast to f32: exponentials and long sums
};

struct OpRow {
  std::string name;
  std::string family;  // "elementwise" or ""
  size_t min_in = 1, max_in = 1;
  std::vector<AttrRule> attrs;
  std::string expression;  // elementwise: OpenCL C over x0, x1, x2 and p0, p1; else empty
  std::vector<std::string> parameters = {};  // elementwise: attributes passed as p0, p1
  // Descriptions of the outputs. Errors: kUsage, naming op and shapes.
  std::function<std::vector<TensorDesc>(const OpCall&)> infer;
  // Shape facts that kernels are given beside the attributes (concrete shapes only).
  std::function<void(const OpCall&, Attrs& facts)> facts;
  // Null: not differentiable (integers, comparisons, optimiser steps).
  std::function<Grads(const GradCall&)> gradient;
  // Double-precision reference; outputs arrive sized, with unspecified content.
  std::function<void(const OpCall&, const std::vector<const HostTensor*>& in,
                     std::vector<HostTensor>& out)>
      reference;
  // aliases[i] = j: output i (of those there are) may (and in a step does) share the memory of
  // input j; -1: none.
  std::vector<int> aliases = {};
  bool view = false;  // the output is the input under another shape; no kernel
  // Float inputs may all be f16 or bf16 instead of f32, except those listed in `always_f32`:
  // 16-bit storage, f32 arithmetic. Tests run every case in all three types.
  bool half_storage = false;
  std::vector<size_t> always_f32 = {};
  Autocast autocast = Autocast::kFollow;
  // Adds up over the replicas of a step: no kernel, the owner of the graph supplies it.
  bool collective = false;
  // Float inputs that count as constants: nothing flows back to them (class weights).
  std::vector<size_t> constants = {};
  // The gradient of input 0 is complete: it counts what flows through other inputs, which were
  // computed from input 0 and get none. Tests check such a rule by composition, not by the row.
  bool gradient_through_others = false;
  OpDoc doc = {};
  std::string page = {};  // of the family; set by the table
  std::vector<OpCase> cases;
};

// The whole table, checked once. Threads: any.
const std::vector<OpRow>& op_table();
// Errors: kUsage with the nearest name.
const OpRow& find_op(const std::string& name);
// The attributes with defaults filled in, in the row's order; a number given as an integer
// and a shape given as a list of integers take the kind that the row wants.
// Errors: kUsage for an unknown key (with the nearest name) or a missing one.
Attrs complete_attrs(const OpRow& row, const Attrs& attrs);
// Throws kInternal naming the row and what it lacks.
void check_op_table(const std::vector<OpRow>& rows);

}  // namespace netcl

#endif  // NETCL_CORE_OPS_OP_H_
