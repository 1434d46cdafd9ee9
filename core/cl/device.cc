#include "core/cl/device.h"

#include <algorithm>
#include <array>
#include <map>

#include "core/base/text.h"
#include "core/cl/loader.h"

namespace netcl {

namespace {

bool contains(const std::string& text, const char* part) {
  return text.find(part) != std::string::npos;
}

std::string platform_key(const std::string& platform) {
  const std::string name = to_lower(platform);
  if (contains(name, "portable computing")) return "pocl";
  if (contains(name, "oclgrind")) return "oclgrind";
  if (contains(name, "nvidia")) return "nvidia";
  if (contains(name, "intel")) return "intel";
  if (contains(name, "amd") || contains(name, "advanced micro")) return "amd";
  return "other";
}

// Vendor ids lie (PoCL reports 0x8086 on every processor); names and platforms do not.
std::string normalised_vendor(const std::string& key, const std::string& vendor) {
  if (key == "pocl" || key == "oclgrind") return key;
  const std::string name = to_lower(vendor);
  for (const char* known : {"nvidia", "intel", "qualcomm", "apple"}) {
    if (contains(name, known)) return known;
  }
  if (contains(name, "amd") || contains(name, "advanced micro")) return "amd";
  if (name == "arm" || contains(name, "arm ")) return "arm";
  return "other";
}

std::string type_name(cl_device_type type, const std::string& key) {
  if (key == "oclgrind") return "simulator";
  if (type & CL_DEVICE_TYPE_GPU) return "gpu";
  if (type & CL_DEVICE_TYPE_CPU) return "cpu";
  return "accelerator";
}

std::string text_info(const cl::Device& device, cl_device_info what) {
  std::string value;
  if (device.getInfo(what, &value) != CL_SUCCESS) return "";
  while (!value.empty() && (value.back() == '\0' || value.back() == ' ')) value.pop_back();
  return value;
}

// NVIDIA gives its compute capability by extension; PoCL ends the device name with the CPU's name;
// AMD's names may have features behind the architecture: "gfx90a:sramecc+:xnack-".
std::string architecture(const cl::Device& device, const DeviceInfo& info) {
  if (info.vendor == "nvidia") {
    constexpr cl_device_info kMajor = 0x4000, kMinor = 0x4001;
    cl_uint major = 0, minor = 0;
    const bool known =
        clGetDeviceInfo(device(), kMajor, sizeof(major), &major, nullptr) == CL_SUCCESS &&
        clGetDeviceInfo(device(), kMinor, sizeof(minor), &minor, nullptr) == CL_SUCCESS;
    return known ? str_cat("sm_", major, minor) : "";
  }
  if (info.vendor == "pocl") {
    const std::vector<std::string> parts = split(info.name, '-');
    return parts.size() > 1 ? parts[1] : "";
  }
  return info.vendor == "amd" ? info.name.substr(0, info.name.find(':')) : "";
}

// The smallest and the largest size by the vendors' extensions: none is asked by all of them.
void ask_subgroups(const cl::Device& device, DeviceInfo& info) {
  const std::vector<std::string> offered = split(info.extensions, ' ');
  const auto offers = [&](const char* extension) {
    return std::find(offered.begin(), offered.end(), extension) != offered.end();
  };
  if (offers("cl_intel_required_subgroup_size")) {
    constexpr cl_device_info kSizes = 0x4108;
    std::array<size_t, 16> sizes{};
    size_t bytes = 0;
    if (clGetDeviceInfo(device(), kSizes, sizeof(sizes), sizes.data(), &bytes) != CL_SUCCESS)
      return;
    for (size_t i = 0; i < bytes / sizeof(size_t); ++i) {
      const auto size = static_cast<int64_t>(sizes[i]);
      info.subgroup_min = i == 0 ? size : std::min(info.subgroup_min, size);
      info.subgroup_max = std::max(info.subgroup_max, size);
    }
    return;
  }
  constexpr cl_device_info kWavefrontWidth = 0x4043, kWarpSize = 0x4003;
  cl_uint size = 0;
  if (offers("cl_amd_device_attribute_query")) {
    clGetDeviceInfo(device(), kWavefrontWidth, sizeof(size), &size, nullptr);
  } else if (offers("cl_nv_device_attribute_query")) {
    clGetDeviceInfo(device(), kWarpSize, sizeof(size), &size, nullptr);
  }
  info.subgroup_min = info.subgroup_max = size;
}

DeviceInfo describe(const cl::Device& device, const std::string& platform, int64_t index) {
  DeviceInfo info;
  info.platform = platform;
  info.platform_key = platform_key(platform);
  info.platform_device = index;
  info.name = text_info(device, CL_DEVICE_NAME);
  info.vendor = normalised_vendor(info.platform_key, text_info(device, CL_DEVICE_VENDOR));
  info.type = type_name(device.getInfo<CL_DEVICE_TYPE>(), info.platform_key);
  info.driver = text_info(device, CL_DRIVER_VERSION);
  info.opencl = text_info(device, CL_DEVICE_VERSION);
  info.extensions = text_info(device, CL_DEVICE_EXTENSIONS);
  info.arch = architecture(device, info);
  info.compute_units = device.getInfo<CL_DEVICE_MAX_COMPUTE_UNITS>();
  info.memory_bytes = static_cast<int64_t>(device.getInfo<CL_DEVICE_GLOBAL_MEM_SIZE>());
  info.max_alloc_bytes = static_cast<int64_t>(device.getInfo<CL_DEVICE_MAX_MEM_ALLOC_SIZE>());
  info.local_mem_bytes = static_cast<int64_t>(device.getInfo<CL_DEVICE_LOCAL_MEM_SIZE>());
  info.max_work_group = static_cast<int64_t>(device.getInfo<CL_DEVICE_MAX_WORK_GROUP_SIZE>());
  info.vector_width_float = device.getInfo<CL_DEVICE_NATIVE_VECTOR_WIDTH_FLOAT>();
  ask_subgroups(device, info);
  info.base_align_bytes = device.getInfo<CL_DEVICE_MEM_BASE_ADDR_ALIGN>() / 8;
  constexpr cl_device_info kHostUnifiedMemory = 0x1035;  // deprecated since 2.0, answered by all
  cl_bool unified = CL_FALSE;
  clGetDeviceInfo(device(), kHostUnifiedMemory, sizeof(unified), &unified, nullptr);
  info.unified_memory = unified == CL_TRUE;
  return info;
}

}  // namespace

void assign_selectors(std::vector<DeviceInfo*> devices) {
  std::map<std::string, int64_t> per_type, per_platform;
  for (DeviceInfo* info : devices) {
    info->platform_device = per_platform[info->platform_key]++;
    if (info->type == "gpu" || info->type == "cpu") {
      info->selector = info->type + ":" + std::to_string(per_type[info->type]++);
    } else {
      info->selector = info->platform_selector();
    }
  }
}

std::vector<FoundDevice> enumerate_devices() {
  cl_loader::require_opencl();
  std::vector<cl::Platform> platforms;
  try {
    cl::Platform::get(&platforms);
  } catch (const cl::Error& e) {
    if (e.err() != -1001) fail(ErrorCode::kDevice, "platforms: ", cl_error_name(e.err()));
  }
  // A loader that was told of a driver in two ways lists it twice.
  std::vector<cl_platform_id> seen;
  std::vector<FoundDevice> out;
  for (const cl::Platform& platform : platforms) {
    if (std::find(seen.begin(), seen.end(), platform()) != seen.end()) continue;
    seen.push_back(platform());
    std::vector<cl::Device> devices;
    try {
      platform.getDevices(CL_DEVICE_TYPE_ALL, &devices);
    } catch (const cl::Error& e) {
      continue;  // CL_DEVICE_NOT_FOUND: a driver without its hardware
    }
    const std::string name = platform.getInfo<CL_PLATFORM_NAME>();
    for (size_t i = 0; i < devices.size(); ++i) {
      out.push_back(with_cl_errors("asking device " + std::to_string(i) + " of " + name, [&] {
        return FoundDevice{describe(devices[i], name, static_cast<int64_t>(i)), devices[i]};
      }));
    }
  }
  std::vector<DeviceInfo*> infos;
  for (FoundDevice& found : out) infos.push_back(&found.info);
  assign_selectors(infos);
  return out;
}

std::vector<FoundDevice> divide_device(const FoundDevice& whole, const DeviceShares& shares) {
  const DeviceInfo& info = whole.info;
  std::vector<cl_device_partition_property> properties;
  if (shares.units.empty()) {
    NETCL_CHECK(shares.count > 0 && info.compute_units % shares.count == 0, ErrorCode::kDevice,
                info.selector, " (", info.name, ") has ", info.compute_units,
                " compute units, which are not ", shares.count, " equal shares");
    properties = {CL_DEVICE_PARTITION_EQUALLY, info.compute_units / shares.count, 0};
  } else {
    properties.push_back(CL_DEVICE_PARTITION_BY_COUNTS);
    properties.insert(properties.end(), shares.units.begin(), shares.units.end());
    properties.insert(properties.end(), {CL_DEVICE_PARTITION_BY_COUNTS_LIST_END, 0});
  }
  std::vector<cl::Device> parts;
  with_cl_errors("dividing " + info.selector + "/" + shares.text() + " (" + info.name + ")", [&] {
    cl::Device device = whole.device;
    device.createSubDevices(properties.data(), &parts);
  });
  std::vector<FoundDevice> out;
  for (const cl::Device& part : parts) {
    FoundDevice found{info, part};
    found.info.compute_units = shares.range(static_cast<int>(out.size()), info.compute_units).count;
    found.info.selector += str_cat("#", out.size());
    out.push_back(std::move(found));
  }
  return out;
}

cl::Context shared_context(const std::vector<FoundDevice>& devices) {
  std::vector<cl::Device> all;
  std::string names;
  for (const FoundDevice& found : devices) {
    names += (all.empty() ? "" : ", ") + found.info.selector;
    all.push_back(found.device);
  }
  return with_cl_errors("opening one context for " + names, [&] { return cl::Context(all); });
}

Device::Device(FoundDevice found, std::filesystem::path cache_dir, Logger log)
    : Device(found, shared_context({found}), std::move(cache_dir), std::move(log)) {}

Device::Device(FoundDevice found, cl::Context context, std::filesystem::path cache_dir, Logger log)
    : info_(std::move(found.info)), device_(std::move(found.device)), context_(std::move(context)) {
  programs_ = std::make_unique<ProgramCache>(info_, context_, device_, std::move(cache_dir), log);
}

cl::CommandQueue Device::make_queue(bool profiling) const {
  return with_cl_errors("creating a queue on " + info_.name, [&] {
    return cl::CommandQueue(context_, device_, profiling ? CL_QUEUE_PROFILING_ENABLE : 0);
  });
}

cl::Buffer Device::make_buffer(size_t size_bytes, const std::string& what) const {
  NETCL_CHECK(static_cast<int64_t>(size_bytes) <= info_.max_alloc_bytes, ErrorCode::kDevice, what,
              " needs ", size_bytes, " bytes in one piece; ", info_.selector, " (", info_.name,
              ") allocates at most ", info_.max_alloc_bytes,
              " bytes at once. Use a smaller model or batch, or more devices");
  return with_cl_errors(
      "allocating " + std::to_string(size_bytes) + " bytes for " + what + " on " + info_.name,
      [&] { return cl::Buffer(context_, CL_MEM_READ_WRITE, std::max<size_t>(size_bytes, 512)); });
}

}  // namespace netcl
