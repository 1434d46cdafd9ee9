#include "plugins/transport/host/staging_probe.h"

#include <algorithm>
#include <cstdio>
#include <vector>

#include "core/abi/netcl_plugin.hpp"
#include "plugins/transport/host/shared_state.h"

namespace netcl::host_transport {
namespace {

constexpr uint32_t kDevicePattern = 0x51f0c3a9u, kHostPattern = 0x2b7e1516u;
constexpr uint64_t kWords = kProbeBytes / 4;
constexpr int kTimedRounds = 3;

bool holds(const void* memory, uint32_t pattern) {
  const auto* w = static_cast<const volatile uint32_t*>(memory);
  for (uint64_t i = 0; i < kWords; ++i) {
    if (w[i] != pattern) return false;
  }
  return true;
}

bool fill_on_device(const ClHandles& cl, cl_mem buffer) {
  return clEnqueueFillBuffer(cl.queue, buffer, &kDevicePattern, 4, 0, kProbeBytes, 0, nullptr,
                             nullptr) == CL_SUCCESS &&
         clFinish(cl.queue) == CL_SUCCESS;
}

bool device_holds(const ClHandles& cl, cl_mem buffer, uint32_t pattern) {
  std::vector<uint32_t> back(kWords);
  return clEnqueueReadBuffer(cl.queue, buffer, CL_TRUE, 0, kProbeBytes, back.data(), 0, nullptr,
                             nullptr) == CL_SUCCESS &&
         holds(back.data(), pattern);
}

// A buffer that ends with its scope.
class ScopedBuffer {
 public:
  ScopedBuffer(const ClHandles& cl, cl_mem_flags flags, void* memory) {
    cl_int code = CL_SUCCESS;
    mem_ = clCreateBuffer(cl.context, CL_MEM_READ_WRITE | flags, kProbeBytes, memory, &code);
    if (code != CL_SUCCESS) mem_ = nullptr;
  }
  ScopedBuffer(const ScopedBuffer&) = delete;
  ScopedBuffer& operator=(const ScopedBuffer&) = delete;
  ~ScopedBuffer() {
    if (mem_ != nullptr) clReleaseMemObject(mem_);
  }
  cl_mem get() const { return mem_; }

 private:
  cl_mem mem_ = nullptr;
};

// The shortest of some rounds, after one that is not counted. `body` returns false on an error.
template <typename Body>
double shortest_s(Body&& body, std::string* problem) {
  double best = 0;
  for (int round = 0; round <= kTimedRounds; ++round) {
    const uint64_t start = now_ns();
    if (!body()) *problem = "an OpenCL call failed";
    const double s = static_cast<double>(now_ns() - start) * 1e-9;
    if (round == 1 || (round > 1 && s < best)) best = s;
  }
  return best;
}

bool map_and_unmap(const ClHandles& cl, cl_mem buffer, cl_map_flags flags) {
  cl_int code = CL_SUCCESS;
  void* mapped = clEnqueueMapBuffer(cl.queue, buffer, CL_TRUE, flags, 0, kProbeBytes, 0, nullptr,
                                    nullptr, &code);
  return code == CL_SUCCESS &&
         clEnqueueUnmapMemObject(cl.queue, buffer, mapped, 0, nullptr, nullptr) == CL_SUCCESS &&
         clFinish(cl.queue) == CL_SUCCESS;
}

WayTimes try_zero_copy(const ClHandles& cl, bool timed, void* memory) {
  WayTimes t;
  const ScopedBuffer buffer(cl, CL_MEM_USE_HOST_PTR, memory);
  if (buffer.get() == nullptr) {
    t.problem = "the driver refuses a buffer over shared memory";
    return t;
  }
  t.problem = probe_buffer(cl, buffer.get(), memory);
  if (!timed || !t.problem.empty()) return t;
  t.to_host_s =
      shortest_s([&] { return map_and_unmap(cl, buffer.get(), CL_MAP_READ); }, &t.problem);
  t.to_device_s =
      shortest_s([&] { return map_and_unmap(cl, buffer.get(), CL_MAP_WRITE); }, &t.problem);
  return t;
}

WayTimes try_copies(const ClHandles& cl, bool registered, bool timed, void* memory) {
  WayTimes t;
  const ScopedBuffer buffer(cl, 0, nullptr);
  if (buffer.get() == nullptr) {
    t.problem = "clCreateBuffer failed";
    return t;
  }
  cl_mem pinned = registered ? register_memory(cl, memory, kProbeBytes) : nullptr;
  if (registered && pinned == nullptr) {
    t.problem = "the driver does not register shared memory";
    return t;
  }
  const auto read = [&] {
    return clEnqueueReadBuffer(cl.queue, buffer.get(), CL_TRUE, 0, kProbeBytes, memory, 0, nullptr,
                               nullptr) == CL_SUCCESS;
  };
  const auto write = [&] {
    return clEnqueueWriteBuffer(cl.out, buffer.get(), CL_TRUE, 0, kProbeBytes, memory, 0, nullptr,
                                nullptr) == CL_SUCCESS;
  };
  if (!fill_on_device(cl, buffer.get()) || !read() || !holds(memory, kDevicePattern)) {
    t.problem = "a copy to the host does not bring what the device wrote";
  } else {
    std::fill_n(static_cast<uint32_t*>(memory), kWords, kHostPattern);
    if (!write() || !device_holds(cl, buffer.get(), kHostPattern)) {
      t.problem = "a copy to the device does not bring what the host wrote";
    }
  }
  if (timed && t.problem.empty()) {
    t.to_host_s = shortest_s(read, &t.problem);
    t.to_device_s = shortest_s(write, &t.problem);
  }
  unregister_memory(cl, pinned, memory);
  return t;
}

const char* way_name(Way way) {
  switch (way) {
    case Way::kZeroCopy:
      return "zero copy";
    case Way::kRegistered:
      return "registered copies";
    default:
      return "plain copies";
  }
}

std::string figures(Way way, const WayTimes& t) {
  if (!t.problem.empty()) return std::string(way_name(way)) + ": " + t.problem;
  const double gb = static_cast<double>(kProbeBytes) * 1e-9;
  char text[120];
  if (way == Way::kZeroCopy) {
    std::snprintf(text, sizeof(text), "%s %.0f + %.0f us to map", way_name(way), t.to_host_s * 1e6,
                  t.to_device_s * 1e6);
  } else {
    std::snprintf(text, sizeof(text), "%s %.1f GB/s to the host, %.1f back", way_name(way),
                  gb / t.to_host_s, gb / t.to_device_s);
  }
  return text;
}

}  // namespace

// The first look is without a mapping on purpose: an implementation that works on a copy of its own
// would pass with one.
std::string probe_buffer(const ClHandles& cl, cl_mem buffer, void* memory) {
  if (!fill_on_device(cl, buffer)) return "filling the memory failed";
  if (!holds(memory, kDevicePattern)) return "what the device writes does not reach the memory";
  cl_int code = CL_SUCCESS;
  void* mapped = clEnqueueMapBuffer(cl.queue, buffer, CL_TRUE, CL_MAP_READ | CL_MAP_WRITE, 0,
                                    kProbeBytes, 0, nullptr, nullptr, &code);
  if (code != CL_SUCCESS) return "mapping failed";
  const bool in_place = mapped == memory;
  std::fill_n(static_cast<uint32_t*>(memory), kWords, kHostPattern);
  if (clEnqueueUnmapMemObject(cl.queue, buffer, mapped, 0, nullptr, nullptr) != CL_SUCCESS ||
      clFinish(cl.queue) != CL_SUCCESS) {
    return "unmapping failed";
  }
  if (!in_place) return "a mapping lies elsewhere";
  if (!device_holds(cl, buffer, kHostPattern)) return "the device does not see the host's writes";
  return "";
}

StagingChoice choose_staging(const ClHandles& cl, bool unified, std::optional<Way> wanted,
                             void* memory) {
  StagingChoice choice;
  const bool timed = !wanted.has_value();
  std::optional<double> best;
  for (const Way way : {Way::kZeroCopy, Way::kRegistered, Way::kPlain}) {
    // Plain copies are tried whatever is wanted: what remains must be right, too.
    if (wanted && way != *wanted && !(way == Way::kPlain && !best)) continue;
    WayTimes t;
    if (way == Way::kZeroCopy && !unified) {
      t.problem = "not tried, the device has memory of its own";
    } else if (way == Way::kZeroCopy) {
      t = try_zero_copy(cl, timed, memory);
    } else {
      t = try_copies(cl, way == Way::kRegistered, timed, memory);
    }
    choice.text += (choice.text.empty() ? "" : "; ") +
                   (timed || !t.problem.empty() ? figures(way, t) : std::string(way_name(way)));
    if (!t.problem.empty() || (best && t.total_s() >= *best)) continue;
    best = t.total_s();
    choice.way = way;
  }
  if (!best) {
    throw plugin::Failure(NETCL_E_DEVICE,
                          "host transport: no way to move data between the device "
                          "and shared memory works: " +
                              choice.text);
  }
  choice.text += std::string("; uses ") + way_name(choice.way);
  return choice;
}

cl_mem register_memory(const ClHandles& cl, void* memory, uint64_t bytes) {
  cl_int code = CL_SUCCESS;
  cl_mem buffer =
      clCreateBuffer(cl.context, CL_MEM_READ_WRITE | CL_MEM_USE_HOST_PTR, bytes, memory, &code);
  if (code != CL_SUCCESS) return nullptr;
  // A pending map of the shared result would copy the peers' bytes away on an implementation that
  // does not work in place; the buffer is never used by a command again, so nothing is written.
  void* mapped = clEnqueueMapBuffer(cl.queue, buffer, CL_TRUE, CL_MAP_READ, 0, bytes, 0, nullptr,
                                    nullptr, &code);
  if (code == CL_SUCCESS && mapped == memory) return buffer;
  if (code == CL_SUCCESS) {
    clEnqueueUnmapMemObject(cl.queue, buffer, mapped, 0, nullptr, nullptr);
    clFinish(cl.queue);
  }
  clReleaseMemObject(buffer);
  return nullptr;
}

void unregister_memory(const ClHandles& cl, cl_mem buffer, void* memory) {
  if (buffer == nullptr) return;
  clEnqueueUnmapMemObject(cl.queue, buffer, memory, 0, nullptr, nullptr);
  clFinish(cl.queue);
  clReleaseMemObject(buffer);
}

}  // namespace netcl::host_transport
