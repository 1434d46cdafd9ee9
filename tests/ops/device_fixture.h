// What a test on a device needs: an open device, its plugins, its kernels and its queue; every
// variant that serves an op. device_main.cc has the program's main.
//
// Threads: one.
#ifndef NETCL_TESTS_OPS_DEVICE_FIXTURE_H_
#define NETCL_TESTS_OPS_DEVICE_FIXTURE_H_

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "core/autograd/eager.h"
#include "core/ops/op.h"
#include "core/runtime/kernel_choice.h"

namespace netcl {
namespace testing {

// What the command line of a device test says.
struct DeviceArgs {
  std::string device;                             // a selector; "": the first that is no simulator
  std::filesystem::path plugins = "plugins/dir";  // relative to the runfiles
  bool smallest = false;                          // each variant at its smallest case only
  bool partial = false;                           // what no kernel set serves is passed over
  bool every = false;                             // settings_test: by hand
};

// The real directory of every plugin below `directory`: runfiles are links to files, and a plugin
// whose library is a link to elsewhere is refused, as it should be.
std::vector<std::filesystem::path> plugin_paths(const std::filesystem::path& directory);

class DeviceFixture {
 public:
  // Errors: kDevice for a selector that no device has; the message lists what there is.
  explicit DeviceFixture(const DeviceArgs& args);

  Device& device() { return *device_; }
  PluginHost& plugins() { return *plugins_; }
  KernelChoice& kernels() { return *kernels_; }
  const std::shared_ptr<Queue>& queue() const { return queue_; }
  Eager& eager() { return *eager_; }
  const DeviceArgs& args() const { return args_; }

  // Every (plugin, variant) that plans the question, in the plugins' order.
  std::vector<KernelPin> variants(const KernelQuestion& question);
  // The recipe of one of them. Errors: kPlugin if it declines.
  std::shared_ptr<const Recipe> recipe(const KernelQuestion& question, const KernelPin& pin);

 private:
  DeviceArgs args_;
  std::unique_ptr<Device> device_;
  std::unique_ptr<PluginHost> plugins_;
  std::unique_ptr<KernelChoice> kernels_;
  std::shared_ptr<Queue> queue_;
  std::unique_ptr<Eager> eager_;
};

// The device of this program, opened at the first call as the command line says.
DeviceFixture& shared_device();
// The same device, not opened: for tests of what a Device is made of.
FoundDevice wanted_device();
// Closes it: main does before drivers clean up after themselves.
void close_shared_device();
// Takes --device, --plugins, --smallest, --partial and --every out of the command line.
void set_device_args(int* argc, char** argv);

}  // namespace testing
}  // namespace netcl

#endif  // NETCL_TESTS_OPS_DEVICE_FIXTURE_H_
