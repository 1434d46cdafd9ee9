#include "core/runtime/runtime.h"

#include <algorithm>

#include "core/base/environment.h"
#include "core/base/error.h"
#include "core/runtime/record_check.h"
#include "core/runtime/tuned_kernels.h"

namespace netcl {

namespace {

std::vector<DeviceInfo> infos_of(const std::vector<FoundDevice>& found) {
  std::vector<DeviceInfo> out;
  for (const FoundDevice& device : found) out.push_back(device.info);
  return out;
}

TunedOptions tuned_of(const RuntimeOptions& options, const PluginHost& plugins) {
  TunedOptions out;
  if (options.record_check == nullptr) return out;
  out.files = find_tuned_files(plugins);
  out.verdicts = user_verdicts_file();
  out.check = options.record_check;
  out.log = options.log;
  return out;
}

}  // namespace

Runtime::Runtime(RuntimeOptions options)
    : options_(std::move(options)),
      found_(enumerate_devices()),
      infos_(infos_of(found_)),
      plugins_(options_.plugins, infos_, options_.log),
      kernels_(plugins_, options_.pins, tuned_of(options_, plugins_)),
      layers_(plugins_) {}

const FoundDevice& Runtime::found(const DeviceInfo& wanted) const {
  const auto it = std::find_if(found_.begin(), found_.end(), [&](const FoundDevice& device) {
    return device.info.platform_selector() == wanted.platform_selector();
  });
  NETCL_CHECK(it != found_.end(), ErrorCode::kDevice, "device ", wanted.selector, " (", wanted.name,
              ") is not among those that this process's drivers offer; ask Runtime::devices()");
  return *it;
}

// The devices behind the shares: sub-devices, or the whole one.
std::vector<FoundDevice> Runtime::parts(const FoundDevice& whole,
                                        const DeviceShares& shares) const {
  if (!shares.units.empty()) return divide_device(whole, shares);
  const bool divisible = whole.info.type == "cpu" && whole.info.compute_units % shares.count == 0;
  if (shares.count == 1 || !divisible) return {whole};
  try {
    return divide_device(whole, shares);
  } catch (const Error& e) {
    options_.log.info(e.message(), "; its ", shares.count, " queues share the whole device");
    return {whole};
  }
}

std::unique_ptr<Device> Runtime::open(FoundDevice found) const {
  return std::make_unique<Device>(
      std::move(found), options_.cache_dir.value_or(environment::cache_dir()), options_.log);
}

std::shared_ptr<Queue> Runtime::queue(const DeviceInfo& device, int index,
                                      const DeviceShares& shares) {
  NETCL_CHECK(shares.count >= 1 && index >= 0 && index < shares.count, ErrorCode::kUsage, "queue ",
              index, " of ", shares.count, " on ", device.selector,
              ": shares count from 0 to the number of them less 1");
  const std::string key = str_cat(device.platform_selector(), "/", shares.text());
  if (shares_.count(key) == 0) {
    Shares made;
    for (FoundDevice& part : parts(found(device), shares)) {
      made.devices.push_back(open(std::move(part)));
    }
    for (size_t i = 0; i < static_cast<size_t>(shares.count); ++i) {
      made.queues.push_back(Queue::create(*made.devices[i % made.devices.size()]));
    }
    shares_[key] = std::move(made);
  }
  return shares_[key].queues[static_cast<size_t>(index)];
}

}  // namespace netcl
