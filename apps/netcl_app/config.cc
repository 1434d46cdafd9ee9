#include "apps/netcl_app/config.h"

#include <utility>

#include "apps/netcl_app/data_section.h"
#include "core/base/text.h"

namespace netcl::app {
namespace {

namespace fs = std::filesystem;

constexpr int64_t kMaxCount = int64_t{1} << 31;
// JSON numbers are doubles in most readers: a seed above 2^53 would not survive them.
constexpr int64_t kMaxSeed = int64_t{1} << 53;

InitFrom parse_init_from(const ConfigView& view, const fs::path& folder) {
  InitFrom out;
  const ConfigView file = view.is_object() ? view.at("file") : view;
  if (view.is_object()) {
    view.check_keys({"file", "match"});
    if (view.has("match")) out.match = view.text("match");
  }
  if (file.as_text().empty()) file.reject("expected a safetensors file, found \"\"");
  const fs::path base = file.from_override() ? fs::current_path() : folder;
  out.path = (base / file.as_text()).lexically_normal().string();
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
  out["optimizer"] = resolved_optimizer(optimizer);
  out["schedule"] = resolved_schedule(schedule);
  if (optimizer.ema_decay > 0) {
    out["ema"] = {{"decay", optimizer.ema_decay}, {"evaluate", optimizer.ema_evaluate}};
  }
  if (!init_from.path.empty()) {
    out["init_from"] = {{"file", init_from.path}};
    if (!init_from.match.empty()) out["init_from"]["match"] = init_from.match;
  }
  out["batch_size"] = batch_size;
  out["accumulate"] = accumulate;
  if (micro_shards > 0) out["micro_shards"] = micro_shards;
  out["epochs"] = epochs;
  out["seed"] = seed;
  out["precision"] = precision;
  return out;
}

TrainConfig parse_train_config(const std::shared_ptr<const JsonDoc>& doc, const fs::path& folder) {
  const ConfigView root(doc);
  root.check_keys({"model", "data", "loss", "metrics", "optimizer", "schedule", "ema", "init_from",
                   "accumulate", "batch_size", "micro_shards", "epochs", "seed", "precision"});
  TrainConfig config(root.object("model"));
  config.name = fs::path(doc->name()).stem().string();
  config.input = parse_model(config.model);
  config.seed = static_cast<uint64_t>(root.integer_or("seed", 0, 0, kMaxSeed));
  config.data = parse_data(root.object("data"), fs::absolute(folder), config.seed, config.input);
  if (const auto loss = root.find("loss")) config.loss = parse_loss(*loss);
  const auto metrics = root.find("metrics");
  config.metrics = metrics ? parse_metrics(*metrics) : usual_metrics(config.loss);
  if (const auto view = root.find("optimizer")) config.optimizer = parse_optimizer(*view);
  if (const auto view = root.find("ema")) parse_ema(view->as_object(), config.optimizer);
  if (const auto view = root.find("schedule"))
    config.schedule = parse_schedule(*view, config.optimizer.lr);
  if (const auto view = root.find("init_from"))
    config.init_from = parse_init_from(*view, fs::absolute(folder));
  config.batch_size = root.integer_or("batch_size", 32, 1, kMaxCount);
  config.accumulate = root.integer_or("accumulate", 1, 1, kMaxCount);
  if (config.accumulate > config.batch_size) {
    root.at("accumulate")
        .reject(str_cat("expected at most batch_size, ", config.batch_size,
                        ", since every pass takes a part of the batch; found ", config.accumulate));
  }
  config.micro_shards = root.integer_or("micro_shards", 0, 0, kMaxCount);
  if (config.micro_shards > config.batch_size) {
    root.at("micro_shards")
        .reject(str_cat("expected at most batch_size, ", config.batch_size,
                        ", since each of them takes a part of the batch; found ",
                        config.micro_shards));
  }
  config.epochs = root.integer_or("epochs", 1, 1, kMaxCount);
  config.precision = root.text_or("precision", "fp32", {"fp32", "bf16", "fp16", "tf32"});
  return config;
}

TrainConfig load_train_config(const fs::path& path, const std::vector<std::string>& overrides) {
  const std::shared_ptr<JsonDoc> doc = JsonDoc::load(path);
  for (const std::string& assignment : overrides) doc->apply_override(assignment);
  return parse_train_config(doc, fs::absolute(path).parent_path());
}

}  // namespace netcl::app
