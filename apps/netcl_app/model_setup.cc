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
  const OptimizerConfig& c = config.optimizer;
  Optimizer out;
  out.type = optimizer_type(c.type);
  out.lr = c.lr;
  out.weight_decay = c.weight_decay;
  out.momentum = c.momentum;
  out.dampening = c.dampening;
  out.nesterov = c.nesterov;
  out.beta1 = c.beta1;
  out.beta2 = c.beta2;
  out.epsilon = c.eps;
  out.check();
  return out;
}

Schedule schedule_of(const TrainConfig& config) {
  const ScheduleConfig& c = config.schedule;
  Schedule out;
  out.type = schedule_type(c.type);
  out.warmup_steps = c.warmup_steps;
  out.min_factor = config.optimizer.lr > 0 ? c.min_lr / config.optimizer.lr : 0;
  out.step_size = c.step_size;
  out.gamma = c.gamma;
  out.check();
  return out;
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
