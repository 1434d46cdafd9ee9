// Convolution layers, said in core ops: conv1d, conv2d, conv_transpose2d; and the plugin itself.
// Weights and biases start, unless asked otherwise, uniform in +-1/sqrt(fan in), the number of
// products that one output adds up, as in PyTorch.
#include <cmath>
#include <string>
#include <vector>

#include "core/abi/netcl_initialisers.hpp"
#include "core/abi/netcl_plugin.hpp"
#include "plugins/layers/conv/geometry.h"
#include "plugins/layers/conv/pool.h"

namespace netcl {
namespace conv {
namespace {

using plugin::attr_dims;
using plugin::attr_int;
using plugin::attr_ints;
using plugin::AttrSpec;
using plugin::Trace;
using plugin::Value;

int64_t checked_groups(const Trace& t, int64_t in, int64_t out) {
  const int64_t groups = t.attrs().integer("groups");
  if (in % groups != 0 || out % groups != 0) {
    throw plugin::Failure(NETCL_E_ARG, "groups: " + std::to_string(groups) + " must divide the " +
                                           std::to_string(in) + " input channels and the " +
                                           std::to_string(out) + " output channels");
  }
  return groups;
}

Dims kernel_of(const Trace& t, size_t spatial) {
  const Dims kernel = integers_of(t, "kernel", spatial, 1, {});
  if (kernel.empty()) throw plugin::Failure(NETCL_E_ARG, "kernel: expected a size, found []");
  return kernel;
}

// The lists of the op for a layer of `spatial` dimensions; in one dimension the height is 1.
Dims widened(const Trace& t, const char* key, size_t spatial, int64_t low, int64_t absent) {
  Dims out = integers_of(t, key, spatial, low, Dims(spatial, absent));
  if (spatial == 1) out.insert(out.begin(), absent);
  return out;
}

// `transposed`: weight [in, out / groups, ...] instead of [out, in / groups, ...].
void convolve(const Trace& t, size_t spatial, bool transposed) {
  const Dims shape = image_shape(t, spatial);
  const int64_t in = shape[1], out = t.attrs().integer("out");
  const int64_t groups = checked_groups(t, in, out);
  const Dims kernel = kernel_of(t, spatial);
  Dims weight = transposed ? Dims{in, out / groups} : Dims{out, in / groups};
  weight.insert(weight.end(), kernel.begin(), kernel.end());
  double fan_in = static_cast<double>(weight[1]), fan_out = static_cast<double>(weight[0]);
  for (const int64_t k : kernel) {
    fan_in *= static_cast<double>(k);
    fan_out *= static_cast<double>(k);
  }
  const auto usual = plugin::uniform_within(1.0 / std::sqrt(fan_in));

  std::vector<Value> operands = {
      t.input(0),
      declare(t, "weight", weight, plugin::initial_weight(t.attrs(), fan_in, fan_out, usual))};
  if (spatial == 1) {
    operands[0] = with_height(t, operands[0]);
    weight.insert(weight.begin() + 2, 1);
    operands[1] = t.op("reshape", {operands[1]}, {attr_dims("shape", weight)});
  }
  if (t.attrs().boolean("bias"))
    operands.push_back(declare(t, "bias", {out}, plugin::initial_bias(t.attrs(), usual)));
  const Dims stride = widened(t, "stride", spatial, 1, 1);
  const Dims padding = widened(t, "padding", spatial, 0, 0);
  const Dims dilation = widened(t, "dilation", spatial, 1, 1);
  std::vector<netcl_attr> attrs = {attr_ints("stride", stride), attr_ints("padding", padding),
                                   attr_ints("dilation", dilation), attr_int("groups", groups)};
  const Dims extra = transposed ? widened(t, "output_padding", spatial, 0, 0) : Dims{};
  if (transposed) attrs.push_back(attr_ints("output_padding", extra));
  const Value y = t.op(transposed ? "conv_transpose2d" : "conv2d", operands, attrs);
  t.output(0, spatial == 1 ? without_height(t, y) : y);
}

class Conv : public plugin::LayerFamily {
 public:
  explicit Conv(const netcl_host* host) : LayerFamily(host) {
    const double most = 1 << 24;
    std::vector<AttrSpec> attrs = {
        {"out", NETCL_ATTR_INT, true, 0, "", 1, most, "", "number of output channels"},
        list("kernel", true, "size of the kernel"),
        list("stride", false, "distance of the kernel's positions; 1"),
        list("padding", false, "zeros on every side; 0"),
        list("dilation", false, "distance of the kernel's elements; 1"),
        {"groups", NETCL_ATTR_INT, false, 1, "", 1, most, "", "groups of channels kept apart"},
        {"bias", NETCL_ATTR_BOOL, false, 1, "", 0, 0, "", "add a trained bias"}};
    for (AttrSpec& spec : plugin::initialiser_attrs()) attrs.push_back(std::move(spec));
    add({"conv1d", "convolution over [N,C,L]", attrs,
         [](const Trace& t) { convolve(t, 1, false); }});
    add({"conv2d", "convolution over [N,C,H,W]", attrs,
         [](const Trace& t) { convolve(t, 2, false); }});
    std::vector<AttrSpec> transposed = attrs;
    transposed.push_back(list("output_padding", false, "rows and columns added at the end; 0"));
    add({"conv_transpose2d", "transposed convolution over [N,C,H,W]", transposed,
         [](const Trace& t) { convolve(t, 2, true); }});
    for (plugin::LayerType& layer : pool_layers()) add(std::move(layer));
  }
  std::string_view id() const override { return "conv"; }
  std::string_view version() const override { return "1.0.0"; }
};

}  // namespace
}  // namespace conv
}  // namespace netcl

NETCL_PLUGIN(netcl::conv::Conv)
