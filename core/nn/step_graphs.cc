#include "core/nn/step_graphs.h"

#include <algorithm>
#include <map>
#include <optional>

#include "core/autograd/backward.h"
#include "core/base/error.h"
#include "core/base/text.h"
#include "core/graph/passes.h"

namespace netcl {

namespace {

struct Traced {
  ValueId loss = 0, denominator = 0;
  std::vector<std::pair<std::string, ValueId>> metrics;
  std::map<std::string, ValueId> parameters;  // parameters and statistics, by slot name
  std::vector<SlotUpdate> updates;
  std::vector<NodeRange> recompute;
  int64_t num_outputs = 0;
};

Shape with_rows(const Shape& sample) {
  std::vector<int64_t> dims = {-1};
  dims.insert(dims.end(), sample.dims().begin(), sample.dims().end());
  return Shape(std::move(dims));
}

ValueId total(Recorder& recorder, ValueId rows) {
  return recorder.call("sum", {rows}, {{"axes", std::vector<int64_t>{0}}});
}

// Sum of losses and its denominator, for logits [B, C] and labels [B].
void trace_loss(const StepSpec& spec, Graph& graph, ValueId logits, ValueId labels, Traced& out) {
  NETCL_CHECK(spec.loss == "cross_entropy", ErrorCode::kUsage, "loss: unknown loss \"", spec.loss,
              "\"", suggest(spec.loss, {"cross_entropy"}));
  const Shape shape = graph.desc(logits).shape;
  NETCL_CHECK(shape.rank() == 2 && shape[0] == -1 && shape[1] >= 2, ErrorCode::kUsage,
              "model: the loss cross_entropy needs an output [B,classes] with at least 2 classes, "
              "the model gives ",
              shape.str(), "; end it with a linear layer (and flatten before it)");
  out.num_outputs = shape[1];
  const std::vector<ValueId> rows = graph.apply("cross_entropy", {logits, labels});
  out.loss = total(graph, rows[0]);
  out.denominator = total(graph, rows[1]);
  for (const std::string& metric : spec.metrics) {
    NETCL_CHECK(metric == "accuracy", ErrorCode::kUsage, "metrics: unknown metric \"", metric, "\"",
                suggest(metric, {"accuracy"}));
    const ValueId guess = graph.call("argmax", {logits}, {{"axis", int64_t{1}}});
    const ValueId equal = graph.call("equal", {guess, labels});
    const ValueId hits = graph.call("cast", {equal}, {{"dtype", std::string("f32")}});
    out.metrics.emplace_back(step_names::kCorrect, total(graph, hits));
  }
}

Traced trace(const StepSpec& spec, LayerProvider& layers, bool training, std::vector<Slot>& slots,
             Graph& graph) {
  Traced out;
  std::optional<ValueId> random;
  const ValueId x = graph.external(step_names::kX, {DType::kF32, with_rows(spec.input)});
  const ValueId labels = graph.external(step_names::kLabels, {DType::kI32, Shape{-1}});
  Tracer tracer(
      graph, layers, slots,
      [&](const Slot& slot) {
        const auto known = out.parameters.find(slot.name);
        if (known != out.parameters.end()) return known->second;
        return out.parameters[slot.name] = graph.external(slot.name, slot.desc);
      },
      [&] {
        if (!random) random = graph.external(step_names::kRandom, {DType::kI32, Shape{8}});
        return *random;
      },
      {training, spec.locate});
  if (spec.precision != DType::kF32) graph.set_autocast(spec.precision);
  const ValueId logits = tracer.sequence(spec.layers, "model.layers", x);
  out.updates = tracer.updates();
  out.recompute = tracer.recompute();
  trace_loss(spec, graph, logits, labels, out);
  graph.set_autocast(std::nullopt);
  return out;
}

void output_sums(Graph& graph, const Traced& traced) {
  graph.output(step_names::kLoss, traced.loss);
  graph.output(step_names::kDenominator, traced.denominator);
  for (const auto& [name, value] : traced.metrics) graph.output(name, value);
}

void build_update(const StepSpec& spec, const StepGraphs& graphs, Graph& graph) {
  const TensorDesc arena{DType::kF32, Shape{graphs.parameters.num_floats()}};
  const TensorDesc gradients{DType::kF32, Shape{graphs.gradients.num_floats()}};
  const std::vector<std::string> states = spec.optimizer.state_names();
  std::vector<ValueId> in = {graph.external(step_names::kParameters, arena),
                             graph.external(step_names::kGradients, gradients)};
  for (const std::string& state : states) in.push_back(graph.external(state, arena));
  in.push_back(graph.external(step_names::kHyper, {DType::kF32, Shape{8}}));
  in.push_back(graph.external(step_names::kDivisor, {DType::kF32, Shape{1}}));
  const std::vector<ValueId> out =
      graph.apply(spec.optimizer.op(), in, {{"grad_offset", graphs.sums_floats}});
  graph.output(step_names::kParameters, out[0]);
  for (size_t i = 0; i < states.size(); ++i) graph.output(states[i], out[i + 1]);
}

}  // namespace

int64_t StepGraphs::num_parameters() const {
  int64_t n = 0;
  for (const Slot& slot : slots) n += slot.desc.shape.num_elements();
  return n;
}

size_t StepGraphs::largest_all_reduce() const {
  size_t bytes = 0;
  for (const Node& node : train.nodes()) {
    if (node.op->collective) bytes = std::max(bytes, train.desc(node.in[0]).size_bytes());
  }
  return bytes;
}

namespace {

// Asks for the next values of the statistics; one that the model leaves alone keeps its value.
void output_statistics(const Traced& train, StepGraphs& out) {
  for (const Slot& slot : out.statistics) {
    out.statistic_values.add(slot.name, slot.desc);
    ValueId next = train.parameters.at(slot.name);
    for (const SlotUpdate& update : train.updates) {
      if (update.slot == slot.name) next = update.next;
    }
    out.train.output("next/" + slot.name, next);
  }
}

}  // namespace

StepGraphs build_step_graphs(const StepSpec& spec, LayerProvider& layers) {
  StepGraphs out;
  std::vector<Slot> declared;
  const Traced train = trace(spec, layers, true, declared, out.train);
  for (const Slot& slot : declared) (slot.statistic ? out.statistics : out.slots).push_back(slot);
  NETCL_CHECK(!out.slots.empty(), ErrorCode::kUsage, "model: it has no parameters to train");
  out.num_outputs = train.num_outputs;

  std::vector<ValueId> wanted;
  for (const Slot& slot : out.slots) wanted.push_back(train.parameters.at(slot.name));
  const auto grads =
      gradients(out.train, train.loss, std::nullopt, wanted, train.recompute);
  output_sums(out.train, train);
  out.sums = {step_names::kLoss, step_names::kDenominator};
  for (const auto& [name, value] : train.metrics) out.sums.push_back(name);
  for (const std::string& name : out.sums) out.gradients.add(name, {DType::kF32, Shape{1}});
  out.sums_floats = out.gradients.num_floats();

  for (size_t i = out.slots.size(); i-- > 0;) {
    const Slot& slot = out.slots[i];
    const ValueId grad =
        grads[i] ? *grads[i]
                 : out.train.call("full", {}, {{"shape", slot.desc.shape}, {"value", 0.0}});
    out.train.output("grad/" + slot.name, grad);
    out.parameters.add(slot.name, slot.desc);
    out.gradients.add("grad/" + slot.name, slot.desc);
  }
  output_statistics(train, out);
  run_passes(out.train);

  const size_t num_declared = declared.size();
  output_sums(out.eval, trace(spec, layers, false, declared, out.eval));
  NETCL_CHECK(declared.size() == num_declared, ErrorCode::kPlugin, "a layer declares the slot ",
              declared.back().name, " in evaluation only");
  run_passes(out.eval);

  build_update(spec, out, out.update);
  return out;
}

}  // namespace netcl
