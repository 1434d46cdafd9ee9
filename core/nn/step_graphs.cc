#include "core/nn/step_graphs.h"

#include <algorithm>
#include <map>
#include <optional>

#include "core/autograd/backward.h"
#include "core/base/error.h"
#include "core/base/text.h"
#include "core/nn/loss_scale.h"

namespace netcl {

namespace {

struct Traced {
  ValueId loss = 0, denominator = 0;
  std::vector<std::pair<std::string, ValueId>> metrics;
  std::map<std::string, ValueId> parameters;  // parameters and statistics, by slot name
  std::vector<SlotUpdate> updates;
  std::vector<NodeRange> recompute;
  int64_t num_outputs = 0, vocabulary = 0;
};

Shape with_rows(const Shape& sample) {
  std::vector<int64_t> dims = {-1};
  dims.insert(dims.end(), sample.dims().begin(), sample.dims().end());
  return Shape(std::move(dims));
}

// "digits.json:12: loss.class_weights: ", or the path alone.
Place place_of(const StepSpec& spec) {
  return [&spec](const std::string& path) {
    const std::string where = spec.locate ? spec.locate(path) : "";
    return (where.empty() ? "" : where + ": ") + (path == "model" ? "" : path + ": ");
  };
}

// Sums of loss, denominator and metrics.
void trace_sums(const StepSpec& spec, Graph& graph, ValueId output, bool training,
                Constants& constants, Traced& out) {
  const Place place = place_of(spec);
  const ValueId labels =
      graph.external(step_names::kLabels, {spec.label_dtype, with_rows(spec.label_shape)});
  const Compared sides = compare(spec.loss, graph, output, labels, place);
  const LossSums sums = trace_loss(spec.loss, graph, sides, constants, place);
  out.num_outputs = sides.classes;
  out.loss = sums.loss;
  out.denominator = sums.denominator;
  out.metrics =
      trace_metrics(spec.metrics, spec.loss, sums, sides, training, graph, constants, place);
}

// Rows of the table that tokens index, or 0.
int64_t vocabulary_of(const Graph& graph, ValueId x) {
  for (const Node& node : graph.nodes()) {
    if (node.op->name.rfind("embedding", 0) != 0 && node.op->name.rfind("gather", 0) != 0) continue;
    bool tokens = false;
    for (const ValueId v : node.in) tokens = tokens || graph.root(v) == x;
    for (const ValueId v : node.in) {
      const TensorDesc& desc = graph.desc(v);
      if (tokens && is_float(desc.dtype) && desc.shape.rank() == 2) return desc.shape[0];
    }
  }
  return 0;
}

enum class TraceKind { kTrain, kEval, kForward };

Traced trace(const StepSpec& spec, LayerProvider& layers, TraceKind kind, std::vector<Slot>& slots,
             Constants& constants, Graph& graph) {
  const bool training = kind == TraceKind::kTrain;
  Traced out;
  std::optional<ValueId> random;
  const ValueId x = graph.external(step_names::kX, {spec.input_dtype, with_rows(spec.input)});
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
  const ValueId output = tracer.sequence(spec.layers, "model.layers", x);
  for (const TracedLayer& layer : tracer.traced()) {
    for (size_t i = layer.nodes.begin; i < layer.nodes.end; ++i) {
      for (const ValueId v : graph.nodes()[i].out) graph.set_origin(v, layer.name);
    }
  }
  graph.set_autocast(std::nullopt);  // losses and counts are exact
  out.updates = tracer.updates();
  out.recompute = tracer.recompute();
  if (spec.input_dtype == DType::kI32) out.vocabulary = vocabulary_of(graph, x);
  if (kind == TraceKind::kForward) {
    const bool wide = graph.desc(output).dtype != DType::kF32;
    graph.output(step_names::kOutput,
                 wide ? graph.call("cast", {output}, {{"dtype", std::string("f32")}}) : output);
  } else {
    trace_sums(spec, graph, output, training, constants, out);
  }
  return out;
}

void output_sums(Graph& graph, const Traced& traced) {
  graph.output(step_names::kLoss, traced.loss);
  graph.output(step_names::kDenominator, traced.denominator);
  for (const auto& [name, value] : traced.metrics) graph.output(name, value);
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

namespace {

constexpr int64_t kMostFloats = int64_t{1} << 32;  // elements are counted in 31 bits

// The gradients of the slots, none for those that are frozen.
std::vector<std::optional<ValueId>> slot_gradients(const Traced& train, StepGraphs& out) {
  std::vector<ValueId> wanted;
  std::vector<size_t> of;
  for (size_t i = 0; i < out.slots.size(); ++i) {
    if (out.plan.num_group(out.slots[i].name) < 0) continue;
    wanted.push_back(train.parameters.at(out.slots[i].name));
    of.push_back(i);
  }
  std::optional<ValueId> seed;
  if (out.loss_scaled) seed = loss_scale::scale(out.train, loss_scale::state(out.train), 0);
  const auto found = gradients(out.train, train.loss, seed, wanted, train.recompute);
  std::vector<std::optional<ValueId>> grads(out.slots.size());
  for (size_t i = 0; i < of.size(); ++i) grads[of[i]] = found[i];
  return grads;
}

}  // namespace

StepGraphs build_step_graphs(const StepSpec& spec, LayerProvider& layers) {
  StepGraphs out;
  out.loss_scaled = spec.precision == DType::kF16;
  std::vector<Slot> declared;
  const Traced train = trace(spec, layers, TraceKind::kTrain, declared, out.constants, out.train);
  for (const Slot& slot : declared) (slot.statistic ? out.statistics : out.slots).push_back(slot);
  NETCL_CHECK(
      !out.slots.empty(), ErrorCode::kUsage, place_of(spec)("model.layers"),
      "no layer has parameters, so there is nothing to train; add one that has, such as linear");
  out.num_outputs = train.num_outputs;
  out.vocabulary = train.vocabulary;

  for (size_t i = out.slots.size(); i-- > 0;)
    out.parameters.add(out.slots[i].name, out.slots[i].desc);
  NETCL_CHECK(out.parameters.num_floats() <= kMostFloats, ErrorCode::kDevice,
              largest_of("the parameters", out.parameters), " need ",
              out.parameters.num_floats() * 4, " bytes; no device computes with more than ",
              kMostFloats * 4, " in one piece. Make the model's layers smaller");
  out.plan = plan_update(spec.optimizer, out.parameters);
  const auto grads = slot_gradients(train, out);
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
    out.gradients.add("grad/" + slot.name, slot.desc);
  }
  output_statistics(train, out);
  out.train.leave_out(spec.without_passes);
  out.train.keep_ops(spec.kept_ops);
  out.passes = run_passes(out.train);

  const size_t num_declared = declared.size();
  const Traced eval = trace(spec, layers, TraceKind::kEval, declared, out.constants, out.eval);
  NETCL_CHECK(declared.size() == num_declared, ErrorCode::kPlugin, "a layer declares the slot ",
              declared.back().name, " in evaluation only");
  output_sums(out.eval, eval);
  for (const Graph::Place& sum : out.eval.outputs())
    out.eval_sums.add(sum.name, out.eval.desc(sum.value));
  trace(spec, layers, TraceKind::kForward, declared, out.constants, out.forward);
  for (Graph* graph : {&out.forward, &out.eval}) {
    graph->leave_out(spec.without_passes);
    graph->keep_ops(spec.kept_ops);
    run_passes(*graph);
  }

  const int64_t floats = out.gradients.num_floats();
  out.update = update_graph(spec.optimizer, out.plan, floats, out.sums_floats, out.loss_scaled);
  out.accumulate = accumulate_graph(floats);
  return out;
}

}  // namespace netcl
