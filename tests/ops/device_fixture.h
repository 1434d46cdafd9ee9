// What a test on a device needs: an open device, its plugins, its kernels and its queue; buffers
// between guard bands; every variant that serves an op. device_main.cc has the program's main.
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
};

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
// Takes --device, --plugins and --smallest out of the command line.
void set_device_args(int* argc, char** argv);

// The elements as the device holds them, and back.
std::vector<uint8_t> to_bytes(const HostTensor& tensor);
HostTensor from_bytes(const TensorDesc& desc, const std::vector<uint8_t>& bytes);

// `content` in the middle of a larger buffer whose rest is poison: 0xff, which is not a number as
// f32, or 0x7f. A kernel that reads beyond its input computes with poison; one that writes beyond
// its output is seen by intact().
class GuardedBuffer {
 public:
  GuardedBuffer(const Queue& queue, const Device& device, std::vector<uint8_t> content,
                uint8_t poison);

  const cl::Buffer& buffer() const { return part_; }
  std::vector<uint8_t> read();  // the middle
  bool intact();                // the guard bands hold the poison still
  bool unchanged();             // nothing has been written at all

 private:
  std::vector<uint8_t> read_all();

  cl::CommandQueue queue_;
  cl::Buffer whole_, part_;
  std::vector<uint8_t> image_;  // as it was written
  size_t origin_, size_;
};

}  // namespace testing
}  // namespace netcl

#endif  // NETCL_TESTS_OPS_DEVICE_FIXTURE_H_
