#include "core/verify/layer_check.h"

#include <algorithm>
#include <cmath>
#include <set>

#include "core/autograd/backward.h"
#include "core/base/error.h"
#include "core/ops/case_inputs.h"
#include "core/ops/host_recorder.h"
#include "core/verify/layer_replay.h"

namespace netcl {
using nlohmann::ordered_json;

namespace {

constexpr int64_t kBatch = 3;        // of gradients
constexpr double kStep = 1e-6;       // of finite differences, where values are about 1
constexpr double kLargeStep = 1e-7;  // of models with so many kinks that a wider one meets some
constexpr double kTolerance = 1e-5;  // of the sum of the terms' sizes
constexpr double kSmooth = 1e-7;     // two steps' differences agree so well on smooth ground
constexpr int kMostDirections = 8;   // tried in vain, because each meets a kink
constexpr int64_t kLargeModel = 100'000;  // parameters

// The rows of the first `n` samples.
std::vector<double> first_rows(const HostTensor& t, int64_t n, int64_t batch) {
  const size_t each = t.data.size() / static_cast<size_t>(batch);
  return {t.data.begin(),
          t.data.begin() + static_cast<std::ptrdiff_t>(each * static_cast<size_t>(n))};
}

bool nearly_equal(const std::vector<double>& a, const std::vector<double>& b) {
  if (a.size() != b.size()) return false;
  for (size_t i = 0; i < a.size(); ++i) {
    if (a[i] == b[i] || (std::isnan(a[i]) && std::isnan(b[i]))) continue;
    if (!(std::fabs(a[i] - b[i]) <= 1e-9 * (1 + std::fabs(b[i])))) return false;
  }
  return true;
}

// sum of `weights` * outputs: what gradients are taken of.
double weighted_sum(const LayerReplay& replay, const std::vector<HostTensor>& weights) {
  double out = 0;
  for (size_t k = 0; k < weights.size(); ++k) {
    const HostTensor& y = replay.output(k);
    for (size_t i = 0; i < weights[k].data.size(); ++i) out += weights[k].data[i] * y.data[i];
  }
  return out;
}

// Deep models that normalise over the few samples of a check are chaotic: no step is small enough
// for finite differences. In evaluation they are not.
TracedExample trace_for_gradients(const LayerExample& example, LayerProvider& layers) {
  TracedExample out = trace_example(example, layers, /*training=*/true);
  return is_large(out) ? trace_example(example, layers, /*training=*/false) : out;
}

// Finite differences beside recorded gradients, for one example.
class GradientCheck {
 public:
  GradientCheck(const LayerExample& example, LayerProvider& layers)
      : traced_(trace_for_gradients(example, layers)),
        values_(replay_values(traced_, example, kBatch)) {
    base_.emplace(traced_, values_, kBatch);
    for (size_t k = 0; k < traced_.out.size(); ++k) {
      const TensorDesc& desc = base_->output(k).desc;
      if (is_float(desc.dtype)) {
        any_float_ = true;
        weights_.push_back(random_tensor(desc, 0.5, 1.5, 77 + k));
      } else {
        weights_.push_back({desc, {}});
      }
    }
    for (const auto& [name, tensor] : values_)
      if (is_float(tensor.desc.dtype) && !is_statistic(name)) wanted_.push_back(name);
  }

  LayerFindings run() {
    LayerFindings out;
    if (!any_float_) return out;
    record();
    for (const Slot& slot : traced_.slots) {
      if (slot.statistic) continue;
      if (has_gradient_.count(slot.name) == 0)
        out.wrong.push_back("the parameter " + slot.name +
                            " has no gradient: no output depends on it in a way that can be "
                            "differentiated");
    }
    if (is_large(traced_)) {  // all at once: a run takes its time
      try_direction(wanted_, &out);
    } else {
      for (const std::string& name : wanted_) try_direction({name}, &out);
    }
    return out;
  }

 private:
  bool is_statistic(const std::string& name) const {
    return std::any_of(traced_.slots.begin(), traced_.slots.end(),
                       [&](const Slot& s) { return s.name == name && s.statistic; });
  }

  // The recorded gradients of the weighted sum.
  void record() {
    std::vector<ValueId> wanted;
    for (const std::string& name : wanted_) {
      wanted.push_back(base_->external(name));
      gradient_[name] =
          HostTensor{values_.at(name).desc, std::vector<double>(values_.at(name).data.size())};
    }
    HostRecorder& host = base_->recorder();
    for (size_t k = 0; k < weights_.size(); ++k) {
      if (weights_[k].data.empty()) continue;
      const auto found = gradients(host, base_->out()[k], host.input(weights_[k]), wanted);
      for (size_t i = 0; i < found.size(); ++i) {
        if (!found[i]) continue;
        has_gradient_.insert(wanted_[i]);
        const HostTensor& g = host.value(*found[i]);
        std::vector<double>& sum = gradient_[wanted_[i]].data;
        for (size_t e = 0; e < sum.size(); ++e) sum[e] += g.data[e];
      }
    }
  }

  // A direction in which no recorded term cancels another.
  std::map<std::string, std::vector<double>> direction(const std::vector<std::string>& names,
                                                       uint64_t seed) const {
    std::map<std::string, std::vector<double>> out;
    for (const std::string& name : names) {
      const HostTensor& g = gradient_.at(name);
      std::vector<double> d = random_tensor(g.desc, 0.5, 1.0, ++seed).data;
      for (size_t i = 0; i < d.size(); ++i)
        if (g.data[i] < 0 || (g.data[i] == 0 && i % 2 == 0)) d[i] = -d[i];
      out[name] = std::move(d);
    }
    return out;
  }

  double difference(const std::map<std::string, std::vector<double>>& direction, double step) {
    double sides[2] = {};
    for (const int side : {0, 1}) {
      auto moved = values_;
      for (const auto& [name, d] : direction) {
        std::vector<double>& data = moved.at(name).data;
        for (size_t i = 0; i < data.size(); ++i) data[i] += (side == 0 ? step : -step) * d[i];
      }
      sides[side] = weighted_sum(LayerReplay(traced_, moved, kBatch), weights_);
    }
    return (sides[0] - sides[1]) / (2 * step);
  }

  static std::string what(const std::vector<std::string>& names) {
    return names.size() == 1 ? names[0] : "all inputs and parameters";
  }

  void try_direction(const std::vector<std::string>& names, LayerFindings* out) {
    for (int attempt = 0; attempt < kMostDirections; ++attempt) {
      const auto along = direction(names, 1000 * static_cast<uint64_t>(attempt + 1));
      double recorded = 0, size = 0;
      for (const auto& [name, d] : along) {
        const std::vector<double>& g = gradient_.at(name).data;
        for (size_t i = 0; i < d.size(); ++i) {
          recorded += g[i] * d[i];
          size += std::fabs(g[i] * d[i]);
        }
      }
      const double step = is_large(traced_) ? kLargeStep : kStep;
      const double wide = difference(along, step), narrow = difference(along, step / 4);
      const double limit = kTolerance * (size + std::fabs(narrow)) + kSmooth;
      if (std::fabs(wide - narrow) > limit) continue;  // a kink lies between: another direction
      ++out->tried;
      if (!(std::fabs(narrow - recorded) <= limit))
        out->wrong.push_back(str_cat(what(names), ": the gradient along a direction is ", recorded,
                                     ", finite differences say ", narrow));
      return;
    }
    out->wrong.push_back(what(names) + ": no direction was found in which it is smooth");
  }

  const TracedExample traced_;
  const std::map<std::string, HostTensor> values_;
  std::optional<LayerReplay> base_;
  std::vector<HostTensor> weights_;  // of outputs; without elements for those that are no floats
  bool any_float_ = false;
  std::vector<std::string> wanted_;
  std::map<std::string, HostTensor> gradient_;
  std::set<std::string> has_gradient_;
};

std::string slots_text(const std::vector<Slot>& slots) {
  std::string out;
  for (const Slot& s : slots)
    out += str_cat(s.name, " ", s.desc.str(), s.statistic ? " statistic" : "", "; ");
  return out;
}

// Numbers at and beyond the edge of what a key is for.
std::vector<ordered_json> odd_values(const LayerAttr& attr) {
  constexpr int64_t kHuge = int64_t{1} << 40;
  switch (attr.kind) {
    case NETCL_ATTR_INT:
      return {0, -1, 1, 7, kHuge, -kHuge, attr.min, attr.max, attr.min - 1, attr.max + 1, "x"};
    case NETCL_ATTR_FLOAT:
      return {0, -1.0, 1.0, 1e30, -1e30, 1e-30, attr.min, attr.max, attr.max * 2 + 1, "x"};
    case NETCL_ATTR_BOOL:
      return {true, false, 2};
    case NETCL_ATTR_STR: {
      std::vector<ordered_json> out(attr.choices.begin(), attr.choices.end());
      out.insert(out.end(), {"", "no such word", std::string(5000, 'x'), 3});
      return out;
    }
    case NETCL_ATTR_INTS:
      return {ordered_json::array(), {0}, {-1}, {kHuge}, {1, 2, 3, 4, 5, 6, 7, 8, 9}, {"x"}};
    default:
      return {ordered_json::array(), 3, {{{"type", "no such type"}}}};
  }
}

}  // namespace

bool is_large(const TracedExample& traced) {
  int64_t parameters = 0;
  for (const Slot& slot : traced.slots) parameters += slot.desc.shape.num_elements();
  return parameters > kLargeModel;
}

LayerFindings check_layer_shapes(const LayerExample& example, LayerProvider& layers) {
  LayerFindings out;
  for (const bool training : {true, false}) {
    const TracedExample traced = trace_example(example, layers, training);
    const auto whole = replay_values(traced, example, 5);
    const LayerReplay all(traced, whole, 5);
    for (const int64_t batch : {5, 2, 1, 0}) {
      const LayerReplay some(traced, first_samples(traced, whole, batch, 5), batch);
      ++out.tried;
      for (size_t k = 0; k < traced.out.size(); ++k) {
        const Shape& shape = traced.graph.desc(traced.out[k]).shape;
        const HostTensor& got = some.output(k);
        if (!(got.desc.shape == shape.with_batch(batch)))
          out.wrong.push_back(str_cat("output ", k, " of a batch of ", batch, " is ",
                                      got.desc.str(), "; the trace says ", shape.str()));
        const bool by_sample = shape.rank() > 0 && shape[0] < 0;
        if (training || !by_sample) continue;
        if (!nearly_equal(got.data, first_rows(all.output(k), batch, 5)))
          out.wrong.push_back(str_cat("in evaluation output ", k, " of a batch of ", batch,
                                      " differs from the same samples' in a batch of 5"));
      }
    }
  }
  return out;
}

LayerFindings check_layer_gradients(const LayerExample& example, LayerProvider& layers) {
  return GradientCheck(example, layers).run();
}

LayerFindings check_layer_replay(const std::vector<LayerExample>& examples, LayerProvider& layers) {
  LayerFindings out;
  std::vector<std::string> first;
  for (const LayerExample& example : examples) {
    const TracedExample train = trace_example(example, layers, true);
    const TracedExample eval = trace_example(example, layers, false);
    first.push_back(train.graph.str() + eval.graph.str());
    const std::string in_training = slots_text(train.slots), in_evaluation = slots_text(eval.slots);
    if (in_training != in_evaluation)
      out.wrong.push_back(str_cat(example.text(), ": training has the parameters ", in_training,
                                  "evaluation has ", in_evaluation, "they must be the same"));
    out.tried += 2;
  }
  for (size_t i = 0; i < examples.size(); ++i) {
    const std::string again = trace_example(examples[i], layers, true).graph.str() +
                              trace_example(examples[i], layers, false).graph.str();
    out.tried += 2;
    if (again != first[i])
      out.wrong.push_back(examples[i].text() +
                          ": traced again it is another layer; a trace may depend on keys and "
                          "shapes alone");
  }
  return out;
}

LayerFindings check_layer_attributes(const LayerExample& example, LayerProvider& layers) {
  LayerFindings out;
  const auto try_one = [&](const LayerExample& odd) {
    ++out.tried;
    try {
      trace_example(odd, layers, true);
    } catch (const Error& e) {
      if (e.message().empty())
        out.wrong.push_back(odd.text() + ": refused without a word; say why");
    }
  };
  const LayerType& type = layers.find(example.config.at("type").get<std::string>());
  for (const LayerAttr& attr : type.attrs()) {
    for (const ordered_json& value : odd_values(attr)) {
      LayerExample odd = example;
      odd.config[attr.key] = value;
      try_one(odd);
    }
  }
  for (const DType dtype : {DType::kF32, DType::kI32, DType::kF16, DType::kBool}) {
    for (const Shape& shape : {Shape{}, Shape{0}, Shape{1}, Shape{3, 0}, Shape{1, 1, 1, 1, 1, 1, 1},
                               Shape{int64_t{1} << 40}}) {
      LayerExample odd = example;
      odd.sample = {dtype, shape};
      try_one(odd);
    }
  }
  return out;
}

}  // namespace netcl
