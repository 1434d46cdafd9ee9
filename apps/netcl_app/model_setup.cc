#include "apps/netcl_app/model_setup.h"

#include "core/base/error.h"

namespace netcl::app {

namespace {

// "model.layers[2].out" -> "/model/layers/2/out"
std::string json_pointer(const std::string& path) {
  std::string out = "/";
  for (const char c : path) {
    if (c == '.' || c == '[') {
      out += '/';
    } else if (c != ']') {
      out += c;
    }
  }
  return out;
}

// n / (classes * n_c) for class c: every class weighs the same in the sum.
std::vector<float> weights_by_frequency(const Dataset& data) {
  if (data.label_dtype() != DType::kI32) return {};
  const bool text = data.is_text();
  const auto* labels = text ? static_cast<const int32_t*>(data.features()) : data.labels();
  const int64_t n =
      text ? data.text_tokens() : data.num_samples() * data.label_shape().num_elements();
  std::vector<double> counts(static_cast<size_t>(data.num_classes()), 0);
  double total = 0, occurring = 0;
  for (int64_t i = 0; i < n; ++i) {
    if (labels[i] < 0) continue;
    counts[static_cast<size_t>(labels[i])] += 1;
    total += 1;
  }
  for (const double count : counts) occurring += count > 0 ? 1 : 0;
  std::vector<float> out;
  for (const double count : counts)
    out.push_back(count > 0 ? static_cast<float>(total / (occurring * count)) : 0.0f);
  return out;
}

}  // namespace

DataShape DataShape::of(const Dataset& data) {
  return {data.input_dtype(), data.label_dtype(), data.label_shape(), data.class_names(),
          weights_by_frequency(data)};
}

Json DataShape::json() const {
  return {{"input_dtype", dtype_name(input_dtype)},
          {"label_dtype", dtype_name(label_dtype)},
          {"label_shape", label_shape.dims()},
          {"classes", classes}};
}

DataShape DataShape::from_json(const Json& json) {
  DataShape out;
  try {
    out.input_dtype = dtype_named(json.at("input_dtype").get<std::string>());
    out.label_dtype = dtype_named(json.at("label_dtype").get<std::string>());
    out.label_shape = Shape(json.at("label_shape").get<std::vector<int64_t>>());
    out.classes = json.at("classes").get<std::vector<std::string>>();
  } catch (const std::exception& e) {
    fail(ErrorCode::kCheckpoint, "the checkpoint's description of its data is damaged: ", e.what());
  }
  return out;
}

Optimizer optimizer_of(const TrainConfig& config) {
  config.optimizer.check();
  return config.optimizer;
}

Schedule schedule_of(const TrainConfig& config, size_t n_workers) {
  Schedule out = config.schedule.schedule;
  // The least rate is no part of what the number of workers scales.
  if (config.schedule.scale_lr_by_devices) out.min_factor /= static_cast<double>(n_workers);
  out.check();
  return out;
}

double learning_rate_of(const TrainConfig& config, size_t n_workers) {
  const bool scaled = config.schedule.scale_lr_by_devices;
  return config.optimizer.lr * (scaled ? static_cast<double>(n_workers) : 1.0);
}

StepSpec step_spec_of(const TrainConfig& config, const Optimizer& optimizer, const DataShape& data,
                      std::set<std::string> without_passes, std::set<std::string> kept_ops) {
  StepSpec out;
  out.without_passes = std::move(without_passes);
  out.kept_ops = std::move(kept_ops);
  out.input = Shape(config.input);
  out.precision = config.precision == "bf16"   ? DType::kBF16
                  : config.precision == "fp16" ? DType::kF16
                                               : DType::kF32;
  out.input_dtype = data.input_dtype;
  out.label_dtype = data.label_dtype;
  out.label_shape = data.label_shape;
  out.layers = config.model.json().at("layers");
  out.loss = config.loss.spec;
  if (config.loss.balanced) {
    out.loss.class_weights = data.balanced_weights;
    out.loss.pad_weights = true;
  }
  out.metrics = config.metrics;
  out.optimizer = optimizer;
  const auto doc = config.model.doc();
  out.locate = [doc](const std::string& path) {
    return doc->where(doc->location(json_pointer(path)));
  };
  return out;
}

}  // namespace netcl::app
