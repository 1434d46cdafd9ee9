#include "apps/netcl_app/tune/questions.h"

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <map>

#include "core/base/error.h"
#include "core/base/file.h"
#include "core/base/json_doc.h"
#include "core/verify/sample_cases.h"

namespace netcl::app {
namespace fs = std::filesystem;

namespace {

// Layers' own ops are not in the table; views and sums over ranks have no kernels.
bool has_kernels(const std::string& op) {
  const auto& rows = op_table();
  const auto row =
      std::find_if(rows.begin(), rows.end(), [&](const OpRow& r) { return r.name == op; });
  return row != rows.end() && !row->view && !row->collective;
}

}  // namespace

OpenQuestion::OpenQuestion(const TunedQuestion& question)
    : row(find_op(question.op)), in(question.in), attrs(complete_attrs(row, attrs_of(question))) {
  out = row.infer({row, in, attrs});
}

std::vector<WeightedQuestion> questions_of_run(const std::string& run) {
  std::error_code ignored;
  fs::path file = run;
  if (fs::is_directory(run, ignored)) file /= "environment.json";
  const Json json = Json::parse(read_file(file, ErrorCode::kUsage), nullptr, false);
  NETCL_CHECK(json.is_object() && json.contains("workers"), ErrorCode::kUsage, "--from-run ", run,
              ": ", file.string(), " is no environment.json of a run");
  std::map<std::string, WeightedQuestion> all;
  for (const Json& worker : json.at("workers")) {
    for (const Json& one : worker.value("questions", Json::array())) {
      const TunedQuestion question = question_from_json(one.dump());
      if (!has_kernels(question.op)) continue;
      const OpenQuestion open(question);
      const double cost = one.value("nodes", 1.0) * reference_cost(open.row, open.in, open.out);
      const auto [place, is_new] = all.try_emplace(question.text(), WeightedQuestion{question, 0});
      place->second.weight = std::max(place->second.weight, cost);
    }
  }
  NETCL_CHECK(
      !all.empty(), ErrorCode::kUsage, "--from-run ", run, ": ", file.string(),
      " has no questions; the run ended before its first step, or an older version made it");
  std::vector<WeightedQuestion> out;
  for (auto& [text, question] : all) out.push_back(std::move(question));
  std::stable_sort(
      out.begin(), out.end(),
      [](const WeightedQuestion& a, const WeightedQuestion& b) { return a.weight > b.weight; });
  return out;
}

double seconds_from(const std::string& text, const std::string& option) {
  char* end = nullptr;
  const double number = std::strtod(text.c_str(), &end);
  const std::string unit = end;
  const std::map<std::string, double> units = {{"", 1}, {"s", 1}, {"m", 60}, {"h", 3600}};
  const auto found = units.find(unit);
  NETCL_CHECK(end != text.c_str() && found != units.end() && number > 0 && number <= 1e6,
              ErrorCode::kUsage, option, " ", text,
              ": expected a time above 0, such as 120s, 2m or 1h");
  return number * found->second;
}

}  // namespace netcl::app
