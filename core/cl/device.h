// An open OpenCL device: its facts, its context and its program cache.
#ifndef NETCL_CORE_CL_DEVICE_H_
#define NETCL_CORE_CL_DEVICE_H_

#include <memory>
#include <string>
#include <vector>

#include "core/cl/device_info.h"
#include "core/cl/opencl.h"
#include "core/cl/program_cache.h"

namespace netcl {

// A device found by enumerate_devices(); opening it creates its context.
struct FoundDevice {
  DeviceInfo info;
  cl::Device device;
};

// All devices of all platforms that this process's ICD loader offers, with selectors assigned in
// the order of platforms. Errors: kDevice if OpenCL is missing; no platform is an empty list.
std::vector<FoundDevice> enumerate_devices();

// Gives every device its selector: "gpu:i" and "cpu:i" count over all platforms; simulators are
// known by their platform only, so `all` never picks one.
void assign_selectors(std::vector<DeviceInfo*> devices);

// The device's compute units in equal shares, or in shares of given sizes, each a device of its own
// ("cpu:0#1"). Errors: kDevice if the device cannot be divided so.
std::vector<FoundDevice> divide_device(const FoundDevice& whole, const DeviceShares& shares);

// A context of several devices. Errors: kDevice where their drivers cannot share one.
cl::Context shared_context(const std::vector<FoundDevice>& devices);

class Device {
 public:
  // Creates a context for the device alone. Errors: kDevice.
  Device(FoundDevice found, std::filesystem::path cache_dir, Logger log);
  // The device within a context that has others, too.
  Device(FoundDevice found, cl::Context context, std::filesystem::path cache_dir, Logger log);

  const DeviceInfo& info() const { return info_; }
  const cl::Device& cl_device() const { return device_; }
  const cl::Context& context() const { return context_; }
  ProgramCache& programs() { return *programs_; }

  // A new in-order queue. `profiling`: its events know their times.
  cl::CommandQueue make_queue(bool profiling = false) const;
  // Device memory. Errors: kDevice, naming `what`, the size and the device's limits.
  cl::Buffer make_buffer(size_t size_bytes, const std::string& what) const;

 private:
  DeviceInfo info_;
  cl::Device device_;
  cl::Context context_;
  std::unique_ptr<ProgramCache> programs_;
};

}  // namespace netcl

#endif  // NETCL_CORE_CL_DEVICE_H_
