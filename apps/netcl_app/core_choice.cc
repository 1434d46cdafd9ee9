#include "apps/netcl_app/core_choice.h"

#include <algorithm>
#include <charconv>
#include <cmath>

#include "core/base/error.h"
#include "core/base/text.h"

namespace netcl::app {

namespace {

// Of one core: multiply-adds of products, and elements that elementwise ops and reductions read or
// write, a second.
constexpr double kMultiplyAdds = 35e9, kElements = 3e9;
// What a launch costs for each core that is woken.
constexpr double kWakeSeconds = 4.3e-6;

}  // namespace

StepWork work_of_step(const StepGraphs& graphs, const TrainConfig& config, size_t n_workers) {
  const int64_t passes = config.accumulate * static_cast<int64_t>(n_workers);
  StepWork out = work_of(graphs.train, std::max<int64_t>(1, config.batch_size / passes));
  out += work_of(graphs.update, 1);
  return out;
}

int64_t useful_cores(const StepWork& work) {
  const double seconds = work.multiply_adds / kMultiplyAdds + work.elements / kElements;
  const double waking = static_cast<double>(work.launches) * kWakeSeconds;
  // seconds / n + waking n is least at the square root of their ratio.
  const double best = waking > 0 ? std::sqrt(seconds / waking) : 1;
  return std::max<int64_t>(1, std::llround(best));
}

void add_cores(CLI::App& command, std::string& wish) {
  command
      .add_option(
          "--cores", wish,
          "Cores of a CPU device that is not divided: all, a number, or auto: as many as the "
          "model's steps can use")
      ->capture_default_str();
}

int64_t most_cores(const std::string& wish, const StepWork& work) {
  if (wish == "auto") return useful_cores(work);
  if (wish == "all") return 0;
  int64_t number = 0;
  const char* end = wish.data() + wish.size();
  const auto [after, error] = std::from_chars(wish.data(), end, number);
  NETCL_CHECK(error == std::errc() && after == end && number >= 1, ErrorCode::kUsage, "--cores ",
              wish, ": expected auto, all or a number from 1 on");
  return number;
}

std::string core_note(const std::vector<WorkerPlace>& places, int64_t most_cores) {
  std::string out;
  for (const WorkerPlace& place : places) {
    if (place.device.type != "cpu" || place.shares.count > 1 || most_cores == 0 ||
        most_cores >= place.device.compute_units)
      continue;
    out += str_cat(out.empty() ? "" : "\n", place.label(), " works on ", most_cores, " of its ",
                   place.device.compute_units,
                   " cores: more would be slower for steps as small as this model's; --cores all "
                   "uses them");
  }
  return out;
}

}  // namespace netcl::app
