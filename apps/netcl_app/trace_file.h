// The trace of a run: workers send what they recorded, the supervisor merges it into one file in
// Chrome's trace format (Perfetto opens it) and sums it up. See core/cl/trace.h for the clock.
#ifndef NETCL_APPS_NETCL_APP_TRACE_FILE_H_
#define NETCL_APPS_NETCL_APP_TRACE_FILE_H_

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "core/base/json_doc.h"
#include "core/cl/trace.h"

namespace netcl::app {

// The worker's side: says everything recorded, in messages of type "trace".
void send_trace(const std::function<void(const Json&)>& say, Trace& trace);

// Which steps of a run are traced: `wanted` after a warm-up, which is shorter where the run is.
struct TraceWindow {
  int64_t after = 0, steps = 0;
};
TraceWindow trace_window(int64_t first_step, int64_t end_step, int64_t wanted);

// Errors: kUsage where no file can be made at `file`, before anything is traced.
void check_trace_place(const std::string& file);

class TraceFile {
 public:
  // A message of type "trace".
  void add(uint32_t rank, const Json& message);
  bool empty() const { return ranks_.empty(); }

  // {"steps", "communication_ms", "exposed_ms", "exposed_percent", "wait_for_ranks_ms",
  // "kernels_ms" (all a step, mean of the ranks), "late", "accuracy_us", "ranks": […]}.
  // Communication: from the moment in which the last rank's data is ready to the result; exposed:
  // the part in which the device computes nothing and does not wait for a slower rank's data for
  // another collective either.
  Json summary() const;
  // `labels`: of the ranks' devices. Errors: kCheckpoint.
  void write(const std::filesystem::path& path, const std::vector<std::string>& labels) const;

 private:
  struct Event {
    int track;
    std::string name, category;
    int64_t step;
    uint64_t begin_ns, end_ns;
    Json numbers;
  };
  struct Rank {
    std::vector<Event> events;
    uint64_t accuracy_ns = 0;
  };
  // When the last rank's data was ready, by the collective's number.
  std::map<uint64_t, uint64_t> last_ready() const;
  Json rank_summary(uint32_t number, const Rank& rank,
                    const std::map<uint64_t, uint64_t>& ready) const;

  std::map<uint32_t, Rank> ranks_;
};

// "communication 1.20 ms a step, of which 0.80 ms (67 %) exposed; ...".
std::string trace_line(const Json& summary);

}  // namespace netcl::app

#endif  // NETCL_APPS_NETCL_APP_TRACE_FILE_H_
