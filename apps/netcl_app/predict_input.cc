#include "apps/netcl_app/predict_input.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <optional>

#include "apps/netcl_app/formats/csv.h"
#include "apps/netcl_app/formats/csv_rows.h"
#include "apps/netcl_app/formats/gzip.h"
#include "apps/netcl_app/formats/idx.h"
#include "apps/netcl_app/formats/load.h"
#include "apps/netcl_app/formats/npy.h"
#include "core/base/error.h"

namespace netcl::app {
namespace {

std::optional<float> number_in(std::string_view field) {
  if (field.size() > 1 && field[0] == '+' && field[1] != '-') field.remove_prefix(1);
  double value = 0;
  const auto [end, error] = std::from_chars(field.data(), field.data() + field.size(), value);
  const bool whole = error == std::errc() && end == field.data() + field.size();
  const auto narrow = static_cast<float>(value);
  return whole && std::isfinite(narrow) ? std::make_optional(narrow) : std::nullopt;
}

bool ends_with(const std::string& text, const std::string& end) {
  return text.size() >= end.size() && text.compare(text.size() - end.size(), end.size(), end) == 0;
}

// Which columns are features: all, or all but the label's (or the targets').
std::vector<bool> feature_columns(const CsvRow& first, const DataConfig& config, int64_t elements,
                                  const std::string& path) {
  const auto columns = static_cast<int64_t>(first.fields.size());
  std::vector<bool> out(first.fields.size(), true);
  std::vector<ColumnRef> others = config.targets;
  if (others.empty()) others.push_back({config.label_name, config.label});
  if (columns == elements) return out;
  NETCL_CHECK(columns == elements + static_cast<int64_t>(others.size()), ErrorCode::kData, path,
              ':', first.line, ": ", columns, " columns; the model takes ", elements,
              " features (with the label's column: ", elements + others.size(), ")");
  for (const ColumnRef& other : others) {
    auto at = other.index < 0 ? columns + other.index : other.index;
    if (!other.name.empty()) {
      at = std::find(first.fields.begin(), first.fields.end(), other.name) - first.fields.begin();
    }
    NETCL_CHECK(at >= 0 && at < columns, ErrorCode::kData, path, ':', first.line, ": ", columns,
                " columns, none of which is the label's",
                other.name.empty() ? "" : " (\"" + other.name + "\")");
    out[static_cast<size_t>(at)] = false;
  }
  return out;
}

Samples read_table(const std::string& path, char delimiter, const DataConfig& config,
                   int64_t elements) {
  const std::string text = read_data_file(path);
  CsvRows rows(text, delimiter, path);
  Samples out;
  out.path = path;
  out.sample_shape = Shape({elements});
  CsvRow row;
  std::vector<bool> is_feature;
  while (rows.next(row)) {
    const bool first = is_feature.empty();
    if (first) is_feature = feature_columns(row, config, elements, path);
    NETCL_CHECK(row.fields.size() == is_feature.size(), ErrorCode::kData, path, ':', row.line, ": ",
                row.fields.size(), " fields; expected ", is_feature.size(), " as in the first row");
    std::vector<float> values;
    size_t bad = 0;
    for (size_t i = 0; i < row.fields.size(); ++i) {
      const auto value = is_feature[i] ? number_in(row.fields[i]) : std::nullopt;
      if (is_feature[i] && !value && bad == 0) bad = i + 1;
      if (value) values.push_back(*value);
    }
    const bool header = first && config.header != HeaderMode::kNo && bad > 0;
    if (header) continue;
    NETCL_CHECK(bad == 0, ErrorCode::kData, path, ':', row.line, ": column ", bad,
                ": expected a finite number, found ", quoted(row.fields[bad - 1]));
    out.f32.insert(out.f32.end(), values.begin(), values.end());
    out.labels.push_back(0);
  }
  NETCL_CHECK(!out.labels.empty(), ErrorCode::kData, path, ": the file holds no samples");
  return out;
}

// Numbers from a table as tokens.
void make_tokens(Samples& samples) {
  if (samples.dtype == DType::kI32) return;
  const auto count = std::max(samples.f32.size(), samples.u8.size());
  for (size_t i = 0; i < count; ++i) {
    const float value = samples.dtype == DType::kU8 ? samples.u8[i] : samples.f32[i];
    NETCL_CHECK(value >= 0 && value == std::floor(value) && value < 16777216.0f, ErrorCode::kData,
                samples.path, ": sample ",
                i / static_cast<size_t>(samples.sample_shape.num_elements()),
                " (from 0) has the token ", value, "; expected a whole number of at least 0");
    samples.i32.push_back(static_cast<int32_t>(value));
  }
  samples.dtype = DType::kI32;
}

Samples read_samples(const std::string& path, const DataConfig& config, int64_t elements) {
  const std::string name = ends_with(path, ".gz") ? path.substr(0, path.size() - 3) : path;
  if (ends_with(name, ".npy")) return features_of(parse_npy(read_data_file(path), path), config);
  if (ends_with(name, ".tsv")) return read_table(path, '\t', config, elements);
  if (ends_with(name, ".csv")) {
    return read_table(path, config.format == DataFormat::kCsv ? config.delimiter : ',', config,
                      elements);
  }
  if (config.format == DataFormat::kIdx || ends_with(name, "ubyte") || ends_with(name, ".idx"))
    return read_idx_features(path);
  NETCL_CHECK(config.format == DataFormat::kCsv || config.format == DataFormat::kTsv,
              ErrorCode::kData, path, ": unknown kind of file; expected .csv, .tsv, .npy or IDX");
  return read_table(path, config.delimiter, config, elements);
}

}  // namespace

Dataset read_features(const std::string& path, const DataConfig& config, int64_t elements,
                      DType dtype) {
  DataConfig how = config;
  how.tokens = dtype == DType::kI32;
  Samples samples = read_samples(path, how, elements);
  if (dtype == DType::kI32) make_tokens(samples);
  const int64_t each = samples.sample_shape.num_elements();
  NETCL_CHECK(each == elements, ErrorCode::kData, path, ": a sample has shape ",
              samples.sample_shape.str(), " (", each, " values); the model takes ", elements);
  const auto values =
      static_cast<int64_t>(std::max({samples.f32.size(), samples.u8.size(), samples.i32.size()}));
  samples.labels.assign(static_cast<size_t>(values / each), 0);
  return to_dataset(samples, 1, config.scale);
}

}  // namespace netcl::app
