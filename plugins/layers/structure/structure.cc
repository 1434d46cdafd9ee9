// Layers that hold layers: sequential, residual, sum and concat. They add no parameters of their
// own; the slots of what they hold are named after its place ("layers.0.shortcut.0.weight").
#include <string>
#include <vector>

#include "core/abi/netcl_plugin.hpp"

namespace {

using netcl::plugin::AttrSpec;
using netcl::plugin::Failure;
using netcl::plugin::shape_text;
using netcl::plugin::Trace;
using netcl::plugin::Value;

// The layers of `key` one after the other; x itself if there are none.
Value chain(const Trace& t, const char* key, Value x) {
  for (uint32_t i = 0; i < t.num_layers(key); ++i) x = t.layer(key, i, x);
  return x;
}

void residual(const Trace& t) {
  const Value x = t.input(0);
  const Value y = chain(t, "layers", x), shortcut = chain(t, "shortcut", x);
  if (t.shape(y) != t.shape(shortcut)) {
    throw Failure(NETCL_E_ARG,
                  "the layers give " + shape_text(t.shape(y)) + " and the shortcut " +
                      shape_text(t.shape(shortcut)) +
                      ", which cannot be added; make the layers keep the shape, or give "
                      "\"shortcut\" a layer that changes it the same way");
  }
  Value sum = t.op("add", {y, shortcut});
  const std::string activation(t.attrs().text("activation"));
  if (activation != "none") sum = t.op(activation, {sum});
  t.output(0, sum);
}

std::vector<Value> branches(const Trace& t) {
  std::vector<Value> out;
  for (uint32_t i = 0; i < t.num_layers("layers"); ++i)
    out.push_back(t.layer("layers", i, t.input(0)));
  if (out.empty()) throw Failure(NETCL_E_ARG, "\"layers\" is empty; name at least one branch");
  return out;
}

void sum(const Trace& t) {
  const std::vector<Value> parts = branches(t);
  Value total = parts[0];
  for (size_t i = 1; i < parts.size(); ++i) {
    if (t.shape(parts[i]) != t.shape(parts[0])) {
      throw Failure(NETCL_E_ARG, "branch 0 gives " + shape_text(t.shape(parts[0])) +
                                     " and branch " + std::to_string(i) + " " +
                                     shape_text(t.shape(parts[i])) +
                                     ", which cannot be added; make their shapes equal");
    }
    total = t.op("add", {total, parts[i]});
  }
  t.output(0, total);
}

void concat(const Trace& t) {
  const std::vector<Value> parts = branches(t);
  const std::vector<int64_t> first = t.shape(parts[0]);
  const int64_t axis = netcl::plugin::sample_axis(first, t.attrs().integer("axis"));
  for (size_t i = 1; i < parts.size(); ++i) {
    std::vector<int64_t> want = first;
    const std::vector<int64_t> shape = t.shape(parts[i]);
    if (shape.size() == want.size())
      want[static_cast<size_t>(axis)] = shape[static_cast<size_t>(axis)];
    if (shape != want) {
      throw Failure(NETCL_E_ARG, "branch 0 gives " + shape_text(first) + " and branch " +
                                     std::to_string(i) + " " + shape_text(shape) +
                                     "; they must be equal but for axis " + std::to_string(axis));
    }
  }
  t.output(0, netcl::plugin::joined(t, parts, axis));
}

class Structure : public netcl::plugin::LayerFamily {
 public:
  explicit Structure(const netcl_host* host) : LayerFamily(host) {
    const AttrSpec layers = {"layers", NETCL_ATTR_LAYERS, true, 0, "", 0, 0, "", "layers in order"};
    const AttrSpec parts = {"layers", NETCL_ATTR_LAYERS,   true, 0, "", 0, 0,
                            "",       "one layer a branch"};
    const AttrSpec shortcut = {"shortcut",
                               NETCL_ATTR_LAYERS,
                               false,
                               0,
                               "",
                               0,
                               0,
                               "",
                               "layers of the shortcut; none: x itself"};
    const AttrSpec activation = {
        "activation",        NETCL_ATTR_STR, false, 0, "none", 0, 0, "none|relu|gelu|tanh|sigmoid",
        "applied to the sum"};
    const AttrSpec axis = {"axis", NETCL_ATTR_INT, false, 1, "", -8, 7, "", "axis that grows"};
    add({"sequential", "layers one after the other", {layers}, [](const Trace& t) {
           t.output(0, chain(t, "layers", t.input(0)));
         }});
    add({"residual",
         "activation(layers(x) + shortcut(x))",
         {layers, shortcut, activation},
         residual});
    add({"sum", "the branches' results added", {parts}, sum});
    add({"concat", "the branches' results joined along an axis", {axis, parts}, concat});
  }
  std::string_view id() const override { return "structure"; }
  std::string_view version() const override { return "1.0.0"; }
};

}  // namespace

NETCL_PLUGIN(Structure)
