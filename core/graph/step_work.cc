#include "core/graph/step_work.h"

#include <initializer_list>

namespace netcl {

namespace {

std::vector<TensorDesc> at_batch(const Graph& graph, const std::vector<ValueId>& values,
                                 int64_t batch) {
  std::vector<TensorDesc> out;
  for (const ValueId v : values) {
    const TensorDesc& desc = graph.desc(v);
    out.push_back({desc.dtype, desc.shape.with_batch(batch)});
  }
  return out;
}

// The product of the facts, or 0 if one is missing.
double product_of(const Attrs& facts, std::initializer_list<const char*> names) {
  double out = 1;
  for (const char* name : names) {
    if (!facts.has(name)) return 0;
    out *= static_cast<double>(facts.integer(name));
  }
  return out;
}

// Of an op that has many for an element; its facts tell which it is. 0: one of the others.
double multiply_adds_of(const Node& node, const std::vector<TensorDesc>& in, int64_t batch) {
  if (!node.op->facts) return 0;
  const Attrs attrs = node.attrs.with_batch(batch);
  Attrs facts = attrs;
  node.op->facts({*node.op, in, attrs}, facts);
  if (const double product = product_of(facts, {"batch", "M", "N", "K"}); product > 0)
    return product;
  const double taps = product_of(facts, {"N", "O", "OH", "OW", "C", "KH", "KW"});
  if (taps > 0) return taps / static_cast<double>(facts.integer("groups"));
  return 2 * product_of(facts, {"heads", "T", "S", "D"});
}

}  // namespace

StepWork& StepWork::operator+=(const StepWork& other) {
  launches += other.launches;
  multiply_adds += other.multiply_adds;
  elements += other.elements;
  return *this;
}

StepWork work_of(const Graph& graph, int64_t batch) {
  StepWork out;
  for (const Node& node : graph.nodes()) {
    if (node.op->view || node.op->collective) continue;
    ++out.launches;
    const std::vector<TensorDesc> in = at_batch(graph, node.in, batch);
    const double multiply_adds = multiply_adds_of(node, in, batch);
    out.multiply_adds += multiply_adds;
    if (multiply_adds > 0) continue;
    const std::vector<TensorDesc> results = at_batch(graph, node.out, batch);
    for (const auto* descs : {&in, &results}) {
      for (const TensorDesc& desc : *descs)
        out.elements += static_cast<double>(desc.shape.num_elements());
    }
  }
  return out;
}

}  // namespace netcl
