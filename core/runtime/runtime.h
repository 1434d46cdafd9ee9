// Runtime: what a program that uses netcl as a library holds: the devices of this process, their
// queues and program caches, the plugins and the kernels chosen from them.
//
// It is passed to whoever needs it; there is no global one. Devices are opened when a queue on them
// is first asked for. Everything made from a Runtime (queues, tensors, replicas, groups) must be
// gone before it is.
// Threads: set-up from one thread; kernels() from any.
#ifndef NETCL_CORE_RUNTIME_RUNTIME_H_
#define NETCL_CORE_RUNTIME_RUNTIME_H_

#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/base/log.h"
#include "core/cl/device.h"
#include "core/runtime/kernel_choice.h"
#include "core/runtime/layer_set.h"
#include "core/runtime/plugin_host.h"
#include "core/tensor/queue.h"

namespace netcl {

struct RuntimeOptions {
  PluginOptions plugins;  // where to look beside the usual places, what to leave out
  std::map<std::string, KernelPin> pins;  // op -> the kernel set and variant to use
  // With it kernels are chosen by tuned records, too, once it finds them right
  // (core/verify/variant_check.h has one); without, each set's defaults.
  std::shared_ptr<RecordCheck> record_check;
  std::optional<std::filesystem::path> cache_dir;  // of built programs; nullopt: the usual one
  Logger log;
};

class Runtime {
 public:
  // Finds devices and plugins; opens neither. Errors: kDevice if there is no OpenCL.
  explicit Runtime(RuntimeOptions options = {});
  Runtime(const Runtime&) = delete;
  Runtime& operator=(const Runtime&) = delete;

  // All devices that drivers offer to this process, simulators included, with their selectors.
  const std::vector<DeviceInfo>& devices() const { return infos_; }

  // The queue of part `index` of `shares` on one of devices(); the same one at every call. A
  // processor whose compute units can be dealt out so is divided into sub-devices, a queue each; on
  // any other device even parts are queues side by side. Errors: kDevice.
  std::shared_ptr<Queue> queue(const DeviceInfo& device, int index = 0,
                               const DeviceShares& shares = {});

  PluginHost& plugins() { return plugins_; }
  KernelChoice& kernels() { return kernels_; }
  LayerSet& layers() { return layers_; }
  const Logger& log() const { return options_.log; }

 private:
  struct Shares {
    std::vector<std::unique_ptr<Device>> devices;  // one, or one a share
    std::vector<std::shared_ptr<Queue>> queues;    // one a share
  };
  const FoundDevice& found(const DeviceInfo& wanted) const;
  std::vector<FoundDevice> parts(const FoundDevice& whole, const DeviceShares& shares) const;
  std::unique_ptr<Device> open(FoundDevice found) const;

  const RuntimeOptions options_;
  const std::vector<FoundDevice> found_;
  const std::vector<DeviceInfo> infos_;
  PluginHost plugins_;
  KernelChoice kernels_;
  LayerSet layers_;
  std::map<std::string, Shares> shares_;  // by device and how it is dealt out
};

}  // namespace netcl

#endif  // NETCL_CORE_RUNTIME_RUNTIME_H_
