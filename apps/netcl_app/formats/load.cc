#include "apps/netcl_app/formats/load.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <utility>

#include "apps/netcl_app/formats/cifar.h"
#include "apps/netcl_app/formats/csv.h"
#include "apps/netcl_app/formats/gzip.h"
#include "apps/netcl_app/formats/idx.h"
#include "apps/netcl_app/formats/npy.h"
#include "apps/netcl_app/formats/synthetic.h"
#include "apps/netcl_app/formats/text.h"
#include "core/base/error.h"
#include "core/data/batches.h"

namespace netcl::app {
namespace {

Samples read_samples(const DataConfig& config, bool test,
                     const std::vector<std::string>& known_classes) {
  const std::string& path = test ? config.test : config.train;
  switch (config.format) {
    case DataFormat::kIdx:
      return read_idx(path, test ? config.test_labels : config.train_labels);
    case DataFormat::kNpy:
    case DataFormat::kNpz:
      return read_npy(config, test);
    case DataFormat::kCifar: {
      std::vector<std::string> files = {path};
      if (!test) files.insert(files.end(), config.more_train.begin(), config.more_train.end());
      return read_cifar(files, config.cifar_classes);
    }
    case DataFormat::kSynthetic:
      return make_synthetic(config.synthetic);
    default:
      return read_csv(path, config, known_classes);
  }
}

int64_t count_classes(const Samples& samples) {
  if (samples.labels.empty()) return 0;
  const int32_t largest = *std::max_element(samples.labels.begin(), samples.labels.end());
  return std::max<int64_t>(largest + int64_t{1}, static_cast<int64_t>(samples.class_names.size()));
}

// A byte order mark is no character of the text.
std::string read_text(const std::string& path, bool bytes) {
  std::string text = read_data_file(path);
  if (!bytes && text.compare(0, 3, "\xEF\xBB\xBF") == 0) text.erase(0, 3);
  return text;
}

LoadedData load_text(const DataConfig& config, const std::vector<std::string>& known_classes) {
  const std::string text = read_text(config.train, config.text.bytes);
  const std::string test = config.test.empty() ? "" : read_text(config.test, config.text.bytes);
  NETCL_CHECK(!text.empty(), ErrorCode::kData, config.train, ": the file is empty; expected text");
  Vocabulary vocabulary;
  if (!config.text.bytes && !known_classes.empty()) {
    vocabulary = Vocabulary(known_classes, "the checkpoint");
  } else if (!config.text.bytes) {
    std::vector<uint32_t> characters = characters_of(text, config.train);
    const std::vector<uint32_t> more = characters_of(test, config.test);
    characters.insert(characters.end(), more.begin(), more.end());
    vocabulary = Vocabulary::of(characters);
  }
  const std::vector<int32_t> tokens = vocabulary.tokens_of(text, config.train);
  const auto n = static_cast<int64_t>(tokens.size());
  int64_t train_count = n, test_count = 0;
  if (config.split) {
    train_count = std::llround(config.split->first * static_cast<double>(n));
    test_count = std::min<int64_t>(n - train_count,
                                   std::llround(config.split->second * static_cast<double>(n)));
    NETCL_CHECK(
        config.split->second == 0 || test_count >= 2, ErrorCode::kData, config.train,
        ": data.split leaves ", test_count, " of ", n,
        " characters for the test; expected at least 2. Give a longer text, or a larger part");
  }
  const auto part = [&](const int32_t* begin, int64_t count, const std::string& path,
                        const TextSpec& cut) {
    TextSpec spec = cut;
    spec.tokens = begin;
    spec.num_tokens = count;
    spec.num_classes = vocabulary.size();
    spec.class_names = vocabulary.names();
    spec.context = config.text.context;
    const int64_t least = spec.draws > 0 ? spec.context + 1 : 2;
    NETCL_CHECK(count >= least, ErrorCode::kData, path, ": a part of ", count,
                " characters is too short; data.context ", spec.context, " needs at least ", least);
    return Dataset::create_text(spec);
  };
  TextSpec train, consecutive;
  train.draws = config.text.samples_per_epoch;
  consecutive.stride = config.text.context;
  train.stride = config.text.stride > 0 ? config.text.stride
                 : train.draws > 0      ? 1
                                        : config.text.context;
  LoadedData out{part(tokens.data(), train_count, config.train, train),
                 std::nullopt,
                 {config.train, false, {}},
                 {}};
  if (!config.test.empty()) {
    const std::vector<int32_t> held = vocabulary.tokens_of(test, config.test);
    out.test = part(held.data(), static_cast<int64_t>(held.size()), config.test, consecutive);
    out.test_source = {config.test, false, {}};
  } else if (test_count > 0) {  // the end of the text
    out.test = part(tokens.data() + (n - test_count), test_count, config.train, consecutive);
    out.test_source = {config.train, false, {}};
  }
  return out;
}

DataSource source_of(const Samples& samples) {
  DataSource source{samples.path, !samples.lines.empty(), samples.lines};
  if (!source.lines) {
    source.rows.resize(static_cast<size_t>(samples.count()));
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

Dataset to_dataset(const Samples& samples, int64_t num_classes, double scale) {
  DatasetSpec spec;
  spec.dtype = samples.dtype;
  spec.sample_shape = samples.sample_shape;
  spec.num_samples = samples.count();
  spec.features = samples.dtype == DType::kU8    ? static_cast<const void*>(samples.u8.data())
                  : samples.dtype == DType::kI32 ? static_cast<const void*>(samples.i32.data())
                                                 : static_cast<const void*>(samples.f32.data());
  spec.label_shape = samples.label_shape;
  if (samples.targets.empty()) {
    spec.labels = samples.labels.data();
    spec.num_classes = num_classes;
  } else {
    spec.targets = samples.targets.data();
  }
  // A test set may hold a class beyond the named ones; names only where they cover all.
  if (static_cast<int64_t>(samples.class_names.size()) == num_classes) {
    spec.class_names = samples.class_names;
  }
  spec.scale = static_cast<float>(scale);
  return Dataset::create(spec);
}

LoadedData load_data(const DataConfig& config, const std::vector<std::string>& known_classes) {
  if (config.format == DataFormat::kText) return load_text(config, known_classes);
  const Samples train = read_samples(config, false, known_classes);
  DataSource train_source = source_of(train);
  if (config.test.empty() && config.test_features.empty()) {
    Dataset all = to_dataset(train, count_classes(train), config.scale);
    if (config.split) return split_data(config, all, train_source);
    return {std::move(all), std::nullopt, std::move(train_source), {}};
  }
  const Samples test = read_samples(config, true, train.class_names);
  NETCL_CHECK(train.sample_shape == test.sample_shape, ErrorCode::kData, test.path,
              ": a test sample has shape ", test.sample_shape.str(), ", a training sample (",
              train.path, ") ", train.sample_shape.str(), "; expected the same");
  NETCL_CHECK(
      train.label_shape == test.label_shape && train.targets.empty() == test.targets.empty(),
      ErrorCode::kData, test.path, ": a test label has shape ", test.label_shape.str(),
      test.targets.empty() ? " (classes)" : " (targets)", ", a training label (", train.path, ") ",
      train.label_shape.str(), train.targets.empty() ? " (classes)" : " (targets)",
      "; expected the same");
  const int64_t classes = std::max(count_classes(train), count_classes(test));
  return {to_dataset(train, classes, config.scale), to_dataset(test, classes, config.scale),
          std::move(train_source), source_of(test)};
}

void check_labels(const Dataset& dataset, int64_t num_outputs, const DataSource& source,
                  int64_t ignored) {
  if (num_outputs == 0 || dataset.label_dtype() != DType::kI32) return;
  if (dataset.is_text()) {
    const auto* tokens = static_cast<const int32_t*>(dataset.features());
    const int32_t* largest = std::max_element(tokens, tokens + dataset.text_tokens());
    NETCL_CHECK(*largest < num_outputs, ErrorCode::kData, source.path, ": token ", largest - tokens,
                " is number ", *largest, " of a vocabulary of ", dataset.num_classes(),
                ", but the model has ", num_outputs, " outputs; give the last layer ",
                dataset.num_classes(), " outputs");
    return;
  }
  const int64_t each = dataset.label_shape().num_elements();
  const int32_t* begin = dataset.labels();
  const int32_t* end = begin + dataset.num_samples() * each;
  int32_t smallest = std::numeric_limits<int32_t>::max();
  const int32_t* largest = begin;
  for (const int32_t* label = begin; label != end; ++label) {
    if (*label == ignored || *label == kIgnoredLabel) continue;
    smallest = std::min(smallest, *label);
    if (*label > *largest || *largest == ignored) largest = label;
  }
  NETCL_CHECK(smallest != std::numeric_limits<int32_t>::max(), ErrorCode::kData, source.path,
              ": every label is the ignored one, ", ignored,
              "; nothing counts. Check loss.ignore_index and the labels");
  if (*largest < num_outputs || *largest == ignored) return;
  const bool one_based = smallest == 1 && *largest == num_outputs;
  fail(ErrorCode::kData, source.where((largest - begin) / each), ": labels reach ", *largest,
       " but the model has ", num_outputs, " outputs, for labels 0 to ", num_outputs - 1,
       one_based ? ": they look 1-based; subtract 1 from every label"
                 : str_cat("; give the last layer ", *largest + int64_t{1},
                           " outputs or check data.label"));
}

void check_targets(const Dataset& dataset, const std::string& name, bool logarithms,
                   const DataSource& source) {
  const bool probabilities = name == "bce_with_logits", parts = name == "kl_div" && !logarithms;
  if (dataset.label_dtype() != DType::kF32 || !(probabilities || parts)) return;
  std::vector<float> target(static_cast<size_t>(dataset.label_shape().num_elements()));
  for (int64_t i = 0; i < dataset.num_samples(); ++i) {
    dataset.read_label(i, target.data());
    for (const float x : target) {
      NETCL_CHECK(
          x >= 0 && (x <= 1 || parts), ErrorCode::kData, source.where(i), ": the target ", x,
          " does not suit the loss ", name, "; expected ",
          parts ? "probabilities, from 0 on (or loss.log_target for their logarithms)" : "0 to 1");
    }
  }
}

void check_tokens(const Dataset& dataset, int64_t vocabulary, const DataSource& source) {
  if (vocabulary == 0 || dataset.input_dtype() != DType::kI32) return;
  const int64_t each = dataset.is_text() ? 1 : dataset.sample_elements();
  const int64_t count = dataset.is_text() ? dataset.text_tokens() : dataset.num_samples() * each;
  const auto* tokens = static_cast<const int32_t*>(dataset.features());
  for (int64_t i = 0; i < count; ++i) {
    if (tokens[i] < vocabulary) continue;
    fail(ErrorCode::kData,
         dataset.is_text() ? str_cat(source.path, ": position ", i) : source.where(i / each),
         ": the token ", tokens[i], " is outside of the embedding, which has ", vocabulary,
         " rows, for tokens 0 to ", vocabulary - 1, "; make the embedding larger");
  }
}

void check_input(const Dataset& dataset, const Shape& input, const DataSource& source) {
  const int64_t expected = input.num_elements();
  NETCL_CHECK(dataset.sample_elements() == expected, ErrorCode::kData,
              source.path.empty() ? "data set" : source.path, ": a sample has shape ",
              dataset.sample_shape().str(), " (", dataset.sample_elements(),
              " values) but model.input ", input.str(), " takes ", expected);
}

}  // namespace netcl::app
