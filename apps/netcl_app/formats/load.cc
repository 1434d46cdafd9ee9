#include "apps/netcl_app/formats/load.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

#include "apps/netcl_app/formats/csv.h"
#include "apps/netcl_app/formats/idx.h"
#include "core/base/error.h"
#include "core/data/batches.h"

namespace netcl::app {
namespace {

Samples read_samples(const DataConfig& config, const std::string& path, const std::string& labels,
                     const std::vector<std::string>& known_classes) {
  if (config.format == DataFormat::kIdx) return read_idx(path, labels);
  return read_csv(path, config, known_classes);
}

int64_t count_classes(const Samples& samples) {
  const int32_t largest = *std::max_element(samples.labels.begin(), samples.labels.end());
  return std::max<int64_t>(largest + int64_t{1}, static_cast<int64_t>(samples.class_names.size()));
}

Dataset to_dataset(const Samples& samples, int64_t num_classes, double scale) {
  DatasetSpec spec;
  spec.dtype = samples.dtype;
  spec.sample_shape = samples.sample_shape;
  spec.num_samples = samples.count();
  spec.features = samples.dtype == DType::kU8 ? static_cast<const void*>(samples.u8.data())
                                              : static_cast<const void*>(samples.f32.data());
  spec.labels = samples.labels.data();
  spec.num_classes = num_classes;
  // A test set may hold a class beyond the named ones; names only where they cover all.
  if (static_cast<int64_t>(samples.class_names.size()) == num_classes) {
    spec.class_names = samples.class_names;
  }
  spec.scale = static_cast<float>(scale);
  return Dataset::create(spec);
}

DataSource source_of(const Samples& samples) {
  DataSource source{samples.path, !samples.lines.empty(), samples.lines};
  if (!source.lines) {
    source.rows.resize(samples.labels.size());
    std::iota(source.rows.begin(), source.rows.end(), int64_t{0});
  }
  return source;
}

DataSource part_of(const DataSource& whole, const std::vector<int64_t>& indices) {
  DataSource part{whole.path, whole.lines, {}};
  for (const int64_t index : indices) part.rows.push_back(whole.rows[static_cast<size_t>(index)]);
  return part;
}

LoadedData split_data(const DataConfig& config, const Dataset& all, const DataSource& source) {
  const int64_t n = all.num_samples();
  const auto [train_part, test_part] = *config.split;
  const int64_t train_count = std::llround(train_part * static_cast<double>(n));
  const int64_t test_count =
      std::min<int64_t>(n - train_count, std::llround(test_part * static_cast<double>(n)));
  NETCL_CHECK(train_count > 0 && (test_count > 0 || test_part == 0.0), ErrorCode::kData,
              source.path, ": ", n, n == 1 ? " sample" : " samples", " split into ", train_part,
              " and ", test_part, " leaves ", train_count, " for training and ", test_count,
              " for the test; add samples or change data.split");
  const std::vector<int64_t> order = shuffled(n, config.seed, kSplitStream);
  std::vector<int64_t> train(order.begin(), order.begin() + train_count);
  std::vector<int64_t> test(order.begin() + train_count, order.begin() + train_count + test_count);
  std::sort(train.begin(), train.end());
  std::sort(test.begin(), test.end());
  LoadedData out{all.subset(train), std::nullopt, part_of(source, train), {}};
  if (!test.empty()) {
    out.test = all.subset(test);
    out.test_source = part_of(source, test);
  }
  return out;
}

}  // namespace

std::string DataSource::where(int64_t sample) const {
  const bool known = sample >= 0 && static_cast<size_t>(sample) < rows.size();
  const int64_t row = known ? rows[static_cast<size_t>(sample)] : sample;
  if (path.empty()) return str_cat("sample ", row);
  return lines ? str_cat(path, ':', row) : str_cat(path, ": sample ", row, " (from 0)");
}

LoadedData load_data(const DataConfig& config) {
  const Samples train = read_samples(config, config.train, config.train_labels, {});
  DataSource train_source = source_of(train);
  if (config.test.empty()) {
    Dataset all = to_dataset(train, count_classes(train), config.scale);
    if (config.split) return split_data(config, all, train_source);
    return {std::move(all), std::nullopt, std::move(train_source), {}};
  }
  const Samples test = read_samples(config, config.test, config.test_labels, train.class_names);
  NETCL_CHECK(train.sample_shape == test.sample_shape, ErrorCode::kData, test.path,
              ": a test sample has shape ", test.sample_shape.str(), ", a training sample (",
              train.path, ") ", train.sample_shape.str(), "; expected the same");
  const int64_t classes = std::max(count_classes(train), count_classes(test));
  return {to_dataset(train, classes, config.scale), to_dataset(test, classes, config.scale),
          std::move(train_source), source_of(test)};
}

void check_labels(const Dataset& dataset, int64_t num_outputs, const DataSource& source) {
  const int32_t* begin = dataset.labels();
  const int32_t* end = begin + dataset.num_samples();
  const int32_t smallest = *std::min_element(begin, end);
  const int32_t* largest = std::max_element(begin, end);
  if (*largest < num_outputs) return;
  const bool one_based = smallest == 1 && *largest == num_outputs;
  fail(ErrorCode::kData, source.where(largest - begin), ": labels reach ", *largest,
       " but the model has ", num_outputs, " outputs, for labels 0 to ", num_outputs - 1,
       one_based ? ": they look 1-based; subtract 1 from every label"
                 : str_cat("; give the last layer ", *largest + int64_t{1},
                           " outputs or check data.label"));
}

void check_input(const Dataset& dataset, const Shape& input, const DataSource& source) {
  const int64_t expected = input.num_elements();
  NETCL_CHECK(dataset.sample_elements() == expected, ErrorCode::kData,
              source.path.empty() ? "data set" : source.path, ": a sample has shape ",
              dataset.sample_shape().str(), " (", dataset.sample_elements(),
              " values) but model.input ", input.str(), " takes ", expected);
}

}  // namespace netcl::app
