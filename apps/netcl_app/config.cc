#include "apps/netcl_app/config.h"

#include <optional>
#include <utility>

#include "core/base/text.h"

namespace netcl::app {
namespace {

namespace fs = std::filesystem;

constexpr int64_t kMaxCount = int64_t{1} << 31;
// JSON numbers are doubles in most readers: a seed above 2^53 would not survive them.
constexpr int64_t kMaxSeed = int64_t{1} << 53;

// Resolves the paths of the data section.
class PathResolver {
 public:
  PathResolver(const ConfigView& data, fs::path folder) : folder_(std::move(folder)) {
    const auto dir = data.find("dir");
    if (!dir) return;
    dir_ = absolute(*dir, dir->from_override() ? fs::current_path() : folder_);
  }

  std::string resolve(const ConfigView& value) const {
    if (dir_) return absolute(value, *dir_).string();
    return absolute(value, value.from_override() ? fs::current_path() : folder_).string();
  }

  std::string optional(const ConfigView& data, const std::string& key) const {
    const auto value = data.find(key);
    return value ? resolve(*value) : std::string();
  }

 private:
  static fs::path absolute(const ConfigView& value, const fs::path& base) {
    const std::string text = value.as_text();
    if (text.empty()) value.reject("expected a path, found \"\"");
    return (base / text).lexically_normal();
  }

  fs::path folder_;
  std::optional<fs::path> dir_;
};

void parse_table_keys(const ConfigView& view, DataConfig& data) {
  data.delimiter = data.format == DataFormat::kTsv ? '\t' : ',';
  if (const auto label = view.find("label")) {
    if (label->is_text()) {
      data.label_name = label->as_text();
      if (data.label_name.empty()) label->reject("expected a column's name or number, found \"\"");
    } else if (label->is_integer()) {
      data.label = label->as_integer(-kMaxCount, kMaxCount);
    } else {
      label->reject(
          "expected a column's number (0 is the first, -1 the last) or its name in the "
          "header, found " +
          describe_json(label->json()));
    }
  }
  const std::string header = view.text_or("header", "auto", {"auto", "yes", "no"});
  data.header = header == "yes"  ? HeaderMode::kYes
                : header == "no" ? HeaderMode::kNo
                                 : HeaderMode::kAuto;
  if (const auto delimiter = view.find("delimiter")) {
    const std::string text = delimiter->as_text();
    if (text.size() != 1 || text == "\"" || text == "\n" || text == "\r") {
      delimiter->reject("expected one character (not a quote or line end), found " +
                        describe_json(delimiter->json()));
    }
    data.delimiter = text[0];
  }
}

void parse_split(const ConfigView& view, DataConfig& data) {
  const auto split = view.find("split");
  if (!split) return;
  if (split->size() != 2) {
    split->reject(str_cat("expected two parts, [train, test], found ", split->size()));
  }
  const double train = (*split)[0].as_number(0.0, 1.0);
  const double test = (*split)[1].as_number(0.0, 1.0);
  if (train <= 0.0) (*split)[0].reject("the training part is 0; expected more than 0");
  if (train + test > 1.0 + 1e-9) {
    split->reject(str_cat("the parts add up to ", train + test, "; expected at most 1"));
  }
  if (!data.test.empty()) {
    split->reject_key("give either a test file (data.test) or data.split, not both");
  }
  data.split = {train, test};
}

DataConfig parse_data(const ConfigView& view, const fs::path& folder, uint64_t seed) {
  DataConfig data;
  const std::string format = view.text("format", {"csv", "tsv", "idx"});
  const PathResolver paths(view, folder);
  data.format = format == "csv"   ? DataFormat::kCsv
                : format == "tsv" ? DataFormat::kTsv
                                  : DataFormat::kIdx;
  std::vector<std::string> known = {"format", "dir", "train", "test", "scale", "split"};
  if (data.format == DataFormat::kIdx) {
    known.insert(known.end(), {"train_labels", "test_labels"});
  } else {
    known.insert(known.end(), {"label", "header", "delimiter"});
  }
  view.check_keys(known);
  data.train = paths.resolve(view.at("train"));
  data.test = paths.optional(view, "test");
  data.scale = view.number_or("scale", 1.0);
  if (data.scale == 0.0) view.at("scale").reject("0 would turn every feature into 0");
  if (data.format == DataFormat::kIdx) {
    data.train_labels = paths.resolve(view.at("train_labels"));
    data.test_labels = paths.optional(view, "test_labels");
    if (data.test.empty() != data.test_labels.empty()) {
      view.reject("\"test\" and \"test_labels\" belong together; only one of them is given");
    }
  } else {
    parse_table_keys(view, data);
  }
  parse_split(view, data);
  data.seed = seed;
  return data;
}

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

const char* format_name(DataFormat format) {
  return format == DataFormat::kCsv ? "csv" : format == DataFormat::kTsv ? "tsv" : "idx";
}

Json resolved_data(const DataConfig& data) {
  Json out = {{"format", format_name(data.format)}, {"train", data.train}};
  if (data.format == DataFormat::kIdx) out["train_labels"] = data.train_labels;
  if (!data.test.empty()) out["test"] = data.test;
  if (!data.test_labels.empty()) out["test_labels"] = data.test_labels;
  if (data.format != DataFormat::kIdx) {
    out["label"] = data.label_name.empty() ? Json(data.label) : Json(data.label_name);
    out["header"] = data.header == HeaderMode::kYes  ? "yes"
                    : data.header == HeaderMode::kNo ? "no"
                                                     : "auto";
    out["delimiter"] = std::string(1, data.delimiter);
  }
  out["scale"] = data.scale;
  if (data.split) out["split"] = {data.split->first, data.split->second};
  return out;
}

}  // namespace

Json TrainConfig::resolved() const {
  Json out;
  out["model"] = model.json();
  out["data"] = resolved_data(data);
  out["loss"] = loss;
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
  out["epochs"] = epochs;
  out["seed"] = seed;
  return out;
}

TrainConfig parse_train_config(const std::shared_ptr<const JsonDoc>& doc, const fs::path& folder) {
  const ConfigView root(doc);
  root.check_keys({"model", "data", "loss", "metrics", "optimizer", "schedule", "ema", "init_from",
                   "accumulate", "batch_size", "epochs", "seed"});
  TrainConfig config(root.object("model"));
  config.name = fs::path(doc->name()).stem().string();
  config.input = parse_model(config.model);
  config.seed = static_cast<uint64_t>(root.integer_or("seed", 0, 0, kMaxSeed));
  config.data = parse_data(root.object("data"), fs::absolute(folder), config.seed);
  config.loss = root.text_or("loss", "cross_entropy", {"cross_entropy"});
  if (const auto metrics = root.find("metrics")) {
    config.metrics.clear();
    for (size_t i = 0; i < metrics->size(); ++i) {
      config.metrics.push_back((*metrics)[i].as_text({"accuracy"}));
    }
  }
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
  config.epochs = root.integer_or("epochs", 1, 1, kMaxCount);
  return config;
}

TrainConfig load_train_config(const fs::path& path, const std::vector<std::string>& overrides) {
  const std::shared_ptr<JsonDoc> doc = JsonDoc::load(path);
  for (const std::string& assignment : overrides) doc->apply_override(assignment);
  return parse_train_config(doc, fs::absolute(path).parent_path());
}

}  // namespace netcl::app
