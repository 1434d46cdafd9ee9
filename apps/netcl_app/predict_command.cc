// netcl-app predict: what a trained model says of new samples.
#include <algorithm>
#include <cmath>
#include <iostream>
#include <sstream>

#include "apps/netcl_app/commands.h"
#include "apps/netcl_app/formats/load.h"
#include "apps/netcl_app/formats/npy.h"
#include "apps/netcl_app/forward_model.h"
#include "apps/netcl_app/predict_input.h"
#include "core/base/file.h"
#include "core/data/batches.h"

namespace netcl::app {

namespace {

constexpr int64_t kRows = 256;  // of one run

struct PredictOptions : CommonOptions {
  std::string checkpoint, input, format, device, out;
};

// Predictions of all samples: rows of `width` numbers, `positions` rows a sample.
struct Predictions {
  std::vector<float> values;  // probabilities, or the model's numbers
  int64_t samples = 0, positions = 1, width = 1;
  bool classes = false;            // the rows are probabilities of which one class is true
  std::vector<std::string> names;  // of the columns, if the data set had any

  std::string name(int64_t column) const {
    return column < static_cast<int64_t>(names.size()) ? names[static_cast<size_t>(column)]
                                                       : std::to_string(column);
  }
  const float* row(int64_t index) const { return values.data() + index * width; }
  int64_t best(int64_t index) const {
    return std::max_element(row(index), row(index) + width) - row(index);
  }
};

void softmax(float* row, int64_t width) {
  const float top = *std::max_element(row, row + width);
  double sum = 0;
  for (int64_t i = 0; i < width; ++i) sum += std::exp(static_cast<double>(row[i] - top));
  for (int64_t i = 0; i < width; ++i)
    row[i] = static_cast<float>(std::exp(static_cast<double>(row[i] - top)) / sum);
}

Predictions predict(const PredictOptions& options) {
  ForwardModel model(options.checkpoint, options.device, options, kRows);
  const Shape input(model.config().input);
  const Dataset data = read_features(options.input, model.config().data, input.num_elements(),
                                     model.data().input_dtype);
  Predictions out;
  out.samples = data.num_samples();
  std::vector<char> x(static_cast<size_t>(kRows) * data.input_bytes());
  for (int64_t first = 0; first < out.samples; first += kRows) {
    const int64_t rows = std::min(kRows, out.samples - first);
    for (int64_t i = 0; i < rows; ++i)
      data.read_input(first + i, x.data() + static_cast<size_t>(i) * data.input_bytes());
    const std::vector<float> values = model.run(x.data(), rows);
    out.values.insert(out.values.end(), values.begin(), values.end());
  }
  const Shape& shape = model.output_shape();
  out.width = shape.rank() == 0 ? 1 : shape[shape.rank() - 1];
  out.positions = shape.num_elements() / out.width;
  const std::string& loss = model.config().loss.spec.type;
  out.classes = model.config().loss.spec.takes_classes();
  if (out.classes) out.names = model.data().classes;
  // The softmax of log-probabilities is their exponential, so nll needs no case of its own.
  for (int64_t row = 0; out.classes && row < out.samples * out.positions; ++row)
    softmax(out.values.data() + row * out.width, out.width);
  if (loss == "bce_with_logits") {
    for (float& v : out.values) v = static_cast<float>(1 / (1 + std::exp(-static_cast<double>(v))));
  }
  return out;
}

std::string csv_field(const std::string& text) {
  if (text.find_first_of(",\"\r\n") == std::string::npos) return text;
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"') out += '"';
    out += c;
  }
  return out + "\"";
}

std::string as_csv(const Predictions& all) {
  std::ostringstream out;
  out.precision(9);
  if (all.positions > 1) out << "sample,position,";
  if (all.classes) out << "class,";
  for (int64_t c = 0; c < all.width; ++c) {
    out << (c > 0 ? "," : "")
        << csv_field(all.classes ? "p(" + all.name(c) + ")" : "value" + std::to_string(c));
  }
  out << "\n";
  for (int64_t row = 0; row < all.samples * all.positions; ++row) {
    if (all.positions > 1) out << row / all.positions << "," << row % all.positions << ",";
    if (all.classes) out << csv_field(all.name(all.best(row))) << ",";
    for (int64_t c = 0; c < all.width; ++c) out << (c > 0 ? "," : "") << all.row(row)[c];
    out << "\n";
  }
  return out.str();
}

std::string as_json(const Predictions& all) {
  Json rows = Json::array();
  for (int64_t row = 0; row < all.samples * all.positions; ++row) {
    const std::vector<float> values(all.row(row), all.row(row) + all.width);
    Json entry;
    if (all.positions > 1) {
      entry["sample"] = row / all.positions;
      entry["position"] = row % all.positions;
    }
    if (all.classes) {
      const int64_t best = all.best(row);
      entry["class"] = all.names.empty() ? Json(best) : Json(all.name(best));
      entry["probability"] = values[static_cast<size_t>(best)];
      entry["probabilities"] = values;
    } else {
      entry["values"] = values;
    }
    rows.push_back(std::move(entry));
  }
  Json out = {{"samples", all.samples}, {"predictions", std::move(rows)}};
  if (!all.names.empty()) out["classes"] = all.names;
  return out.dump(2) + "\n";
}

std::string as_npy(const Predictions& all) {
  std::vector<int64_t> dims = {all.samples};
  if (all.positions > 1) dims.push_back(all.positions);
  dims.push_back(all.width);
  return npy_of(all.values, Shape(std::move(dims)));
}

int run_predict(const PredictOptions& options) {
  const std::string format =
      !options.format.empty() ? options.format : (options.json ? "json" : "csv");
  NETCL_CHECK(format == "json" || !options.json || !options.out.empty(), ErrorCode::kUsage,
              "--json prints one JSON document; --format ", format, " needs --out FILE beside it");
  NETCL_CHECK(format != "npy" || !options.out.empty(), ErrorCode::kUsage,
              "--format npy: give a file with --out");
  const Predictions all = predict(options);
  const std::string text = format == "json"  ? as_json(all)
                           : format == "npy" ? as_npy(all)
                                             : as_csv(all);
  if (options.out.empty()) {
    std::cout << text;
    return 0;
  }
  write_file_atomic(options.out, text, ErrorCode::kCheckpoint);
  if (options.json)
    std::cout << Json{{"samples", all.samples}, {"out", options.out}}.dump(2) << "\n";
  return 0;
}

}  // namespace

void add_predict_command(CLI::App& app, Run& run) {
  auto options = std::make_shared<PredictOptions>();
  CLI::App* command = app.add_subcommand("predict", "Predictions of a trained model");
  command->footer("Example: netcl-app predict runs/digits new.csv --format json");
  command
      ->add_option("CHECKPOINT", options->checkpoint,
                   "Checkpoint file, or run directory (its last checkpoint)")
      ->required();
  command->add_option("INPUT", options->input, "Samples: .csv, .tsv, .npy or IDX")->required();
  command->add_option("--format", options->format, "csv (default), json or npy")
      ->check(CLI::IsMember({"csv", "json", "npy"}));
  command->add_option("--device", options->device, "One device (default: the first)");
  command->add_option("--out", options->out, "File to write (default: standard output)");
  add_kernels(*command, *options);
  add_common(*command, *options);
  command->callback([options, &run] { run = [options] { return run_predict(*options); }; });
}

}  // namespace netcl::app
