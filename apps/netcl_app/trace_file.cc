#include "apps/netcl_app/trace_file.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <limits>
#include <set>

#include "core/base/file.h"

namespace netcl::app {

namespace {

constexpr int64_t kWarmUpSteps = 10;
constexpr size_t kEventsPerMessage = 1000;  // far below the longest line

using Interval = std::pair<uint64_t, uint64_t>;

// Sorted, without overlaps.
std::vector<Interval> united(std::vector<Interval> in) {
  std::sort(in.begin(), in.end());
  std::vector<Interval> out;
  for (const Interval& i : in) {
    if (i.second <= i.first) continue;
    if (!out.empty() && i.first <= out.back().second) {
      out.back().second = std::max(out.back().second, i.second);
    } else {
      out.push_back(i);
    }
  }
  return out;
}

double total_ms(const std::vector<Interval>& intervals) {
  double out = 0;
  for (const Interval& i : intervals) out += static_cast<double>(i.second - i.first) * 1e-6;
  return out;
}

// The common part of two united lists.
std::vector<Interval> common(const std::vector<Interval>& a, const std::vector<Interval>& b) {
  std::vector<Interval> out;
  for (size_t i = 0, j = 0; i < a.size() && j < b.size();) {
    const Interval both{std::max(a[i].first, b[j].first), std::min(a[i].second, b[j].second)};
    if (both.first < both.second) out.push_back(both);
    ++(a[i].second < b[j].second ? i : j);
  }
  return out;
}

double rounded(double value) { return std::round(value * 1e4) / 1e4; }

const char* track_name(int track) {
  return track == static_cast<int>(TraceTrack::kCompute)     ? "compute queue"
         : track == static_cast<int>(TraceTrack::kTransport) ? "transport"
                                                             : "host loop";
}

}  // namespace

void check_trace_place(const std::string& file) {
  if (file.empty()) return;
  const std::filesystem::path place = std::filesystem::absolute(file);
  std::error_code error;
  NETCL_CHECK(!std::filesystem::is_directory(place, error), ErrorCode::kUsage, "--trace ", file,
              " is a directory; give the file to write");
  NETCL_CHECK(std::filesystem::is_directory(place.parent_path(), error), ErrorCode::kUsage,
              "--trace ", file, ": there is no directory ", place.parent_path().string(),
              "; make it first");
}

void send_trace(const std::function<void(const Json&)>& say, Trace& trace) {
  const std::vector<TraceRecord> records = trace.take();
  for (size_t begin = 0; begin < records.size(); begin += kEventsPerMessage) {
    Json events = Json::array();
    for (size_t i = begin; i < std::min(records.size(), begin + kEventsPerMessage); ++i) {
      const TraceRecord& r = records[i];
      Json numbers = Json::object();
      for (const auto& [name, value] : r.numbers) numbers[name] = value;
      events.push_back({static_cast<int>(r.track), r.name, r.category, r.step, r.begin_ns, r.end_ns,
                        std::move(numbers)});
    }
    say({{"type", "trace"}, {"accuracy_ns", trace.accuracy_ns()}, {"events", std::move(events)}});
  }
}

TraceWindow trace_window(int64_t first_step, int64_t end_step, int64_t wanted) {
  const int64_t steps = std::min(wanted, end_step - first_step);
  return {first_step + std::min(kWarmUpSteps, end_step - first_step - steps), steps};
}

void TraceFile::add(uint32_t rank, const Json& message) {
  Rank& to = ranks_[rank];
  to.accuracy_ns = message.at("accuracy_ns").get<uint64_t>();
  for (const Json& e : message.at("events")) {
    to.events.push_back({e.at(0).get<int>(), e.at(1).get<std::string>(), e.at(2).get<std::string>(),
                         e.at(3).get<int64_t>(), e.at(4).get<uint64_t>(), e.at(5).get<uint64_t>(),
                         e.at(6)});
  }
}

std::map<uint64_t, uint64_t> TraceFile::last_ready() const {
  std::map<uint64_t, uint64_t> out;
  for (const auto& [number, rank] : ranks_) {
    for (const Event& event : rank.events) {
      if (event.category != "collective") continue;
      uint64_t& ready = out[event.numbers.at("number").get<uint64_t>()];
      ready = std::max(ready, event.begin_ns);
    }
  }
  return out;
}

Json TraceFile::rank_summary(uint32_t number, const Rank& rank,
                             const std::map<uint64_t, uint64_t>& ready) const {
  std::vector<Interval> working, communication, waiting;
  std::set<int64_t> steps;
  int64_t late = 0;
  for (const Event& event : rank.events) {
    steps.insert(event.step);
    if (event.track == static_cast<int>(TraceTrack::kCompute))
      working.emplace_back(event.begin_ns, event.end_ns);
    if (event.category != "collective") continue;
    const uint64_t all_ready = ready.at(event.numbers.at("number").get<uint64_t>());
    communication.emplace_back(all_ready, event.end_ns);
    waiting.emplace_back(event.begin_ns, std::min(all_ready, event.end_ns));
    late += event.numbers.at("late").get<int64_t>();
  }
  // A device that waits for a slower rank's data would do so without this communication, too.
  std::vector<Interval> occupied = working;
  occupied.insert(occupied.end(), waiting.begin(), waiting.end());
  occupied = united(std::move(occupied));
  working = united(std::move(working));
  communication = united(std::move(communication));
  const double n = std::max<double>(1, static_cast<double>(steps.size()));
  const double whole = total_ms(communication) / n;
  const double hidden = total_ms(common(communication, occupied)) / n;
  Json out = {{"rank", number},
              {"steps", steps.size()},
              {"communication_ms", rounded(whole)},
              {"exposed_ms", rounded(whole - hidden)},
              {"exposed_percent", nullptr},
              {"wait_for_ranks_ms", rounded(total_ms(united(std::move(waiting))) / n)},
              {"device_ms", rounded(total_ms(working) / n)},
              {"late", late},
              {"accuracy_us", static_cast<double>(rank.accuracy_ns) * 1e-3}};
  if (whole > 0) out["exposed_percent"] = rounded(100 * (whole - hidden) / whole);
  return out;
}

Json TraceFile::summary() const {
  const std::map<uint64_t, uint64_t> ready = last_ready();
  Json out = {{"steps", 0}, {"ranks", Json::array()}};
  const char* const means[] = {"communication_ms", "exposed_ms", "wait_for_ranks_ms", "device_ms"};
  for (const char* key : means) out[key] = 0.0;
  out["exposed_percent"] = nullptr;
  out["late"] = 0;
  out["accuracy_us"] = 0.0;
  for (const auto& [number, rank] : ranks_) {
    Json row = rank_summary(number, rank, ready);
    out["steps"] = std::max(out["steps"].get<int64_t>(), row["steps"].get<int64_t>());
    for (const char* key : means)
      out[key] =
          out[key].get<double>() + row[key].get<double>() / static_cast<double>(ranks_.size());
    out["late"] = out["late"].get<int64_t>() + row["late"].get<int64_t>();
    out["accuracy_us"] =
        std::max(out["accuracy_us"].get<double>(), row["accuracy_us"].get<double>());
    out["ranks"].push_back(std::move(row));
  }
  for (const char* key : means) out[key] = rounded(out[key].get<double>());
  const double whole = out["communication_ms"].get<double>();
  if (whole > 0) out["exposed_percent"] = rounded(100 * out["exposed_ms"].get<double>() / whole);
  return out;
}

void TraceFile::write(const std::filesystem::path& path,
                      const std::vector<std::string>& labels) const {
  uint64_t base = std::numeric_limits<uint64_t>::max();
  for (const auto& [number, rank] : ranks_) {
    for (const Event& event : rank.events) base = std::min(base, event.begin_ns);
  }
  const auto micros = [](uint64_t ns) { return static_cast<double>(ns) / 1000.0; };
  Json events = Json::array();
  for (const auto& [number, rank] : ranks_) {
    const auto meta = [&, pid = number](const char* what, int tid, const std::string& name) {
      events.push_back(
          {{"ph", "M"}, {"name", what}, {"pid", pid}, {"tid", tid}, {"args", {{"name", name}}}});
    };
    meta("process_name", 0, str_cat("rank ", number, " (", labels.at(number), ")"));
    for (int track = 1; track <= 3; ++track) meta("thread_name", track, track_name(track));
    uint64_t transport_end = 0;
    for (const Event& event : rank.events) {
      uint64_t begin = event.begin_ns;
      Json args = event.numbers;
      args["step"] = event.step;
      if (event.category == "collective") {
        // They are worked off one after the other: the next one begins where the last one ends.
        args["ready_us"] = micros(begin - base);
        args["posted_us"] = micros(args.at("posted_ns").get<uint64_t>() - base);
        args.erase("posted_ns");
        begin = std::min(std::max(begin, transport_end), event.end_ns);
        transport_end = event.end_ns;
      }
      events.push_back({{"ph", "X"},
                        {"name", event.name},
                        {"cat", event.category},
                        {"pid", number},
                        {"tid", event.track},
                        {"ts", micros(begin - base)},
                        {"dur", micros(event.end_ns - begin)},
                        {"args", std::move(args)}});
    }
  }
  const Json document = {{"displayTimeUnit", "ms"},
                         {"otherData",
                          {{"clock", "CLOCK_MONOTONIC"},
                           {"begin_ns", ranks_.empty() ? 0 : base},
                           {"summary", summary()}}},
                         {"traceEvents", std::move(events)}};
  write_file_atomic(path, document.dump(), ErrorCode::kCheckpoint);
}

std::string trace_line(const Json& summary) {
  const auto number = [&](const char* key) { return summary.at(key).get<double>(); };
  std::string out = str_cat("trace of ", summary.at("steps").get<int64_t>(), " steps: device busy ",
                            number("device_ms"), " ms a step");
  if (summary.at("exposed_percent").is_number()) {
    out += str_cat(", communication ", number("communication_ms"), " ms, exposed ",
                   number("exposed_ms"), " ms (", std::round(number("exposed_percent")),
                   " %), waiting for other ranks ", number("wait_for_ranks_ms"), " ms");
  }
  return out + str_cat("; clocks within ", number("accuracy_us"), " us");
}

}  // namespace netcl::app
