#include "core/nn/loss_scale.h"

namespace netcl {
namespace loss_scale {

namespace {

using Ints = std::vector<int64_t>;

ValueId part(Graph& graph, ValueId state, int64_t index) {
  return graph.call("slice", {state},
                    {{"axes", Ints{0}}, {"start", Ints{index}}, {"stop", Ints{index + 1}}});
}

ValueId constant(Graph& graph, double value) {
  return graph.call("full", {}, {{"shape", Shape{1}}, {"value", value}});
}

ValueId scaled(Graph& graph, ValueId x, double factor, double offset) {
  return graph.call("scale", {x}, {{"factor", factor}, {"offset", offset}});
}

}  // namespace

ValueId state(Graph& graph) {
  return graph.external(step_names::kLossScale, {DType::kF32, Shape{2}});
}

ValueId scale(Graph& graph, ValueId state, size_t rank) {
  const ValueId out = part(graph, state, 0);
  return rank == 1 ? out : graph.call("reshape", {out}, {{"shape", Shape{}}});
}

ValueId skip_if_not_finite(Graph& graph, ValueId divisor, ValueId norm) {
  // 0 for a finite norm, else not a number.
  return graph.call("add", {divisor, graph.call("sub", {norm, norm})});
}

void advance(Graph& graph, ValueId state, ValueId norm) {
  const ValueId zero = constant(graph, 0);
  const ValueId finite = graph.call("equal", {graph.call("sub", {norm, norm}), zero});
  const ValueId now = part(graph, state, 0);
  const ValueId good = scaled(graph, part(graph, state, 1), 1, 1);
  const ValueId enough = graph.call("less", {constant(graph, kGrowthSteps - 0.5), good});
  const Attrs limits = {{"min", kLeast}, {"max", kMost}};
  const ValueId grown =
      graph.call("where", {enough, graph.call("clamp", {scaled(graph, now, 2, 0)}, limits), now});
  const ValueId shrunk = graph.call("clamp", {scaled(graph, now, 0.5, 0)}, limits);
  const ValueId next = graph.call("where", {finite, grown, shrunk});
  const ValueId counted = graph.call("where", {enough, zero, good});
  const ValueId count = graph.call("where", {finite, counted, zero});
  graph.output(step_names::kLossScale, graph.call("concat", {next, count}, {{"axis", int64_t{0}}}));
}

}  // namespace loss_scale
}  // namespace netcl
