// What is known about a device, as plain data: gates and selectors use it where no OpenCL is open.
#ifndef NETCL_CORE_CL_DEVICE_INFO_H_
#define NETCL_CORE_CL_DEVICE_INFO_H_

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <utility>
#include <vector>

namespace netcl {

struct DeviceInfo {
  std::string selector;  // "cpu:0", "gpu:1"; "oclgrind:0" for a device that only its platform names
  std::string name;      // as the driver says it
  std::string platform;  // "Portable Computing Language"
  std::string platform_key;  // short: "pocl", "nvidia", "intel", "amd", "oclgrind", or "other"
  std::string vendor;        // normalised: amd nvidia intel arm qualcomm apple pocl oclgrind other
  std::string type;          // "cpu", "gpu", "accelerator" or "simulator"
  std::string arch;          // "sm_90", "gfx90a", "znver3", or ""
  std::string driver, opencl, extensions;
  std::string icd;              // the ICD file that brings its platform; "" if not known
  int64_t platform_device = 0;  // index within its platform
  int64_t compute_units = 0;
  int64_t memory_bytes = 0, max_alloc_bytes = 0, local_mem_bytes = 0;
  int64_t max_work_group = 0, vector_width_float = 0;
  int64_t subgroup_min = 0, subgroup_max = 0;  // sizes of sub-groups (waves, warps); 0: not known
  int64_t base_align_bytes = 0;                // alignment of sub-buffers
  bool unified_memory = false;

  // "pocl:0"
  std::string platform_selector() const {
    return platform_key + ":" + std::to_string(platform_device);
  }
};

// How a device is dealt out: in `count` even parts, or in parts of given compute units.
struct DeviceShares {
  int count = 1;
  std::vector<int64_t> units;  // compute units of each part; empty: even parts

  DeviceShares(int even_parts = 1) : count(even_parts) {}
  explicit DeviceShares(std::vector<int64_t> sizes)
      : count(static_cast<int>(sizes.size())), units(std::move(sizes)) {}

  struct Range {
    int64_t first = 0, count = 0;
  };
  // Which of `available` compute units part `index` is: at least one, and beyond `available` where
  // there are not enough of them.
  Range range(int index, int64_t available) const;
  std::string text() const;  // "2" or "4+12", as in a selector
};

// All members; the same keys as the fields.
nlohmann::ordered_json to_json(const DeviceInfo& info);
DeviceInfo device_info_from_json(const nlohmann::ordered_json& json);

}  // namespace netcl

#endif  // NETCL_CORE_CL_DEVICE_INFO_H_
