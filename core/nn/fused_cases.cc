#include "core/nn/fused_cases.h"

#include <algorithm>
#include <map>
#include <memory>
#include <set>

#include "core/autograd/backward.h"
#include "core/base/error.h"
#include "core/graph/graph.h"
#include "core/nn/tracer.h"
#include "core/ops/case_inputs.h"
#include "core/ops/fused_reference.h"

namespace netcl {

namespace {

TensorDesc concrete(const TensorDesc& desc, int64_t batch) {
  return {desc.dtype, desc.shape.with_batch(batch)};
}

// The layer and its gradient with respect to everything, on inputs of a symbolic batch.
Graph traced(LayerProvider& layers, const nlohmann::ordered_json& layer,
             const std::vector<TensorDesc>& in) {
  Graph graph;
  std::vector<ValueId> inputs, wanted;
  for (size_t i = 0; i < in.size(); ++i) {
    std::vector<int64_t> dims = in[i].shape.dims();
    dims[0] = -1;
    inputs.push_back(graph.external(str_cat("input ", i), {in[i].dtype, Shape(dims)}));
  }
  std::vector<Slot> slots;
  std::map<std::string, ValueId> values;
  std::optional<ValueId> random;
  Tracer tracer(
      graph, layers, slots,
      [&](const Slot& slot) {
        const auto known = values.find(slot.name);
        if (known != values.end()) return known->second;
        return values[slot.name] = graph.external(slot.name, slot.desc);
      },
      [&] {
        if (!random) random = graph.external("random", {DType::kI32, Shape{8}});
        return *random;
      },
      {true, nullptr});
  const std::vector<ValueId> out = tracer.sublayer("layer", layer, inputs);
  for (const Graph::Place& place : graph.externals()) {
    if (is_float(graph.desc(place.value).dtype)) wanted.push_back(place.value);
  }
  std::vector<Seeded> seeds;
  for (const ValueId v : out) {
    if (is_float(graph.desc(v).dtype))
      seeds.push_back({v, graph.external(str_cat("gradient of value ", v), graph.desc(v))});
  }
  gradients(graph, seeds, wanted);
  return graph;
}

FusedCase case_of(const Graph& graph, const Node& node, int64_t batch) {
  const std::shared_ptr<const FusedOp> op = node.fused;
  FusedCase out;
  for (const ValueId v : node.in) out.in.push_back(concrete(graph.desc(v), batch));
  for (const ValueId v : node.out) out.out.push_back(concrete(graph.desc(v), batch));
  out.attrs = node.attrs.with_batch(batch);
  out.row = op->row;
  out.row.infer = [descs = out.out](const OpCall&) { return descs; };
  out.row.reference = [op, batch](const OpCall&, const std::vector<const HostTensor*>& in,
                                  std::vector<HostTensor>& results) {
    std::vector<HostTensor> inputs;
    for (const HostTensor* tensor : in) inputs.push_back(*tensor);
    results = fused_reference(*op, batch, inputs);
  };
  for (const auto& [key, item] : out.attrs.items()) out.row.attrs.push_back({key, item});
  out.complete = [forward = op->forward, batch](std::vector<HostTensor>& in) {
    if (forward == nullptr) return;
    const auto first = static_cast<std::ptrdiff_t>(forward->num_inputs());
    const std::vector<HostTensor> made =
        fused_reference(*forward, batch, {in.begin(), in.begin() + first});
    std::copy(made.begin(), made.end(), in.begin() + first);
  };
  return out;
}

// Below every dimension of the float inputs, at least 1.
int64_t integers_below(const std::vector<TensorDesc>& in) {
  constexpr int64_t kMost = 10;
  int64_t out = kMost;
  for (const TensorDesc& desc : in) {
    for (const int64_t d : desc.shape.dims()) {
      if (is_float(desc.dtype)) out = std::min(out, std::max<int64_t>(d, 1));
    }
  }
  return out;
}

std::string question(const FusedCase& c) {
  std::string out = c.row.name + " " + c.attrs.str();
  for (const TensorDesc& desc : c.in) out += " " + desc.str();
  return out;
}

}  // namespace

OpCase with_inputs(const FusedCase& c, uint64_t seed) {
  OpCase out;
  out.in = c.in;
  out.attrs = c.attrs;
  out.int_high.assign(c.in.size(), integers_below(c.in));
  std::vector<HostTensor> values = case_inputs(out, seed);
  c.complete(values);
  for (size_t i = 0; i < values.size(); ++i) out.fixed.emplace_back(i, std::move(values[i].data));
  return out;
}

std::vector<FusedCase> fused_cases(LayerProvider& layers, const nlohmann::ordered_json& layer,
                                   const std::vector<TensorDesc>& in) {
  NETCL_CHECK(!in.empty(), ErrorCode::kUsage, "a layer needs the shape of an input");
  for (const TensorDesc& desc : in) {
    NETCL_CHECK(desc.shape.rank() > 0 && !desc.shape.symbolic() && desc.shape[0] == in[0].shape[0],
                ErrorCode::kUsage, "inputs of a layer have the batch as their first dimension, ",
                desc.str(), " and ", in[0].str(), " have none in common");
  }
  const int64_t batch = in[0].shape[0];
  const Graph graph = traced(layers, layer, in);
  std::vector<FusedCase> out;
  std::set<std::string> asked;
  for (const Node& node : graph.nodes()) {
    if (node.fused == nullptr) continue;
    FusedCase c = case_of(graph, node, batch);
    if (asked.insert(question(c)).second) out.push_back(std::move(c));
  }
  return out;
}

}  // namespace netcl
