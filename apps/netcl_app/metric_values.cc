#include "apps/netcl_app/metric_values.h"

#include <algorithm>
#include <cmath>
#include <iomanip>
#include <sstream>

#include "core/nn/metric.h"

namespace netcl::app {
namespace {

constexpr size_t kMostColumns = 20;  // of a confusion matrix that is shown

double ratio(double part, double whole) { return whole > 0 ? part / whole : 0; }

// Precision, recall and F1 of every class, and their averages.
void add_classes(const std::vector<double>& confusion, const std::vector<std::string>& names,
                 Json& out) {
  const auto classes = static_cast<size_t>(std::llround(std::sqrt(confusion.size())));
  Json matrix = Json::array(), rows = Json::array();
  double sums[3] = {0, 0, 0};
  double occurring = 0;
  for (size_t c = 0; c < classes; ++c) {
    double support = 0, guessed = 0;
    Json row = Json::array();
    for (size_t other = 0; other < classes; ++other) {
      row.push_back(std::llround(confusion[c * classes + other]));
      support += confusion[c * classes + other];
      guessed += confusion[other * classes + c];
    }
    matrix.push_back(std::move(row));
    const double hits = confusion[c * classes + c];
    const double precision = ratio(hits, guessed), recall = ratio(hits, support);
    const double f1 = ratio(2 * hits, support + guessed);
    rows.push_back({{"class", c < names.size() ? Json(names[c]) : Json(c)},
                    {"precision", precision},
                    {"recall", recall},
                    {"f1", f1},
                    {"support", std::llround(support)}});
    if (support + guessed == 0) continue;
    occurring += 1;
    sums[0] += precision;
    sums[1] += recall;
    sums[2] += f1;
  }
  out["macro_precision"] = ratio(sums[0], occurring);
  out["macro_recall"] = ratio(sums[1], occurring);
  out["macro_f1"] = ratio(sums[2], occurring);
  out["per_class"] = std::move(rows);
  out["confusion"] = std::move(matrix);
}

std::string name_of(const Json& row) {
  const Json& name = row.at("class");
  return name.is_string() ? Json(name.get<std::string>()).dump() : name.dump();
}

void print_matrix(const Json& matrix, std::ostringstream& out) {
  out << "confusion matrix (rows: the label, columns: the guess)\n";
  for (size_t c = 0; c < matrix.size(); ++c) {
    out << std::setw(6) << c << " |";
    for (const Json& count : matrix[c]) out << std::setw(7) << count.dump();
    out << "\n";
  }
}

}  // namespace

Json metric_values(const Sums& sums, const std::vector<std::string>& metrics,
                   const std::vector<std::string>& class_names) {
  Json out;
  out["loss"] = sums.loss();
  const auto mean = [&](const char* key, const std::string& name) {
    const auto found = sums.values.find(name);
    if (found != sums.values.end()) out[key] = found->second / sums.count();
  };
  for (const std::string& metric : metrics) {
    if (metric == "accuracy") mean("accuracy", metric_sums::kCorrect);
    if (top_k_of(metric)) mean(metric.c_str(), metric);
    if (metric == "perplexity") out["perplexity"] = std::exp(sums.loss());
    if (metric == "mse") mean("mse", metric_sums::kSquared);
    if (metric == "mae") mean("mae", metric_sums::kAbsolute);
  }
  const auto confusion = sums.matrices.find(metric_sums::kConfusion);
  if (confusion != sums.matrices.end()) add_classes(confusion->second, class_names, out);
  return out;
}

Json scalar_metrics(const Json& metrics) {
  Json out = Json::object();
  for (const auto& [key, value] : metrics.items()) {
    if (!value.is_structured()) out[key] = value;
  }
  return out;
}

std::string metric_table(const Json& metrics) {
  std::ostringstream out;
  out << std::fixed << std::setprecision(4);
  for (const auto& [key, value] : metrics.items()) {
    if (value.is_structured()) continue;
    out << std::left << std::setw(18) << key << std::right;
    if (value.is_number()) out << value.get<double>() << "\n";
    if (!value.is_number()) out << "no number\n";
  }
  if (metrics.contains("per_class")) {
    out << std::left << std::setw(18) << "class" << std::right
        << " precision    recall        f1   support\n";
    for (const Json& row : metrics["per_class"]) {
      out << std::left << std::setw(18) << name_of(row) << std::right;
      for (const char* key : {"precision", "recall", "f1"})
        out << std::setw(10) << row.at(key).get<double>();
      out << std::setw(10) << row.at("support").dump() << "\n";
    }
  }
  if (metrics.contains("confusion") && metrics["confusion"].size() <= kMostColumns)
    print_matrix(metrics["confusion"], out);
  return out.str();
}

}  // namespace netcl::app
