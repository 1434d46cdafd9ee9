#include "apps/netcl_app/tune/tuner.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <ctime>
#include <utility>

#include "apps/netcl_app/tune/messages.h"
#include "core/base/append.h"
#include "core/base/clock.h"
#include "core/base/statistics.h"

namespace netcl::app {

namespace {

constexpr int kSamples = 7, kLastSamples = 11, kLastRounds = 2;
// Below this the clock decides, not the kernels.
constexpr double kGain = 0.98;

std::string today() {
  const std::time_t now = std::time(nullptr);
  std::tm utc{};
  ::gmtime_r(&now, &utc);
  std::array<char, 32> text{};
  std::strftime(text.data(), text.size(), "%Y-%m-%d", &utc);
  return text.data();
}

std::string microseconds(double us) {
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), us < 100 ? "%.1f us" : "%.0f us", us);
  return text.data();
}

std::string times(double factor) {
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), "%.2fx", factor);
  return text.data();
}

Json open_request(const TunerOptions& options) {
  return {{"do", "open"},
          {"device", netcl::to_json(options.device)},
          {"plugins", to_json(options.plugins)},
          {"only", options.only}};
}

}  // namespace

Tuner::Tuner(TunerOptions options, Logger log)
    : options_(std::move(options)),
      verdicts_(user_verdicts_file(), std::move(log)),
      child_(options_.device, open_request(options_), options_.timeout_seconds, options_.stop) {}

std::string Tuner::key(const std::string& plugin, const std::string& variant,
                       const TunedQuestion& question) const {
  return verdict_key(plugin, options_.content(plugin, find_op(question.op)), variant, question,
                     options_.device);
}

Json Tuner::attempt(const Candidate& candidate, const Json& against, int samples) const {
  return {{"do", "try"},
          {"plugin", candidate.plugin},
          {"variant", candidate.variant},
          {"against", against},
          {"samples", samples}};
}

void Tuner::skip(const Candidate& candidate, const std::string& why, TuneResult* result) {
  ++result->failed;
  options_.say("  " + candidate.plugin + "/" + candidate.variant + ": skipped: " + why);
}

std::optional<Tuner::Timed> Tuner::time(const Candidate& candidate,
                                        const std::optional<Timed>& best, TuneResult* result) {
  const std::string own = key(candidate.plugin, candidate.variant, result->question);
  const TunedVerdict known = verdicts_.of(own);
  const bool bad =
      known.state == TunedVerdict::State::kFailed || known.state == TunedVerdict::State::kBegun;
  if (bad && !options_.again) {
    skip(candidate, known.why, result);
    return std::nullopt;
  }
  ++result->tried;
  if (!known.passed()) verdicts_.keep_tried(own);
  Json against;
  if (best) against = {{"plugin", best->candidate.plugin}, {"variant", best->candidate.variant}};
  const TuneAnswer answer = child_.ask(attempt(candidate, against, kSamples), context_);
  if (answer.stopped) {
    if (!known.passed()) verdicts_.keep(own, TunedVerdict::State::kNone);
    return std::nullopt;
  }
  if (answer.json.is_object() && answer.json.contains("declined")) {
    if (!known.passed()) verdicts_.keep(own, TunedVerdict::State::kNone);
    return std::nullopt;
  }
  if (!answer.json.is_object() || !answer.json.contains("us")) {
    std::string why = answer.ended;
    if (answer.json.is_object()) why = answer.json.value("wrong", answer.json.value("error", ""));
    verdicts_.keep(own, TunedVerdict::State::kFailed, why);
    skip(candidate, why, result);
    return std::nullopt;
  }
  if (!known.passed()) verdicts_.keep(own, TunedVerdict::State::kPassed);
  const auto us = answer.json.at("us").get<std::vector<double>>();
  const auto other = answer.json.at("against_us").get<std::vector<double>>();
  return Timed{candidate, median(us), other.empty() ? 0 : median(other), spread(us)};
}

bool Tuner::search(Search* search, double deadline, std::optional<Timed>* best,
                   TuneResult* result) {
  const double usual_us = result->usual.us;
  double gain = 1;  // over the default, by the times taken side by side
  while (!options_.stop() && now_seconds() < deadline) {
    const auto candidate = search->next();
    if (!candidate) return true;
    const bool is_default =
        candidate->plugin == result->usual.plugin && candidate->variant == result->usual.variant;
    if (is_default) {
      if ((*best)->candidate.place.empty()) {
        (*best)->candidate = *candidate;
        search->best(*candidate);
      }
      continue;
    }
    const auto timed = time(*candidate, *best, result);
    if (!timed || timed->us >= kGain * timed->against_us) continue;
    gain *= timed->against_us / timed->us;
    *best = timed;
    search->best(*candidate);
    options_.say(str_cat("  ", candidate->plugin, "/", candidate->variant, ": ",
                         microseconds(usual_us / gain), ", ", times(gain), " the default"));
  }
  return false;
}

void Tuner::measure_again(Timed* best, TuneResult* result) {
  TunedTime& usual = result->usual;
  std::vector<double> us, against;
  for (int round = 0; round < kLastRounds && !options_.stop(); ++round) {
    Json request = attempt(best->candidate, {{"plugin", usual.plugin}, {"variant", usual.variant}},
                           kLastSamples);
    request["patient"] = true;
    const TuneAnswer answer = child_.ask(request, context_);
    if (!answer.json.is_object() || !answer.json.contains("us")) break;
    for (const Json& x : answer.json.at("us")) us.push_back(x.get<double>());
    for (const Json& x : answer.json.at("against_us")) against.push_back(x.get<double>());
    if (median(us) < kGain * median(against)) break;
  }
  if (us.empty()) return;  // stopped: the times of the search stand
  usual.us = median(against);
  best->us = median(us);
  best->spread = spread(us);
  if (best->us < kGain * usual.us) return;
  options_.say("  side by side the default is no slower");
  best->candidate = {usual.plugin, usual.variant, {}};
  best->us = usual.us;
  best->spread = spread(against);
}

void Tuner::finish(Timed best, const Json& described, TuneResult* result) {
  TunedTime& usual = result->usual;
  if (best.candidate.plugin == usual.plugin && best.candidate.variant == usual.variant) {
    best.us = usual.us;
  } else {
    measure_again(&best, result);
  }
  result->best = {best.candidate.plugin, best.candidate.variant, best.us};
  TunedRecord record;
  record.question = result->question;
  record.device = tuned_device(options_.device);
  record.software = tuned_software(options_.device);
  record.plugin = result->best.plugin;
  record.content = options_.content(result->best.plugin, find_op(result->question.op)).kernels;
  record.variant = result->best.variant;
  record.median_us = best.us;
  record.spread = best.spread;
  record.default_plugin = usual.plugin;
  record.default_variant = usual.variant;
  record.default_us = usual.us;
  described.at("kernel_sets").get_to(record.kernel_sets);
  auto& sets = record.kernel_sets;
  if (std::find(sets.begin(), sets.end(), usual.plugin) == sets.end()) sets.push_back(usual.plugin);
  record.check = described.at("check").get<std::string>();
  record.date = today();
  append_line(options_.out, tuned_line(record), ErrorCode::kCheckpoint);
  result->record = options_.out.string();
}

TuneResult Tuner::tune(const TunedQuestion& question, double budget_seconds) {
  const double begin = now_seconds(), deadline = begin + budget_seconds;
  TuneResult out;
  out.question = question;
  context_ = {{"do", "question"}, {"question", Json::parse(question_json(question))}};
  const std::string name = question.op + " " + question.shapes();
  const TuneAnswer described = child_.ask(context_, nullptr);
  if (described.stopped) return out;
  if (!described.json.is_object() || described.json.contains("error")) {
    out.skipped = described.json.is_object() ? described.json.at("error").get<std::string>()
                                             : "its default kernels: " + described.ended;
    return out;
  }
  Search all(spaces_from_json(described.json.at("spaces")));
  const Json& usual = described.json.at("default");
  out.usual = {usual.at("plugin").get<std::string>(), usual.at("variant").get<std::string>(), 0};
  out.best = out.usual;
  out.candidates = all.size();
  if (all.size() < 2) {
    out.skipped = "there is one way to compute it";
    return out;
  }
  options_.say(str_cat("searching ", all.size(), " candidates of ", name, " on ",
                       options_.device.selector, ", at most ", std::round(budget_seconds), " s"));
  std::optional<Timed> best = time({out.usual.plugin, out.usual.variant, {}}, std::nullopt, &out);
  if (best) {
    out.usual.us = out.best.us = best->us;
    options_.say(str_cat("  ", out.usual.plugin, "/", out.usual.variant, ": ",
                         microseconds(best->us), ", the default"));
    out.complete = search(&all, deadline, &best, &out);
    const bool better =
        best->candidate.plugin != out.usual.plugin || best->candidate.variant != out.usual.variant;
    // That the default is the best is known only when all was tried.
    if (better || out.complete) finish(*best, described.json, &out);
  } else if (!options_.stop()) {
    out.skipped = "its default kernels, " + out.usual.plugin + "/" + out.usual.variant +
                  ", fail their check here; --disable-plugins " + out.usual.plugin +
                  " does without them";
    out.default_fails = true;
  }
  out.seconds = now_seconds() - begin;
  return out;
}

}  // namespace netcl::app
