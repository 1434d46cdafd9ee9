// Chains: elementwise ops one after the other as one op, computed without storing what lies
// between.
//
// The op "chain" takes up to kMostInputs inputs, a program and how each input is seen, both as
// text:
//   program  "add(x0,x1);gelu(t0);cast(t1,dtype=bf16)": step i makes t<i>, the last is the result;
//            "x0" alone copies. Steps are rows of the elementwise family, or full(value=V).
//   views    "0:cut(2,1,2)axes(0,2,1,3);1:axes(1,0)": input 0 is seen as the elements from 1 to 2
//   of
//            its axis 2, with the axes in that order. Inputs that are not named are seen as they
//            are.
//   shape    of the output, against which views are broadcast.
// Threads: values.
#ifndef NETCL_CORE_OPS_CHAIN_H_
#define NETCL_CORE_OPS_CHAIN_H_

#include <map>
#include <string>
#include <vector>

#include "core/ops/op.h"

namespace netcl {

struct ChainView {
  std::vector<int64_t> cut;   // axis, first, end; empty: nothing is cut
  std::vector<int64_t> axes;  // empty: in their order

  bool plain() const { return cut.empty() && axes.empty(); }
  bool operator==(const ChainView& o) const { return cut == o.cut && axes == o.axes; }
};

struct ChainOperand {
  bool input = true;  // else the result of a step
  size_t index = 0;
};

struct ChainStep {
  const OpRow* op = nullptr;
  std::vector<ChainOperand> operands;
  Attrs attrs;  // complete
};

struct Chain {
  static constexpr size_t kMostInputs = 6;

  std::vector<ChainStep> steps;  // none: a copy of input 0
  std::map<size_t, ChainView> views;

  // Errors: kUsage, quoting the text.
  static Chain parse(const std::string& program, const std::string& views);
  std::string program() const;
  std::string views_text() const;
  const ChainView& view(size_t input) const;

  // The description of every step's result for these inputs (as they are, without views). Errors:
  // kUsage.
  std::vector<TensorDesc> infer(const std::vector<TensorDesc>& in) const;
};

// The shape of an input as a view shows it. Errors: kUsage.
Shape viewed(const ChainView& view, const Shape& shape);

}  // namespace netcl

#endif  // NETCL_CORE_OPS_CHAIN_H_
