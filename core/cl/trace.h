// Trace: what a worker did in a window of steps, on the clock of the machine.
//
// Commands of the queue carry profiling events; their times on the device's clock become times of
// CLOCK_MONOTONIC by a calibration: a command on an otherwise idle queue is known to have begun and
// ended between two readings of the host's clock. The narrowest of several such brackets counts, at
// the begin and at the end of the window; in between the offset is interpolated. All workers of a
// machine thus share one clock.
//
// A Trace is passed to whoever records; where there is none nothing is paid. Outside of its window
// recording() is false, and nobody records.
// Threads: the queue's.
#ifndef NETCL_CORE_CL_TRACE_H_
#define NETCL_CORE_CL_TRACE_H_

#include <cstdint>
#include <deque>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/cl/opencl.h"

namespace netcl {

// A row of the timeline.
enum class TraceTrack { kCompute = 1, kTransport = 2, kHost = 3 };

struct TraceRecord {
  TraceTrack track = TraceTrack::kHost;
  std::string name;
  const char* category = "";  // kernel, transfer, collective, wait, step
  int64_t step = 0;
  uint64_t begin_ns = 0, end_ns = 0;                      // CLOCK_MONOTONIC
  std::vector<std::pair<const char*, uint64_t>> numbers;  // "bytes", ...
};

class Trace {
 public:
  // Records the steps (after_step, after_step + steps].
  Trace(int64_t after_step, int64_t steps) : first_(after_step + 1), last_(after_step + steps) {}

  bool recording() const { return recording_; }
  int64_t step() const { return step_; }
  // Before anything of a step is enqueued on `queue`, which has profiling on.
  void begin_step(int64_t step, const cl::CommandQueue& queue);
  // After the last one: closes the window, waits for the queue and resolves what is left.
  void finish(const cl::CommandQueue& queue);

  // A command that was enqueued, with its event.
  void command(std::string name, const char* category, const cl::Event& event, uint64_t bytes = 0);
  // Something of the host.
  void span(TraceTrack track, std::string name, const char* category, uint64_t begin_ns,
            uint64_t end_ns);
  // Something that begins when `after` (an event of the queue; null: at record.begin_ns) is
  // complete and ends at record.end_ns.
  void span_after(TraceRecord record, const cl::Event& after);

  // Everything recorded, in the order of recording; once, after finish().
  std::vector<TraceRecord> take();
  // Half the width of the bracket in which the device's clock is known; 0 without a calibration.
  uint64_t accuracy_ns() const;

  static uint64_t now_ns();  // CLOCK_MONOTONIC

 private:
  struct Calibration {
    uint64_t device_ns = 0;
    int64_t offset_ns = 0;  // host minus device
    uint64_t half_width_ns = 0;
  };
  struct Pending {
    TraceRecord record;
    cl::Event event;
    bool begins_after;  // the event's end is the record's begin; else the event is the record
  };
  void calibrate(const cl::CommandQueue& queue);
  void collect(bool all);
  uint64_t host_ns(uint64_t device_ns) const;

  const int64_t first_, last_;
  int64_t step_ = 0;
  bool recording_ = false;
  std::vector<Calibration> calibrations_;
  std::deque<Pending> pending_;    // times not asked for yet
  std::deque<Pending> on_device_;  // with times of the device, until the last calibration
  std::vector<TraceRecord> records_;
};

// Records the time between its construction and destruction as something of the host; `trace` may
// be null.
class TraceSpan {
 public:
  TraceSpan(Trace* trace, std::string_view name, const char* category)
      : trace_(trace != nullptr && trace->recording() ? trace : nullptr),
        category_(category),
        begin_ns_(trace_ != nullptr ? Trace::now_ns() : 0) {
    if (trace_ != nullptr) name_ = name;
  }
  TraceSpan(const TraceSpan&) = delete;
  TraceSpan& operator=(const TraceSpan&) = delete;
  ~TraceSpan() {
    if (trace_ != nullptr)
      trace_->span(TraceTrack::kHost, std::move(name_), category_, begin_ns_, Trace::now_ns());
  }

 private:
  Trace* trace_;
  const char* category_;
  uint64_t begin_ns_;
  std::string name_;
};

}  // namespace netcl

#endif  // NETCL_CORE_CL_TRACE_H_
