#include "apps/netcl_app/transport_times.h"

#include <iomanip>
#include <sstream>

#include "core/base/text.h"

namespace netcl::app {

namespace {

constexpr double kGain = 0.9;          // of the other's time at most, to be worth a change
constexpr double kMostTogether = 1.5;  // kernels that run at once, with disturbance

std::string digits(double value) {
  std::ostringstream out;
  out << std::setprecision(3) << value;
  return out.str();
}

std::string ms(const TransportTime& time) { return digits(time.us / 1000) + " ms"; }

Json to_json(const TransportTime& time) {
  if (!time.error.empty()) return {{"error", time.error}};
  return {{"us", time.us}, {"correct", time.correct}};
}

TransportTime time_from_json(const Json& json) {
  TransportTime out;
  out.error = json.value("error", "");
  if (!out.error.empty()) return out;
  json.at("us").get_to(out.us);
  json.at("correct").get_to(out.correct);
  return out;
}

}  // namespace

Json to_json(const TransportTimes& times) {
  if (!times.error.empty()) return {{"error", times.error}};
  return {{"bytes", times.bytes},
          {"ranks", times.n_ranks},
          {times.staged_name, to_json(times.staged)},
          {times.shared_name, to_json(times.shared)},
          {"kernels_together", times.kernels_together},
          {"from_cache", times.from_cache}};
}

TransportTimes transport_times_from_json(const Json& json, const std::string& staged_name,
                                         const std::string& shared_name) {
  TransportTimes out;
  out.staged_name = staged_name;
  out.shared_name = shared_name;
  out.error = json.value("error", "");
  if (!out.error.empty()) return out;
  json.at("bytes").get_to(out.bytes);
  json.at("ranks").get_to(out.n_ranks);
  json.at("kernels_together").get_to(out.kernels_together);
  out.from_cache = json.value("from_cache", false);
  out.staged = time_from_json(json.at(out.staged_name));
  out.shared = time_from_json(json.at(out.shared_name));
  return out;
}

TransportDecision decide(const TransportTimes& times) {
  const std::string &staged_name = times.staged_name, &shared_name = times.shared_name;
  if (!times.error.empty())
    return {false, str_cat(staged_name, ": ", shared_name,
                           " could not be timed beside it: ", times.error)};
  const TransportTime &staged = times.staged, &shared = times.shared;
  if (!shared.error.empty())
    return {false, str_cat(staged_name, ": ", shared_name, " cannot: ", shared.error)};
  if (!shared.correct)
    return {false, str_cat(staged_name, ": ", shared_name, " adds up wrongly here")};
  const std::string what = str_cat("an all_reduce of ", times.bytes >> 20, " MiB over ",
                                   times.n_ranks, " devices takes ");
  const std::string together = str_cat("kernels on all of them at once take ",
                                       digits(times.kernels_together), " times as long as on one");
  if (!staged.error.empty() || !staged.correct) {
    return {true, str_cat(shared_name, ": ", staged_name, " ",
                          staged.error.empty() ? "adds up wrongly here" : "cannot: " + staged.error,
                          "; ", what, ms(shared))};
  }
  const std::string numbers =
      str_cat(what, staged_name, " ", ms(staged), " and ", shared_name, " ", ms(shared));
  if (shared.us > kGain * staged.us) return {false, str_cat(staged_name, ": ", numbers)};
  if (times.kernels_together > kMostTogether)
    return {false, str_cat(staged_name, ": ", numbers, ", but in one context ", together)};
  return {true, str_cat(shared_name, ": ", numbers, "; ", together)};
}

}  // namespace netcl::app
