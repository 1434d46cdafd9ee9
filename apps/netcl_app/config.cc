#include "apps/netcl_app/config.h"

#include <utility>

#include "apps/netcl_app/data_section.h"
#include "core/base/text.h"

namespace netcl::app {
namespace {

namespace fs = std::filesystem;

constexpr double kMaxRate = 1e6;  // far above any rate that trains
constexpr int64_t kMaxCount = int64_t{1} << 31;
// JSON numbers are doubles in most readers: a seed above 2^53 would not survive them.
constexpr int64_t kMaxSeed = int64_t{1} << 53;

// A factor of an average of the past: at 1 no gradient would ever enter it.
double as_beta(const ConfigView& view) {
  const double value = view.as_number();
  if (!(value >= 0.0 && value < 1.0)) {
    view.reject("expected a number of at least 0 and below 1, found " + describe_json(view.json()));
  }
  return value;
}

double as_positive(const ConfigView& view, double high) {
  const double value = view.as_number();
  if (!(value > 0.0 && value <= high)) {
    view.reject(str_cat("expected a number above 0 and at most ", high, ", found ",
                        describe_json(view.json())));
  }
  return value;
}

double positive_or(const ConfigView& view, const std::string& key, double otherwise, double high) {
  return view.has(key) ? as_positive(view.at(key), high) : otherwise;
}

OptimizerConfig parse_optimizer(const ConfigView& view) {
  OptimizerConfig out;
  out.type = view.text_or("type", "sgd", {"sgd", "adamw"});
  const bool adamw = out.type == "adamw";
  if (adamw) {
    view.check_keys({"type", "lr", "weight_decay", "beta1", "beta2", "betas", "eps"});
  } else {
    view.check_keys({"type", "lr", "weight_decay", "momentum", "dampening", "nesterov"});
  }
  out.lr = positive_or(view, "lr", adamw ? 1e-3 : 1e-2, kMaxRate);
  out.weight_decay = view.number_or("weight_decay", adamw ? 0.01 : 0.0, 0.0, kMaxRate);
  if (!adamw) {
    out.momentum = view.number_or("momentum", 0.0, 0.0, 1.0);
    out.dampening = view.number_or("dampening", 0.0, 0.0, 1.0);
    out.nesterov = view.boolean_or("nesterov", false);
    if (out.nesterov && (out.momentum == 0.0 || out.dampening != 0.0)) {
      view.at("nesterov").reject("needs a momentum above 0 and dampening 0");
    }
    return out;
  }
  if (const auto betas = view.find("betas")) {
    if (view.has("beta1") || view.has("beta2")) {
      betas->reject_key("give either betas or beta1 and beta2, not both");
    }
    if (betas->size() != 2) {
      betas->reject(str_cat("expected two numbers, [beta1, beta2], found ", betas->size()));
    }
    out.beta1 = as_beta((*betas)[0]);
    out.beta2 = as_beta((*betas)[1]);
  } else {
    if (const auto beta = view.find("beta1")) out.beta1 = as_beta(*beta);
    if (const auto beta = view.find("beta2")) out.beta2 = as_beta(*beta);
  }
  out.eps = positive_or(view, "eps", out.eps, 1.0);
  return out;
}

ScheduleConfig parse_schedule(const ConfigView& view) {
  ScheduleConfig out;
  out.type = view.text_or("type", "constant", {"constant", "cosine", "linear", "step"});
  if (out.type == "step") {
    view.check_keys({"type", "warmup_steps", "step_size", "gamma"});
  } else if (out.type == "constant") {
    view.check_keys({"type", "warmup_steps"});
  } else {
    view.check_keys({"type", "warmup_steps", "min_lr"});
  }
  out.warmup_steps = view.integer_or("warmup_steps", 0, 0, kMaxCount);
  out.min_lr = view.number_or("min_lr", 0.0, 0.0, kMaxRate);
  out.step_size = view.integer_or("step_size", out.step_size, 1, kMaxCount);
  out.gamma = positive_or(view, "gamma", out.gamma, 1.0);
  return out;
}

std::vector<int64_t> parse_model(const ConfigView& model) {
  model.check_keys({"input", "layers"});
  const ConfigView input = model.list("input");
  std::vector<int64_t> dims;
  if (input.size() == 0) input.reject("expected the shape of one sample, such as [64], found []");
  for (size_t i = 0; i < input.size(); ++i) dims.push_back(input[i].as_integer(1, kMaxCount));
  const ConfigView layers = model.list("layers");
  if (layers.size() == 0) layers.reject("expected at least one layer, found none");
  for (size_t i = 0; i < layers.size(); ++i) {
    if (layers[i].as_object().text("type").empty()) {
      layers[i].at("type").reject("expected a layer's name, found \"\"");
    }
  }
  return dims;
}

}  // namespace

Json TrainConfig::resolved() const {
  Json out;
  out["model"] = model.json();
  out["data"] = resolved_data(data);
  out["loss"] = resolved_loss(loss);
  out["metrics"] = metrics;
  Json& opt = out["optimizer"];
  opt = {{"type", optimizer.type}, {"lr", optimizer.lr}, {"weight_decay", optimizer.weight_decay}};
  if (optimizer.type == "adamw") {
    opt["betas"] = {optimizer.beta1, optimizer.beta2};
    opt["eps"] = optimizer.eps;
  } else {
    opt["momentum"] = optimizer.momentum;
    opt["dampening"] = optimizer.dampening;
    opt["nesterov"] = optimizer.nesterov;
  }
  Json& plan = out["schedule"];
  plan = {{"type", schedule.type}, {"warmup_steps", schedule.warmup_steps}};
  if (schedule.type == "step") {
    plan["step_size"] = schedule.step_size;
    plan["gamma"] = schedule.gamma;
  } else if (schedule.type != "constant") {
    plan["min_lr"] = schedule.min_lr;
  }
  out["batch_size"] = batch_size;
  out["epochs"] = epochs;
  out["seed"] = seed;
  return out;
}

TrainConfig parse_train_config(const std::shared_ptr<const JsonDoc>& doc, const fs::path& folder) {
  const ConfigView root(doc);
  root.check_keys({"model", "data", "loss", "metrics", "optimizer", "schedule", "batch_size",
                   "epochs", "seed"});
  TrainConfig config(root.object("model"));
  config.name = fs::path(doc->name()).stem().string();
  config.input = parse_model(config.model);
  config.seed = static_cast<uint64_t>(root.integer_or("seed", 0, 0, kMaxSeed));
  config.data = parse_data(root.object("data"), fs::absolute(folder), config.seed, config.input);
  if (const auto loss = root.find("loss")) config.loss = parse_loss(*loss);
  const auto metrics = root.find("metrics");
  config.metrics = metrics ? parse_metrics(*metrics) : usual_metrics(config.loss);
  if (const auto view = root.find("optimizer")) config.optimizer = parse_optimizer(*view);
  if (const auto view = root.find("schedule")) config.schedule = parse_schedule(*view);
  config.batch_size = root.integer_or("batch_size", 32, 1, kMaxCount);
  config.epochs = root.integer_or("epochs", 1, 1, kMaxCount);
  return config;
}

TrainConfig load_train_config(const fs::path& path, const std::vector<std::string>& overrides) {
  const std::shared_ptr<JsonDoc> doc = JsonDoc::load(path);
  for (const std::string& assignment : overrides) doc->apply_override(assignment);
  return parse_train_config(doc, fs::absolute(path).parent_path());
}

}  // namespace netcl::app
