#include "core/cl/trace.h"

#include <time.h>

#include <algorithm>

namespace netcl {

namespace {

constexpr int kBrackets = 16;  // of a calibration; the narrowest counts

struct DeviceTimes {
  uint64_t queued = 0, start = 0, end = 0;
};

DeviceTimes times_of(const cl::Event& event) {
  DeviceTimes out;
  out.queued = event.getProfilingInfo<CL_PROFILING_COMMAND_QUEUED>();
  out.start = event.getProfilingInfo<CL_PROFILING_COMMAND_START>();
  out.end = event.getProfilingInfo<CL_PROFILING_COMMAND_END>();
  return out;
}

}  // namespace

uint64_t Trace::now_ns() {
  timespec t{};
  ::clock_gettime(CLOCK_MONOTONIC, &t);
  return static_cast<uint64_t>(t.tv_sec) * 1'000'000'000u + static_cast<uint64_t>(t.tv_nsec);
}

void Trace::calibrate(const cl::CommandQueue& queue) {
  with_cl_errors("reading a device's clock", [&] {
    const cl::Buffer word(queue.getInfo<CL_QUEUE_CONTEXT>(), CL_MEM_READ_WRITE, sizeof(cl_int));
    queue.finish();
    Calibration best;
    for (int i = 0; i < kBrackets; ++i) {
      cl::Event event;
      const uint64_t before = now_ns();
      queue.enqueueFillBuffer(word, cl_int{0}, 0, sizeof(cl_int), nullptr, &event);
      event.wait();
      const uint64_t after = now_ns();
      const DeviceTimes device = times_of(event);
      // before <= queued + offset and end + offset <= after
      const auto low = static_cast<int64_t>(before) - static_cast<int64_t>(device.queued);
      const auto high = static_cast<int64_t>(after) - static_cast<int64_t>(device.end);
      const auto width = static_cast<uint64_t>(std::max<int64_t>(high - low, 0));
      if (i > 0 && width / 2 >= best.half_width_ns) continue;
      best = {device.end, low + (high - low) / 2, width / 2};
    }
    calibrations_.push_back(best);
  });
}

// Linear between the two calibrations; a driver's clock may run at another rate.
uint64_t Trace::host_ns(uint64_t device_ns) const {
  if (calibrations_.empty()) return device_ns;
  const Calibration &a = calibrations_.front(), &b = calibrations_.back();
  double offset = 0;  // beyond a's
  if (b.device_ns > a.device_ns) {
    offset = (static_cast<double>(device_ns) - static_cast<double>(a.device_ns)) /
             static_cast<double>(b.device_ns - a.device_ns) *
             static_cast<double>(b.offset_ns - a.offset_ns);
  }
  return static_cast<uint64_t>(static_cast<int64_t>(device_ns) + a.offset_ns +
                               static_cast<int64_t>(offset));
}

uint64_t Trace::accuracy_ns() const {
  uint64_t out = 0;
  for (const Calibration& c : calibrations_) out = std::max(out, c.half_width_ns);
  return out;
}

void Trace::begin_step(int64_t step, const cl::CommandQueue& queue) {
  const bool within = step >= first_ && step <= last_;
  if (within && calibrations_.empty()) calibrate(queue);
  if (!within && recording_) finish(queue);
  step_ = step;
  recording_ = within && calibrations_.size() < 2;
  if (recording_) collect(false);
}

void Trace::finish(const cl::CommandQueue& queue) {
  recording_ = false;
  if (calibrations_.size() != 1) return;
  calibrate(queue);
  collect(true);
}

void Trace::command(std::string name, const char* category, const cl::Event& event,
                    uint64_t bytes) {
  Pending pending{{TraceTrack::kCompute, std::move(name), category, step_, 0, 0, {}}, event, false};
  if (bytes > 0) pending.record.numbers.emplace_back("bytes", bytes);
  pending_.push_back(std::move(pending));
}

void Trace::span(TraceTrack track, std::string name, const char* category, uint64_t begin_ns,
                 uint64_t end_ns) {
  records_.push_back({track, std::move(name), category, step_, begin_ns, end_ns, {}});
}

void Trace::span_after(TraceRecord record, const cl::Event& after) {
  record.step = step_;
  if (after() == nullptr) {
    records_.push_back(std::move(record));
  } else {
    pending_.push_back({std::move(record), after, true});
  }
}

// Takes the times of what is done, so that no more events are held than are in flight.
void Trace::collect(bool all) {
  with_cl_errors("reading the times of commands", [&] {
    while (!pending_.empty()) {
      Pending& next = pending_.front();
      if (!all && next.event.getInfo<CL_EVENT_COMMAND_EXECUTION_STATUS>() != CL_COMPLETE) break;
      const DeviceTimes device = times_of(next.event);
      next.record.begin_ns = next.begins_after ? device.end : device.start;
      if (!next.begins_after) next.record.end_ns = device.end;
      next.event = cl::Event();
      on_device_.push_back(std::move(next));
      pending_.pop_front();
    }
  });
  if (!all) return;
  for (Pending& done : on_device_) {
    TraceRecord& record = done.record;
    record.begin_ns = host_ns(record.begin_ns);
    record.end_ns =
        done.begins_after ? std::max(record.begin_ns, record.end_ns) : host_ns(record.end_ns);
    records_.push_back(std::move(record));
  }
  on_device_.clear();
}

std::vector<TraceRecord> Trace::take() { return std::move(records_); }

}  // namespace netcl
