// example.scaled_tanh: y = gain * tanh(slope * x), where gain is trained, one number for the layer.
// A whole layer plugin in one file; plugins/README.md walks through it.
#include "netcl_plugin.hpp"

namespace {

using netcl::plugin::attr_float;
using netcl::plugin::Trace;
using netcl::plugin::Value;

void scaled_tanh(const Trace& t) {
  const double slope = t.attrs().number("slope"), gain = t.attrs().number("gain");
  const Value inner = t.op("scale", {t.input(0)}, {attr_float("factor", slope)});
  const Value trained = t.parameter("gain", {1}, NETCL_INIT_CONSTANT, gain);
  t.output(0, t.op("mul", {t.op("tanh", {inner}), trained}));
}

class Example : public netcl::plugin::LayerFamily {
 public:
  explicit Example(const netcl_host* host) : LayerFamily(host) {
    add({"example.scaled_tanh",
         "gain * tanh(slope * x) with a trained gain",
         {{"slope", NETCL_ATTR_FLOAT, false, 0.66666667, "", 0.001, 1000, "", "steepness at 0"},
          {"gain", NETCL_ATTR_FLOAT, false, 1.7159, "", 0.001, 1000, "", "gain before training"}},
         scaled_tanh});
  }
  std::string_view id() const override { return "example"; }
  std::string_view version() const override { return "1.0.0"; }
};

}  // namespace

NETCL_PLUGIN(Example)
