// Initial values of weights by name, for layers with a weight: the keys "init", "init_scale" and
// "bias_init", and what they mean. Defaults are PyTorch's for each layer.
#ifndef NETCL_CORE_ABI_NETCL_INITIALISERS_HPP_
#define NETCL_CORE_ABI_NETCL_INITIALISERS_HPP_

#include <cmath>
#include <string>
#include <string_view>
#include <vector>

#include "netcl_plugin.hpp"

#pragma GCC visibility push(hidden)
namespace netcl {
namespace plugin {

// NETCL_INIT_* with its arguments.
struct Initial {
  uint32_t kind = NETCL_INIT_ZEROS;
  double a = 0, b = 0;
};

inline Initial uniform_within(double bound) { return {NETCL_INIT_UNIFORM, -bound, bound}; }
inline Initial normal_with(double deviation) { return {NETCL_INIT_NORMAL, 0, deviation}; }

// The keys, to be added to a layer's own.
inline std::vector<AttrSpec> initialiser_attrs() {
  return {{"init", NETCL_ATTR_STR, false, 0, "default", 0, 0,
           "default|zeros|ones|constant|normal|uniform|trunc_normal|xavier_uniform|xavier_normal|"
           "kaiming_uniform|kaiming_normal|kaiming_normal_fan_out|lecun_normal|orthogonal",
           "initial values of the weight"},
          {"init_scale", NETCL_ATTR_FLOAT, false, 0, "", 0, 1e6, "",
           "their deviation, bound, value or gain; 0: the usual one"},
          {"bias_init", NETCL_ATTR_STR, false, 0, "default", 0, 0, "default|zeros|ones",
           "initial values of the bias"}};
}

// The weight's initial values as the layer's keys ask for. `fan_in`, `fan_out`: numbers that each
// output depends on, and that depend on each input. Sources: Glorot, Bengio 2010 (xavier); He,
// Zhang, Ren, Sun 2015 (kaiming, for ReLU); LeCun, Bottou, Orr, Mueller 1998 (lecun).
inline Initial initial_weight(const AttrView& attrs, double fan_in, double fan_out,
                              Initial by_default) {
  const std::string_view name = attrs.text("init");
  const double given = attrs.number("init_scale");
  const auto scale = [given](double usual) { return given > 0 ? given : usual; };
  const double xavier = std::sqrt(2.0 / (fan_in + fan_out));
  if (name == "zeros") return {};
  if (name == "ones") return {NETCL_INIT_ONES};
  if (name == "constant") return {NETCL_INIT_CONSTANT, given};
  if (name == "normal") return normal_with(scale(0.02));
  if (name == "uniform") return uniform_within(scale(0.05));
  if (name == "trunc_normal") return {NETCL_INIT_TRUNC_NORMAL, 0, scale(0.02)};
  if (name == "xavier_uniform") return uniform_within(scale(1) * xavier * std::sqrt(3.0));
  if (name == "xavier_normal") return normal_with(scale(1) * xavier);
  if (name == "kaiming_uniform")
    return uniform_within(scale(std::sqrt(2.0)) * std::sqrt(3.0 / fan_in));
  if (name == "kaiming_normal") return normal_with(scale(std::sqrt(2.0)) / std::sqrt(fan_in));
  if (name == "kaiming_normal_fan_out")
    return normal_with(scale(std::sqrt(2.0)) / std::sqrt(fan_out));
  if (name == "lecun_normal") return normal_with(scale(1) / std::sqrt(fan_in));
  if (name == "orthogonal") return {NETCL_INIT_ORTHOGONAL, scale(1)};
  return by_default;
}

inline Initial initial_bias(const AttrView& attrs, Initial by_default) {
  const std::string_view name = attrs.text("bias_init");
  if (name == "zeros") return {};
  if (name == "ones") return {NETCL_INIT_ONES};
  return by_default;
}

inline Value declare(const Trace& t, std::string_view name, const std::vector<int64_t>& shape,
                     const Initial& initial) {
  return t.parameter(name, shape, initial.kind, initial.a, initial.b);
}

}  // namespace plugin
}  // namespace netcl
#pragma GCC visibility pop

#endif  // NETCL_CORE_ABI_NETCL_INITIALISERS_HPP_
