// The layer @NAME@.swish: y = x * sigmoid(beta * x), where beta is trained, one number a feature.
//
// Step 1: change swish() below to what your layer computes.
// Step 2: change the list of its keys, which users write in their configuration.
// Step 3: rename it, here, in plugin.json ("provides") and in check.json.
// Step 4: `make check` trains a small model with it.
#include "netcl_plugin.hpp"

namespace {

using netcl::plugin::Failure;
using netcl::plugin::Trace;
using netcl::plugin::Value;

// Says the layer in core ops. The gradient comes from the ops, so there is no backward to write,
// and the layer runs on every device. Called once for training and once for evaluation, not a step.
void swish(const Trace& t) {
  const Value x = t.input(0);
  // Dimension 0 is the batch and shows as a negative number; leave it to the ops.
  const std::vector<int64_t> shape = t.shape(x);
  if (shape.size() < 2) {
    // The host adds the layer's place in the model.
    throw Failure(NETCL_E_ARG, "swish needs samples with a feature axis, not " +
                                   netcl::plugin::shape_text(shape));
  }
  // A trained parameter: its name in checkpoints, its shape, its value before training.
  const Value beta =
      t.parameter("beta", {shape.back()}, NETCL_INIT_CONSTANT, t.attrs().number("beta"));
  // An op by its name; smaller shapes stretch. kernels/README.md of netcl lists the ops.
  t.output(0, t.op("mul", {x, t.op("sigmoid", {t.op("mul", {x, beta})})}));
}

class Plugin : public netcl::plugin::LayerFamily {
 public:
  explicit Plugin(const netcl_host* host) : LayerFamily(host) {
    // A type of layer: name, description, keys, trace. Call add() again for a second one.
    add({"@NAME@.swish",
         "x * sigmoid(beta * x) with a trained beta a feature",
         // key, kind, required, default, default of texts, least, greatest, choices, description
         {{"beta", NETCL_ATTR_FLOAT, false, 1.0, "", 0, 100, "", "steepness before training"}},
         swish});
  }
  // Both are checked against plugin.json.
  std::string_view id() const override { return "@NAME@"; }
  std::string_view version() const override { return "0.1.0"; }
};

}  // namespace

// The one exported function.
NETCL_PLUGIN(Plugin)
