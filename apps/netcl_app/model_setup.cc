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

}  // namespace

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

StepSpec step_spec_of(const TrainConfig& config, const Optimizer& optimizer) {
  StepSpec out;
  out.input = Shape(config.input);
  out.layers = config.model.json().at("layers");
  out.loss = config.loss;
  out.metrics = config.metrics;
  out.optimizer = optimizer;
  const auto doc = config.model.doc();
  out.locate = [doc](const std::string& path) {
    return doc->where(doc->location(json_pointer(path)));
  };
  return out;
}

TransportAccess transport_access(LoadedPlugin& plugin) {
  TransportAccess out;
  out.api = &plugin.table<netcl_transport_api>(NETCL_TRANSPORT_INTERFACE);
  out.self = plugin.self();
  out.name = plugin.id();
  out.call = [&plugin](const std::function<netcl_rc(netcl_call*)>& body) {
    CallResult result;
    result.rc = plugin.raw_call(body, &result.text);
    return result;
  };
  return out;
}

}  // namespace netcl::app
