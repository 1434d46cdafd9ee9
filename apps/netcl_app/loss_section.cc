#include "apps/netcl_app/loss_section.h"

#include "core/base/text.h"
#include "core/nn/metric.h"

namespace netcl::app {
namespace {

constexpr double kMostWeight = 1e6;
constexpr int64_t kMostIndex = (int64_t{1} << 31) - 1;

void parse_class_keys(const ConfigView& view, LossConfig& out) {
  LossSpec& spec = out.spec;
  spec.ignore_index = view.integer_or("ignore_index", -100, -kMostIndex, kMostIndex);
  if (spec.type == "cross_entropy")
    spec.label_smoothing = view.number_or("label_smoothing", 0, 0, 1);
  const auto weights = view.find("class_weights");
  if (!weights) return;
  if (weights->is_text()) {
    weights->as_text({"balanced"});
    out.balanced = true;
    return;
  }
  double sum = 0;
  for (size_t i = 0; i < weights->as_list().size(); ++i) {
    const double weight = (*weights)[i].as_number(0, kMostWeight);
    spec.class_weights.push_back(static_cast<float>(weight));
    sum += weight;
  }
  if (sum == 0) weights->reject("expected at least one weight above 0");
}

// "top_k" says nothing without its k.
[[noreturn]] void reject_metric(const ConfigView& view, const std::string& name) {
  std::vector<std::string> quoted;
  for (const std::string& known : metric_names()) quoted.push_back("\"" + known + "\"");
  view.reject(str_cat("expected one of ", join(quoted, ", "), ", found \"", name, "\"",
                      suggest(name, metric_names())));
}

}  // namespace

LossConfig parse_loss(const ConfigView& view) {
  LossConfig out;
  if (!view.is_object()) {
    out.spec.type = view.as_text(loss_names());
    return out;
  }
  LossSpec& spec = out.spec;
  spec.type = view.text("type", loss_names());
  if (spec.type == "cross_entropy") {
    view.check_keys({"type", "label_smoothing", "ignore_index", "class_weights"});
  } else if (spec.type == "nll") {
    view.check_keys({"type", "ignore_index", "class_weights"});
  } else if (spec.type == "huber") {
    view.check_keys({"type", "delta"});
  } else if (spec.type == "smooth_l1") {
    view.check_keys({"type", "beta"});
  } else if (spec.type == "kl_div") {
    view.check_keys({"type", "log_target"});
  } else {
    view.check_keys({"type"});
  }
  if (spec.takes_classes()) parse_class_keys(view, out);
  for (const char* key : {"delta", "beta"}) {
    if (const auto delta = view.find(key)) {
      spec.delta = delta->as_number(0, kMostWeight);
      if (spec.delta == 0) delta->reject("expected a number above 0, found 0");
    }
  }
  if (spec.type == "kl_div") spec.log_target = view.boolean_or("log_target", false);
  return out;
}

Json resolved_loss(const LossConfig& loss) {
  const LossSpec& spec = loss.spec;
  Json out = {{"type", spec.type}};
  if (spec.label_smoothing != 0) out["label_smoothing"] = spec.label_smoothing;
  if (spec.ignore_index != LossSpec().ignore_index) out["ignore_index"] = spec.ignore_index;
  if (loss.balanced) out["class_weights"] = "balanced";
  if (!spec.class_weights.empty()) out["class_weights"] = spec.class_weights;
  if (spec.type == "huber") out["delta"] = spec.delta;
  if (spec.type == "smooth_l1") out["beta"] = spec.delta;
  if (spec.log_target) out["log_target"] = true;
  return out.size() == 1 ? Json(spec.type) : out;
}

std::vector<std::string> parse_metrics(const ConfigView& view) {
  std::vector<std::string> out;
  for (size_t i = 0; i < view.as_list().size(); ++i) {
    const ConfigView metric = view[i];
    if (metric.is_object()) {
      metric.check_keys({"type", "k"});
      const std::string type = metric.text("type");
      if (type == "top_k") {
        out.push_back("top" + std::to_string(metric.integer("k", 1, 1000)));
        continue;
      }
      if (!is_metric(type)) reject_metric(metric.at("type"), type);
      out.push_back(type);
      continue;
    }
    const std::string name = metric.as_text();
    if (!is_metric(name)) reject_metric(metric, name);
    out.push_back(name);
  }
  return out;
}

std::vector<std::string> usual_metrics(const LossConfig& loss) {
  if (loss.spec.takes_classes() || loss.spec.type == "bce_with_logits") return {"accuracy"};
  if (loss.spec.type == "kl_div") return {};
  return {"mse", "mae"};
}

}  // namespace netcl::app
