// An op as a command line names it (--op, --shape, --attr), and the device that it runs on.
#ifndef NETCL_APPS_NETCL_APP_OP_ARGUMENTS_H_
#define NETCL_APPS_NETCL_APP_OP_ARGUMENTS_H_

#include <CLI/CLI.hpp>
#include <memory>
#include <string>
#include <vector>

#include "apps/netcl_app/options.h"
#include "core/cl/device.h"
#include "core/nn/fused_cases.h"
#include "core/ops/op.h"

namespace netcl::app {

struct OpOptions : CommonOptions {
  std::string op, layer, device = "all", dtype = "f32";
  std::vector<std::string> shapes, attrs;
};

// Adds --op (which may be left out), --shape, --attr, --dtype and --device.
void add_question_options(CLI::App& command, OpOptions& options);
// The same with --op required, --layer, --kernels, --no-tuned and the common ones.
void add_op_options(CLI::App& command, OpOptions& options);

// The first device of --device, open in this process, with its kernel sets.
class OpDevice {
 public:
  // Errors: kUsage, kDevice.
  explicit OpDevice(const OpOptions& options);

  Device& device() { return *device_; }
  const DeviceInfo& info() const { return info_; }
  PluginHost& plugins() { return *plugins_; }
  KernelChoice& kernels() { return *kernels_; }

 private:
  DeviceInfo info_;
  std::unique_ptr<Device> device_;
  std::unique_ptr<PluginHost> plugins_;
  std::unique_ptr<KernelChoice> kernels_;
};

struct OpArguments {
  const OpRow& op;
  std::vector<TensorDesc> in, out;
  Attrs attrs;                             // complete
  std::shared_ptr<const FusedCase> fused;  // owns `op` if a layer made it; else null
};

// One shape an input; a matmul may be given as M,K,N, and one shape stands for all inputs. Inputs
// have the type of --dtype where the op takes it, but those that the op wants as integers are i32.
// With --layer the op is a fused one of that layer; shapes are those of the layer's inputs,
// attributes the layer's keys. Errors: kUsage, naming the option; kPlugin.
OpArguments op_arguments(const OpOptions& options, OpDevice& place);
// The same for ops of the table alone, without a device.
OpArguments table_op_arguments(const OpOptions& options);

}  // namespace netcl::app

#endif  // NETCL_APPS_NETCL_APP_OP_ARGUMENTS_H_
