#include "apps/netcl_app/formats/csv.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <optional>
#include <unordered_map>
#include <utility>

#include "apps/netcl_app/formats/csv_rows.h"
#include "apps/netcl_app/formats/gzip.h"
#include "core/base/error.h"
#include "core/base/text.h"

namespace netcl::app {
namespace {

// More classes than this is a measured quantity in the label's column, not a class.
constexpr double kMaxLabel = 1 << 24;

// The number that makes up the whole field. A leading '+' is accepted.
std::optional<double> number_in(std::string_view field) {
  if (field.size() > 1 && field[0] == '+' && field[1] != '-') field.remove_prefix(1);
  double value = 0.0;
  const auto [end, error] = std::from_chars(field.data(), field.data() + field.size(), value);
  if (error != std::errc() || end != field.data() + field.size()) return std::nullopt;
  return value;
}

std::optional<int64_t> count_in(const std::string& field) {
  const auto value = number_in(field);
  if (!value || *value < 0 || *value != std::floor(*value) || *value > 1e15) return std::nullopt;
  return static_cast<int64_t>(*value);
}

bool means_missing(const std::string& field) {
  const std::string lower = to_lower(field);
  return lower.empty() || lower == "na" || lower == "nan" || lower == "n/a" || lower == "null" ||
         lower == "none" || lower == "?";
}

// Builds the samples row by row.
class TableReader {
 public:
  TableReader(std::string_view text, const DataConfig& config, const std::string& path,
              const std::vector<std::string>& known_classes)
      : config_(config), path_(path), rows_(text, config.delimiter, path) {
    out_.path = path;
    out_.class_names = known_classes;
    for (size_t i = 0; i < known_classes.size(); ++i) {
      class_ids_[known_classes[i]] = static_cast<int32_t>(i);
    }
    fixed_classes_ = !known_classes.empty();
  }

  Samples run() {
    CsvRow row, second;
    if (!rows_.next(row)) fail(ErrorCode::kData, path_, ": the file is empty; expected a table");
    const bool more = rows_.next(second);
    if (take_counts_row(row, more ? &second : nullptr)) {
      columns_ = second.fields.size();
      find_label(second, nullptr);
    } else {
      columns_ = row.fields.size();
      const bool header = is_header(row);
      find_label(row, header ? &row : nullptr);
      if (!header) add(row);
      NETCL_CHECK(more || !header, ErrorCode::kData, path_,
                  ": the file has a header and no samples");
    }
    if (more) add(second);
    while (rows_.next(row)) add(row);
    return finish();
  }

 private:
  [[noreturn]] void reject(const CsvRow& row, size_t column, const std::string& message) const {
    fail(ErrorCode::kData, path_, ':', row.line, ": column ", column + 1,
         column < names_.size() ? " (" + names_[column] + ")" : "", ": ", message);
  }

  // True for a first row `rows,features,class,class,...` before rows of features and a label.
  bool take_counts_row(const CsvRow& row, const CsvRow* second) {
    if (regression()) return false;
    // Two classes at least: `1,2,cat` is a sample of two features, but no sample holds two texts.
    if (config_.header == HeaderMode::kNo || second == nullptr || row.fields.size() < 4) {
      return false;
    }
    const auto count = count_in(row.fields[0]);
    const auto features = count_in(row.fields[1]);
    if (!count || !features || *features + 1 != static_cast<int64_t>(second->fields.size())) {
      return false;
    }
    for (size_t i = 2; i < row.fields.size(); ++i) {
      if (row.fields[i].empty() || number_in(row.fields[i])) return false;
    }
    NETCL_CHECK(config_.label_name.empty(), ErrorCode::kData, path_, ':', row.line,
                ": the columns have no names, so there is no column \"", config_.label_name,
                "\" for data.label; give its number");
    expected_rows_ = *count;
    if (!fixed_classes_) counts_names_.assign(row.fields.begin() + 2, row.fields.end());
    return true;
  }

  bool is_header(const CsvRow& row) const {
    if (config_.header != HeaderMode::kAuto) return config_.header == HeaderMode::kYes;
    if (regression()) {
      for (const ColumnRef& target : config_.targets) {
        if (!target.name.empty()) return true;
      }
    } else if (!config_.label_name.empty()) {
      return true;
    }
    const int64_t columns = static_cast<int64_t>(row.fields.size());
    const int64_t label = config_.label < 0 ? columns + config_.label : config_.label;
    for (int64_t i = 0; i < columns; ++i) {
      const std::string& field = row.fields[static_cast<size_t>(i)];
      // A missing value is no name: the row is data with a hole, and the reader says so.
      if ((i != label || regression()) && !number_in(field) && !means_missing(field)) return true;
    }
    return false;
  }

  void find_label(const CsvRow& row, const CsvRow* header) {
    NETCL_CHECK(columns_ >= 2, ErrorCode::kData, path_, ':', row.line, ": one column (",
                quoted(row.fields[0]), "); expected features and a label separated by '",
                config_.delimiter == '\t' ? "\\t" : std::string(1, config_.delimiter),
                "' (see data.format and data.delimiter)");
    if (header != nullptr) names_ = header->fields;
    role_.assign(columns_, -1);
    if (!regression()) {
      label_ = column_of(row, {config_.label_name, config_.label}, header != nullptr, "data.label");
      role_[label_] = 0;
      return;
    }
    for (size_t i = 0; i < config_.targets.size(); ++i) {
      const size_t column = column_of(row, config_.targets[i], header != nullptr, "data.target");
      NETCL_CHECK(role_[column] < 0, ErrorCode::kData, path_, ':', row.line,
                  ": data.target names column ", column + 1, " twice");
      role_[column] = static_cast<int>(i);
    }
    NETCL_CHECK(config_.targets.size() < columns_, ErrorCode::kData, path_, ':', row.line,
                ": data.target takes all ", columns_, " columns; expected at least one feature");
  }

  bool regression() const { return !config_.targets.empty(); }

  size_t column_of(const CsvRow& row, const ColumnRef& wanted, bool has_header, const char* key) {
    if (!wanted.name.empty()) {
      const auto found = std::find(names_.begin(), names_.end(), wanted.name);
      NETCL_CHECK(found != names_.end(), ErrorCode::kData, path_, ':', row.line,
                  ": there is no column \"", wanted.name, "\" for ", key,
                  has_header ? suggest(wanted.name, names_) : "; the file has no header");
      return static_cast<size_t>(found - names_.begin());
    }
    const int64_t columns = static_cast<int64_t>(columns_);
    const int64_t at = wanted.index < 0 ? columns + wanted.index : wanted.index;
    NETCL_CHECK(at >= 0 && at < columns, ErrorCode::kData, path_, ':', row.line, ": the rows have ",
                columns, " columns; ", key, " is ", wanted.index, ", expected ", -columns, " to ",
                columns - 1);
    return static_cast<size_t>(at);
  }

  void add(const CsvRow& row) {
    NETCL_CHECK(row.fields.size() == columns_, ErrorCode::kData, path_, ':', row.line, ": ",
                row.fields.size(), " fields; expected ", columns_, " as in the first row");
    const size_t first_target = out_.targets.size();
    out_.targets.resize(first_target + config_.targets.size());
    for (size_t i = 0; i < columns_; ++i) {
      const std::string& field = row.fields[i];
      if (role_[i] >= 0 && !regression()) {
        out_.labels.push_back(label_of(row, field));
        continue;
      }
      const auto value = number_in(field);
      const float narrow = value ? static_cast<float>(*value) : 0.0f;
      if (!value || !std::isfinite(narrow)) {
        if (means_missing(field)) {
          reject(row, i, "the value is missing (" + quoted(field) + "); expected a number");
        }
        reject(row, i, "expected a finite number, found " + quoted(field));
      }
      if (role_[i] >= 0) {
        out_.targets[first_target + static_cast<size_t>(role_[i])] = narrow;
        continue;
      }
      if (narrow < 0.0f || narrow > 255.0f || narrow != std::floor(narrow)) bytes_ = false;
      out_.f32.push_back(narrow);
    }
    out_.lines.push_back(row.line);
  }

  int32_t label_of(const CsvRow& row, const std::string& field) {
    const auto value = number_in(field);
    if (field.empty() || field == "?" || (value && !std::isfinite(*value))) {
      reject(row, label_, "the label is missing (" + quoted(field) + ")");
    }
    if (!text_labels_) text_labels_ = !value || class_ids_.count(field) > 0;
    if (*text_labels_) return class_of(row, field);
    if (!value || !(*value >= 0.0) || *value != std::floor(*value)) {
      reject(row, label_,
             "expected a label that is a whole number of at least 0, found " + quoted(field));
    }
    if (*value > kMaxLabel) {
      reject(row, label_, "the label " + quoted(field) + " is too large for a class number");
    }
    return static_cast<int32_t>(*value);
  }

  int32_t class_of(const CsvRow& row, const std::string& field) {
    const auto found = class_ids_.find(field);
    if (found != class_ids_.end()) return found->second;
    if (fixed_classes_) {
      reject(row, label_,
             "the class " + quoted(field) + " does not occur in the training data" +
                 suggest(field, out_.class_names));
    }
    const int32_t id = static_cast<int32_t>(out_.class_names.size());
    class_ids_[field] = id;
    out_.class_names.push_back(field);
    return id;
  }

  Samples finish() {
    const auto num_targets = static_cast<int64_t>(config_.targets.size());
    if (num_targets > 1) out_.label_shape = Shape({num_targets});
    const int64_t count = out_.count();
    NETCL_CHECK(expected_rows_ < 0 || expected_rows_ == count, ErrorCode::kData, path_,
                ":1: the first row promises ", expected_rows_, " rows; ", count, " follow");
    out_.sample_shape = Shape({static_cast<int64_t>(columns_) - std::max<int64_t>(num_targets, 1)});
    if (regression()) out_.class_names.clear();
    if (!regression() && !text_labels_.value_or(false)) {
      out_.class_names = fixed_classes_ ? out_.class_names : counts_names_;
      const int64_t classes = static_cast<int64_t>(out_.class_names.size());
      for (size_t i = 0; classes > 0 && i < out_.labels.size(); ++i) {
        NETCL_CHECK(out_.labels[i] < classes, ErrorCode::kData, path_, ':', out_.lines[i],
                    ": label ", out_.labels[i], "; there are ", classes,
                    " named classes: ", join(out_.class_names, ", "));
      }
    }
    if (bytes_) {
      out_.dtype = DType::kU8;
      out_.u8.resize(out_.f32.size());
      std::transform(out_.f32.begin(), out_.f32.end(), out_.u8.begin(),
                     [](float value) { return static_cast<uint8_t>(value); });
      std::vector<float>().swap(out_.f32);
    }
    return std::move(out_);
  }

  const DataConfig& config_;
  std::string path_;
  CsvRows rows_;
  Samples out_;
  size_t columns_ = 0;
  size_t label_ = 0;
  std::vector<int> role_;                  // of a column: -1 a feature, else the label or target
  std::vector<std::string> names_;         // of the columns, if there is a header
  std::vector<std::string> counts_names_;  // class names of a counts row
  int64_t expected_rows_ = -1;
  bool bytes_ = true;                // all features so far are whole, 0 to 255
  std::optional<bool> text_labels_;  // set by the first label
  bool fixed_classes_ = false;
  std::unordered_map<std::string, int32_t> class_ids_;
};

}  // namespace

std::string quoted(std::string_view text) {
  std::string out = "\"";
  for (const char c : text.substr(0, 40)) {
    const unsigned char byte = static_cast<unsigned char>(c);
    if (byte < 0x20 || byte == 0x7f) {
      out += "\\x";
      out += "0123456789abcdef"[byte >> 4];
      out += "0123456789abcdef"[byte & 15];
    } else {
      out += c;
    }
  }
  return out + (text.size() > 40 ? "...\"" : "\"");
}

Samples parse_csv(std::string_view text, const DataConfig& config, const std::string& path,
                  const std::vector<std::string>& known_classes) {
  return TableReader(text, config, path, known_classes).run();
}

Samples read_csv(const std::string& path, const DataConfig& config,
                 const std::vector<std::string>& known_classes) {
  return parse_csv(read_data_file(path), config, path, known_classes);
}

}  // namespace netcl::app
