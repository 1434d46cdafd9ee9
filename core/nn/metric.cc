#include "core/nn/metric.h"

#include <algorithm>
#include <numeric>

#include "core/base/error.h"
#include "core/base/text.h"

namespace netcl {

namespace {

// A class more than this makes the matrix larger than what it tells.
constexpr int64_t kMostConfusedClasses = 2048;
constexpr int64_t kMostTop = 1000;

// Records what several metrics share, once.
class ClassMetrics {
 public:
  ClassMetrics(Graph& graph, Constants& constants, const LossSpec& loss, const Compared& sides)
      : graph_(graph),
        constants_(constants),
        sides_(sides),
        labels_(sides.labels),
        rows_(graph.desc(sides.labels).shape) {
    // A class that is ignored must not be guessed right either.
    if (loss.ignore_index < 0 || loss.ignore_index >= sides.classes) return;
    const ValueId ignored = graph.call("equal", {labels_, whole(loss.ignore_index)});
    labels_ = graph.call("where", {ignored, whole(-1), labels_});
  }

  ValueId correct() { return total(graph_, number(graph_.call("equal", {guess(), labels_}))); }

  // Rows whose label is a class.
  ValueId count() { return total(graph_, labelled()); }

  // A row is a hit if fewer than k scores are better than its label's; of equal ones the first is
  // better.
  ValueId top(int64_t k) {
    const ValueId better =
        graph_.call("less", {rank(), filled(graph_, Shape{}, static_cast<double>(k))});
    return total(graph_, graph_.call("mul", {number(better), labelled()}));
  }

  // one_hot(labels)^T one_hot(guesses)
  ValueId confusion() {
    const ValueId guesses =
        graph_.call("equal", {graph_.call("reshape", {guess()}, {{"shape", column()}}), classes()});
    return graph_.call("matmul", {number(is_label()), number(guesses)},
                       {{"transpose_a", int64_t{1}}});
  }

 private:
  Shape column() const { return Shape{rows_[0], 1}; }

  ValueId whole(int64_t value) {
    return graph_.call(
        "full", {},
        {{"shape", Shape{}}, {"value", static_cast<double>(value)}, {"dtype", std::string("i32")}});
  }

  ValueId number(ValueId truth) {
    return graph_.call("cast", {truth}, {{"dtype", std::string("f32")}});
  }

  ValueId guess() {
    if (!guess_) guess_ = graph_.call("argmax", {sides_.output}, {{"axis", int64_t{1}}});
    return *guess_;
  }

  // 1 where the label is a class, else 0; f32[N].
  ValueId labelled() {
    if (!labelled_) labelled_ = number(graph_.call("less", {whole(-1), labels_}));
    return *labelled_;
  }

  ValueId classes() {
    std::vector<int32_t> numbers(static_cast<size_t>(sides_.classes));
    std::iota(numbers.begin(), numbers.end(), 0);
    return constants_.in_graph(graph_, "metric.classes", numbers, Shape{1, sides_.classes});
  }

  ValueId label_column() { return graph_.call("reshape", {labels_}, {{"shape", column()}}); }

  // bool[N,C]
  ValueId is_label() {
    if (!is_label_) is_label_ = graph_.call("equal", {label_column(), classes()});
    return *is_label_;
  }

  // How many scores are better than the label's; f32[N].
  ValueId rank() {
    if (rank_) return *rank_;
    const ValueId scores = sides_.output;
    const ValueId zero = filled(graph_, Shape{}, 0);
    const Attrs by_row{{"axes", std::vector<int64_t>{1}}, {"keep", int64_t{1}}};
    const ValueId own =
        graph_.call("sum", {graph_.call("where", {is_label(), scores, zero})}, by_row);
    const ValueId greater = number(graph_.call("less", {own, scores}));
    const ValueId equal = number(graph_.call("equal", {own, scores}));
    const ValueId before = number(graph_.call("less", {classes(), label_column()}));
    const ValueId better = graph_.call("add", {greater, graph_.call("mul", {equal, before})});
    rank_ = graph_.call("sum", {better}, {{"axes", std::vector<int64_t>{1}}});
    return *rank_;
  }

  Graph& graph_;
  Constants& constants_;
  const Compared& sides_;
  ValueId labels_;
  const Shape rows_;
  std::optional<ValueId> guess_, labelled_, is_label_, rank_;
};

// Multi-label: a score above 0 says yes, a target above 1/2 is one.
ValueId right_answers(Graph& graph, const Compared& sides) {
  const ValueId yes = graph.call("less", {filled(graph, Shape{}, 0), sides.output});
  const ValueId wanted = graph.call("less", {filled(graph, Shape{}, 0.5), sides.labels});
  const ValueId right = graph.call("equal", {yes, wanted});
  return total(graph, graph.call("cast", {right}, {{"dtype", std::string("f32")}}));
}

void check_fits(const std::string& metric, const LossSpec& loss, const Compared& sides,
                const Place& place) {
  NETCL_CHECK(is_metric(metric), ErrorCode::kUsage, "metrics: unknown metric \"", metric, "\"",
              suggest(metric, metric_names()));
  const bool numbers = metric == "mse" || metric == "mae";
  const bool fits = numbers                ? sides.classes == 0
                    : metric == "accuracy" ? sides.classes > 0 || loss.type == "bce_with_logits"
                                           : sides.classes > 0;
  NETCL_CHECK(fits, ErrorCode::kUsage, place("metrics"), "the metric ", metric,
              " does not go with the loss ", loss.type, "; ",
              numbers ? "it needs numbers as targets" : "it needs classes as labels");
  NETCL_CHECK(!needs_confusion(metric) || sides.classes <= kMostConfusedClasses, ErrorCode::kUsage,
              place("metrics"), "the metric ", metric, " needs a confusion matrix, which ",
              sides.classes, " classes are too many for (at most ", kMostConfusedClasses, ")");
  const auto k = top_k_of(metric);
  NETCL_CHECK(!k || *k <= sides.classes, ErrorCode::kUsage, place("metrics"), "the metric ", metric,
              " needs at least ", k.value_or(0), " classes, the model has ", sides.classes);
}

}  // namespace

std::optional<int64_t> top_k_of(const std::string& metric) {
  if (metric.size() < 4 || metric.size() > 7 || metric.rfind("top", 0) != 0) return std::nullopt;
  int64_t k = 0;
  for (const char c : metric.substr(3)) {
    if (c < '0' || c > '9') return std::nullopt;
    k = k * 10 + (c - '0');
  }
  return k >= 1 && k <= kMostTop && metric[3] != '0' ? std::make_optional(k) : std::nullopt;
}

const std::vector<std::string>& metric_names() {
  static const std::vector<std::string> names = {"accuracy",   "top5",   "confusion", "per_class",
                                                 "precision",  "recall", "f1",        "macro_f1",
                                                 "perplexity", "mse",    "mae"};
  return names;
}

bool is_metric(const std::string& name) {
  const std::vector<std::string>& names = metric_names();
  return top_k_of(name).has_value() || std::find(names.begin(), names.end(), name) != names.end();
}

bool needs_confusion(const std::string& metric) {
  return metric == "confusion" || metric == "per_class" || metric == "precision" ||
         metric == "recall" || metric == "f1" || metric == "macro_f1";
}

std::vector<NamedSum> trace_metrics(const std::vector<std::string>& metrics, const LossSpec& loss,
                                    const LossSums& sums, const Compared& sides, bool training,
                                    Graph& graph, Constants& constants, const Place& place) {
  std::vector<NamedSum> out;
  const auto add = [&](const std::string& name, const auto& make) {
    for (const NamedSum& known : out) {
      if (known.first == name) return;
    }
    out.emplace_back(name, make());
  };
  std::optional<ClassMetrics> of_classes;
  if (sides.classes > 0) of_classes.emplace(graph, constants, loss, sides);
  const auto error = [&] { return graph.call("sub", {sides.output, sides.labels}); };
  for (const std::string& metric : metrics) {
    check_fits(metric, loss, sides, place);
    if (metric == "accuracy") {
      add(metric_sums::kCorrect,
          [&] { return of_classes ? of_classes->correct() : right_answers(graph, sides); });
    }
    if (training) continue;
    if (const auto k = top_k_of(metric)) add(metric, [&] { return of_classes->top(*k); });
    if (needs_confusion(metric))
      add(metric_sums::kConfusion, [&] { return of_classes->confusion(); });
    if (metric == "mse") {
      add(metric_sums::kSquared, [&] {
        const ValueId d = error();
        return total(graph, graph.call("mul", {d, d}));
      });
    }
    if (metric == "mae")
      add(metric_sums::kAbsolute, [&] { return total(graph, graph.call("abs", {error()})); });
  }
  if (!sums.counts && !out.empty()) {
    add(metric_sums::kCount, [&] {
      return of_classes ? of_classes->count()
                        : total(graph, filled(graph, graph.desc(sides.output).shape, 1));
    });
  }
  return out;
}

}  // namespace netcl
