#include "core/nn/loss.h"

#include <numeric>

#include "core/base/error.h"
#include "core/base/text.h"

namespace netcl {

namespace {

// The product of some dimensions, of which at most one depends on the batch.
int64_t product(const Shape& shape, size_t first, size_t last) {
  int64_t out = 1;
  for (size_t i = first; i < last; ++i) out *= shape[i];
  return out;
}

// Elements of one sample: the leading dimension carries the batch.
int64_t per_sample(const Shape& shape) {
  const int64_t all = product(shape, 0, shape.rank());
  return all < 0 ? -all : all;
}

ValueId reshaped(Graph& graph, ValueId value, const Shape& shape) {
  if (graph.desc(value).shape == shape) return value;
  return graph.call("reshape", {value}, {{"shape", shape}});
}

ValueId as_f32(Graph& graph, ValueId value) {
  if (graph.desc(value).dtype == DType::kF32) return value;
  return graph.call("cast", {value}, {{"dtype", std::string("f32")}});
}

Compared compare_classes(const LossSpec& spec, Graph& graph, ValueId output, ValueId labels,
                         const Place& place) {
  const Shape shape = graph.desc(output).shape, wanted = graph.desc(labels).shape;
  NETCL_CHECK(graph.desc(labels).dtype == DType::kI32, ErrorCode::kUsage, place("loss"),
              "the loss ", spec.type, " needs classes as labels, the data set has numbers (",
              graph.desc(labels).str(), "); use mse, l1 or bce_with_logits, or give classes");
  const size_t rank = shape.rank();
  NETCL_CHECK(rank >= 2 && shape[0] < 0 && shape[rank - 1] >= 2, ErrorCode::kUsage, place("model"),
              "model: the loss ", spec.type,
              " needs an output [B,classes] with at least 2 classes, the model gives ", shape.str(),
              "; end it with a linear layer (and flatten before it)");
  const int64_t rows = product(shape, 0, rank - 1), labelled = product(wanted, 0, wanted.rank());
  NETCL_CHECK(
      rows == labelled, ErrorCode::kUsage, place("model"), "model: the output ", shape.str(),
      " has scores for ", Shape{rows}.str(), " labels, the data set gives ", wanted.str(),
      wanted.rank() == 1
          ? "; it has one label a sample: end the model with a linear layer behind a flatten, or "
            "one that keeps the last position"
          : "; it has one label a position: the model must keep the positions, [B,T,classes]");
  Compared out;
  out.classes = shape[rank - 1];
  out.output = as_f32(graph, reshaped(graph, output, Shape{rows, out.classes}));
  out.labels = reshaped(graph, labels, Shape{rows});
  return out;
}

Compared compare_targets(const LossSpec& spec, Graph& graph, ValueId output, ValueId labels,
                         const Place& place) {
  const Shape shape = graph.desc(output).shape, wanted = graph.desc(labels).shape;
  NETCL_CHECK(is_float(graph.desc(labels).dtype), ErrorCode::kUsage, place("loss"), "the loss ",
              spec.type, " needs numbers as labels, the data set has classes (",
              graph.desc(labels).str(), "); give targets (data.target), or use cross_entropy");
  NETCL_CHECK(shape.rank() >= 1 && shape[0] < 0 && per_sample(shape) == per_sample(wanted),
              ErrorCode::kUsage, place("model"), "model: the output is ", shape.str(),
              ", the data set's targets are ", wanted.str(), "; the last layer must give ",
              per_sample(wanted), per_sample(wanted) == 1 ? " number" : " numbers", " a sample");
  Compared out;
  out.output = as_f32(graph, output);
  out.labels = reshaped(graph, labels, shape);
  return out;
}

Attrs attrs_of(const LossSpec& spec) {
  if (spec.type == "cross_entropy" && spec.label_smoothing != 0) {
    return {{"ignore_index", spec.ignore_index}, {"label_smoothing", spec.label_smoothing}};
  }
  if (spec.takes_classes()) return {{"ignore_index", spec.ignore_index}};
  if (spec.type == "huber") return {{"delta", spec.delta}};
  if (spec.type == "smooth_l1") return {{"beta", spec.delta}};
  if (spec.type == "kl_div" && spec.log_target) return {{"log_target", int64_t{1}}};
  return {};
}

}  // namespace

const std::vector<std::string>& loss_names() {
  static const std::vector<std::string> names = {
      "cross_entropy", "bce_with_logits", "mse", "l1", "smooth_l1", "huber", "nll", "kl_div"};
  return names;
}

ValueId total(Graph& graph, ValueId value) {
  std::vector<int64_t> axes(graph.desc(value).shape.rank());
  std::iota(axes.begin(), axes.end(), int64_t{0});
  return graph.call("sum", {value}, {{"axes", axes}});
}

ValueId filled(Graph& graph, const Shape& shape, double value) {
  return graph.call("full", {}, {{"shape", shape}, {"value", value}});
}

Compared compare(const LossSpec& spec, Graph& graph, ValueId output, ValueId labels,
                 const Place& place) {
  const std::vector<std::string>& names = loss_names();
  bool known = false;
  for (const std::string& name : names) known = known || name == spec.type;
  NETCL_CHECK(known, ErrorCode::kUsage, "loss: unknown loss \"", spec.type, "\"",
              suggest(spec.type, names));
  return spec.takes_classes() ? compare_classes(spec, graph, output, labels, place)
                              : compare_targets(spec, graph, output, labels, place);
}

LossSums trace_loss(const LossSpec& spec, Graph& graph, const Compared& sides, Constants& constants,
                    const Place& place) {
  std::vector<ValueId> in = {sides.output, sides.labels};
  LossSums out;
  if (!spec.class_weights.empty()) {
    std::vector<float> weights = spec.class_weights;
    if (spec.pad_weights && static_cast<int64_t>(weights.size()) < sides.classes)
      weights.resize(static_cast<size_t>(sides.classes), 0.0f);
    const auto count = static_cast<int64_t>(weights.size());
    NETCL_CHECK(count == sides.classes, ErrorCode::kUsage, place("loss.class_weights"), count,
                " class weights, but the model has ", sides.classes,
                " outputs; give one weight a class");
    in.push_back(constants.in_graph(graph, "loss.class_weights", weights, Shape{count}));
    out.counts = false;
  }
  const std::vector<ValueId> rows = graph.apply(spec.type, in, attrs_of(spec));
  out.loss = total(graph, rows[0]);
  if (rows.size() > 1) {
    out.denominator = total(graph, rows[1]);
    return out;
  }
  const Shape& shape = graph.desc(sides.output).shape;
  const bool samples = spec.type == "kl_div";
  out.denominator = total(graph, filled(graph, samples ? Shape{shape[0]} : shape, 1));
  out.counts = !samples;
  return out;
}

}  // namespace netcl
