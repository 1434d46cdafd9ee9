#include "apps/netcl_app/data_section.h"

#include <optional>
#include <utility>

#include "core/base/text.h"

namespace netcl::app {
namespace {

namespace fs = std::filesystem;

constexpr int64_t kMaxCount = int64_t{1} << 31;
constexpr int64_t kMaxSeed = int64_t{1} << 53;

const std::vector<std::string>& format_names() {  // in the order of DataFormat
  static const std::vector<std::string> names = {"csv", "tsv",   "idx",  "npy",
                                                 "npz", "cifar", "text", "synthetic"};
  return names;
}

bool is_table(DataFormat format) {
  return format == DataFormat::kCsv || format == DataFormat::kTsv;
}

bool is_array(DataFormat format) {
  return format == DataFormat::kNpy || format == DataFormat::kNpz;
}

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

ColumnRef parse_column(const ConfigView& view) {
  ColumnRef out;
  if (view.is_text()) {
    out.name = view.as_text();
    if (out.name.empty()) view.reject("expected a column's name or number, found \"\"");
  } else if (view.is_integer()) {
    out.index = view.as_integer(-kMaxCount, kMaxCount);
  } else {
    view.reject(
        "expected a column's number (0 is the first, -1 the last) or its name in the "
        "header, found " +
        describe_json(view.json()));
  }
  return out;
}

// "target" is one column or several; with "task": "regression" the label's column is it.
void parse_targets(const ConfigView& view, DataConfig& data) {
  const bool regression = view.text_or("task", view.has("target") ? "regression" : "classification",
                                       {"classification", "regression"}) == "regression";
  const auto target = view.find("target");
  if (target && !regression)
    target->reject_key("a target needs \"task\": \"regression\"; classes stand in data.label");
  if (target && view.has("label"))
    target->reject_key("give either data.target (numbers) or data.label (classes), not both");
  if (!regression) return;
  if (!target) {
    data.targets = {{data.label_name, data.label}};
  } else if (!target->is_list()) {
    data.targets = {parse_column(*target)};
  } else {
    if (target->size() == 0) target->reject("expected at least one column, found []");
    for (size_t i = 0; i < target->size(); ++i) data.targets.push_back(parse_column((*target)[i]));
  }
}

void parse_table_keys(const ConfigView& view, DataConfig& data) {
  data.delimiter = data.format == DataFormat::kTsv ? '\t' : ',';
  if (const auto label = view.find("label")) {
    const ColumnRef column = parse_column(*label);
    data.label_name = column.name;
    data.label = column.index;
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

void parse_array_keys(const ConfigView& view, const PathResolver& paths, DataConfig& data) {
  data.tokens = view.boolean_or("tokens", false);
  data.regression =
      view.text_or("task", "classification", {"classification", "regression"}) == "regression";
  if (data.format == DataFormat::kNpy) {
    data.train_labels = paths.resolve(view.at("train_labels"));
    data.test_labels = paths.optional(view, "test_labels");
    return;
  }
  data.features = view.text_or("features", data.features);
  data.labels = view.text_or("labels", data.labels);
  data.test_features = view.text_or("test_features", "");
  data.test_array_labels = view.text_or("test_labels", "");
  if (data.test_features.empty() != data.test_array_labels.empty()) {
    view.reject("\"test_features\" and \"test_labels\" belong together; only one is given");
  }
}

void parse_text_keys(const ConfigView& view, DataConfig& data) {
  TextConfig& text = data.text;
  text.bytes = view.text_or("unit", "character", {"character", "byte"}) == "byte";
  text.context = view.integer_or("context", text.context, 1, kMaxCount);
  text.samples_per_epoch = view.integer_or("samples_per_epoch", 0, 1, kMaxCount);
  text.stride =
      view.integer_or("stride", text.samples_per_epoch > 0 ? 1 : text.context, 1, kMaxCount);
}

void parse_synthetic_keys(const ConfigView& view, uint64_t seed, const std::vector<int64_t>& input,
                          DataConfig& data) {
  SyntheticConfig& out = data.synthetic;
  out.noise = view.text_or("kind", "blobs", {"blobs", "noise"}) == "noise";
  out.samples = view.integer_or("samples", out.samples, 1, kMaxCount);
  out.classes = view.integer_or("classes", out.classes, 1, kMaxCount);
  out.seed =
      static_cast<uint64_t>(view.integer_or("seed", static_cast<int64_t>(seed), 0, kMaxSeed));
  out.input = input;
  const auto shape = view.find("input");
  if (!shape) return;
  out.input.clear();
  for (size_t i = 0; i < shape->as_list().size(); ++i)
    out.input.push_back((*shape)[i].as_integer(1, kMaxCount));
}

void parse_cifar_keys(const ConfigView& view, const PathResolver& paths, DataConfig& data) {
  data.cifar_classes = view.integer_or("classes", 10, 10, 100);
  if (data.cifar_classes != 10 && data.cifar_classes != 20 && data.cifar_classes != 100)
    view.at("classes").reject("expected 10, 100, or 20 (the coarse labels of CIFAR-100)");
  const ConfigView train = view.at("train");
  if (!train.is_list()) {
    data.train = paths.resolve(train);
    return;
  }
  if (train.size() == 0) train.reject("expected at least one file, found []");
  data.train = paths.resolve(train[0]);
  for (size_t i = 1; i < train.size(); ++i) data.more_train.push_back(paths.resolve(train[i]));
}

std::vector<std::string> known_keys(DataFormat format) {
  std::vector<std::string> out = {"format", "dir", "train", "test", "split"};
  const auto add = [&](std::initializer_list<const char*> keys) {
    out.insert(out.end(), keys.begin(), keys.end());
  };
  if (format == DataFormat::kSynthetic)
    return {"format", "samples", "input", "classes", "kind", "seed", "split"};
  if (format == DataFormat::kText) {
    add({"unit", "context", "stride", "samples_per_epoch"});
    return out;
  }
  add({"scale"});
  if (format == DataFormat::kIdx) add({"train_labels", "test_labels"});
  if (format == DataFormat::kNpy) add({"train_labels", "test_labels", "tokens", "task"});
  if (format == DataFormat::kNpz)
    add({"features", "labels", "test_features", "test_labels", "tokens", "task"});
  if (format == DataFormat::kCifar) add({"classes"});
  if (is_table(format)) add({"label", "header", "delimiter", "target", "task"});
  return out;
}

}  // namespace

DataConfig parse_data(const ConfigView& view, const fs::path& folder, uint64_t seed,
                      const std::vector<int64_t>& input) {
  DataConfig data;
  const std::string format = view.text("format", format_names());
  const PathResolver paths(view, folder);
  for (size_t i = 0; i < format_names().size(); ++i) {
    if (format_names()[i] == format) data.format = static_cast<DataFormat>(i);
  }
  view.check_keys(known_keys(data.format));
  if (data.format == DataFormat::kCifar) {
    parse_cifar_keys(view, paths, data);
  } else if (data.format != DataFormat::kSynthetic) {
    data.train = paths.resolve(view.at("train"));
  }
  data.test = paths.optional(view, "test");
  data.scale = view.number_or("scale", 1.0);
  if (data.scale == 0.0) view.at("scale").reject("0 would turn every feature into 0");
  if (data.format == DataFormat::kIdx) {
    data.train_labels = paths.resolve(view.at("train_labels"));
    data.test_labels = paths.optional(view, "test_labels");
  }
  if (is_array(data.format)) parse_array_keys(view, paths, data);
  if ((data.format == DataFormat::kIdx || data.format == DataFormat::kNpy) &&
      data.test.empty() != data.test_labels.empty()) {
    view.reject("\"test\" and \"test_labels\" belong together; only one of them is given");
  }
  if (data.format == DataFormat::kText) parse_text_keys(view, data);
  if (data.format == DataFormat::kSynthetic) parse_synthetic_keys(view, seed, input, data);
  if (is_table(data.format)) {
    parse_table_keys(view, data);
    parse_targets(view, data);
  }
  parse_split(view, data);
  data.seed = seed;
  return data;
}

namespace {

Json resolved_column(const ColumnRef& column) {
  return column.name.empty() ? Json(column.index) : Json(column.name);
}

void resolved_table(const DataConfig& data, Json& out) {
  if (data.targets.empty()) {
    out["label"] = resolved_column({data.label_name, data.label});
  } else {
    out["target"] = Json::array();
    for (const ColumnRef& column : data.targets) out["target"].push_back(resolved_column(column));
  }
  out["header"] = data.header == HeaderMode::kYes  ? "yes"
                  : data.header == HeaderMode::kNo ? "no"
                                                   : "auto";
  out["delimiter"] = std::string(1, data.delimiter);
}

void resolved_arrays(const DataConfig& data, Json& out) {
  if (data.format == DataFormat::kNpz) {
    out["features"] = data.features;
    out["labels"] = data.labels;
    if (!data.test_features.empty()) {
      out["test_features"] = data.test_features;
      out["test_labels"] = data.test_array_labels;
    }
  }
  out["tokens"] = data.tokens;
  out["task"] = data.regression ? "regression" : "classification";
}

void resolved_text(const TextConfig& text, Json& out) {
  out["unit"] = text.bytes ? "byte" : "character";
  out["context"] = text.context;
  out["stride"] = text.stride;
  if (text.samples_per_epoch > 0) out["samples_per_epoch"] = text.samples_per_epoch;
}

}  // namespace

Json resolved_data(const DataConfig& data) {
  Json out = {{"format", format_names()[static_cast<size_t>(data.format)]}};
  if (data.format == DataFormat::kSynthetic) {
    const SyntheticConfig& made = data.synthetic;
    out["samples"] = made.samples;
    out["input"] = made.input;
    out["classes"] = made.classes;
    out["kind"] = made.noise ? "noise" : "blobs";
    out["seed"] = made.seed;
    if (data.split) out["split"] = {data.split->first, data.split->second};
    return out;
  }
  out["train"] = data.train;
  if (!data.more_train.empty()) {
    out["train"] = {data.train};
    for (const std::string& file : data.more_train) out["train"].push_back(file);
  }
  if (!data.train_labels.empty()) out["train_labels"] = data.train_labels;
  if (!data.test.empty()) out["test"] = data.test;
  if (!data.test_labels.empty()) out["test_labels"] = data.test_labels;
  if (is_table(data.format)) resolved_table(data, out);
  if (is_array(data.format)) resolved_arrays(data, out);
  if (data.format == DataFormat::kCifar) out["classes"] = data.cifar_classes;
  if (data.format == DataFormat::kText) {
    resolved_text(data.text, out);
  } else {
    out["scale"] = data.scale;
  }
  if (data.split) out["split"] = {data.split->first, data.split->second};
  return out;
}

}  // namespace netcl::app
