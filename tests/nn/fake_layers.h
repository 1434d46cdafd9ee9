// Layer types written in the test, so that nn is tested without plugins: dense, act, drop, flat,
// chain (nested layers), gates (fused ops).
#ifndef NETCL_TESTS_NN_FAKE_LAYERS_H_
#define NETCL_TESTS_NN_FAKE_LAYERS_H_

#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "core/base/error.h"
#include "core/base/text.h"
#include "core/nn/tracer.h"

namespace netcl {
namespace testing {

class FakeLayer : public LayerType {
 public:
  using Trace = std::function<ValueId(Tracer&, const LayerArgs&, ValueId)>;
  FakeLayer(std::string name, std::vector<LayerAttr> attrs, Trace trace)
      : name_(std::move(name)), attrs_(std::move(attrs)), trace_(std::move(trace)) {}
  const std::string& name() const override { return name_; }
  const std::vector<LayerAttr>& attrs() const override { return attrs_; }
  size_t n_in() const override { return 1; }
  size_t n_out() const override { return 1; }
  std::vector<ValueId> trace(Tracer& tracer, const LayerArgs& args,
                             const std::vector<ValueId>& in) const override {
    return {trace_(tracer, args, in[0])};
  }

 private:
  std::string name_;
  std::vector<LayerAttr> attrs_;
  Trace trace_;
};

class FakeLayers : public LayerProvider {
 public:
  FakeLayers() {
    add("dense",
        {{"out", NETCL_ATTR_INT, std::nullopt, true, 1, 1024, {}, "width of the output"},
         {"bias", NETCL_ATTR_BOOL, Attrs::Item(int64_t{1}), false, 0, 0, {}, ""}},
        dense);
    add("act",
        {{"fn",
          NETCL_ATTR_STR,
          Attrs::Item(std::string("relu")),
          false,
          0,
          0,
          {"relu", "tanh"},
          ""}},
        [](Tracer& t, const LayerArgs& a, ValueId x) {
          return t.recorder().call(a.values.text("fn"), {x});
        });
    add("drop", {{"p", NETCL_ATTR_FLOAT, Attrs::Item(0.5), false, 0, 0.9, {}, ""}},
        [](Tracer& t, const LayerArgs& a, ValueId x) {
          if (!t.training()) return x;
          const auto [state, stream] = t.random_stream();
          return t.recorder().call("dropout", {x, state},
                                   {{"p", a.values.number("p")}, {"stream", stream}});
        });
    add("scale_by",
        {{"factors", NETCL_ATTR_INTS, Attrs::Item(std::vector<int64_t>{1}), false, 0, 0, {}, ""}},
        [](Tracer& t, const LayerArgs& a, ValueId x) {
          for (const int64_t f : a.values.integers("factors"))
            x = t.recorder().call("scale", {x}, {{"factor", static_cast<double>(f)}});
          return x;
        });
    add("chain", {{"layers", NETCL_ATTR_LAYERS, std::nullopt, true, 0, 0, {}, ""}},
        [](Tracer& t, const LayerArgs& a, ValueId x) {
          const auto& list = a.nested.at(0).second;
          for (uint32_t i = 0; i < list.count; ++i) x = t.nested(list.handle, i, {x})[0];
          return x;
        });
    add("gates",
        {{"fused", NETCL_ATTR_BOOL, Attrs::Item(int64_t{1}), false, 0, 0, {}, ""},
         {"slope", NETCL_ATTR_FLOAT, Attrs::Item(2.0), false, 0, 9, {}, ""}},
        gates);
  }

  const LayerType& find(const std::string& name) override {
    std::vector<std::string> known;
    for (const auto& [key, layer] : types_) {
      if (key == name) return layer;
      known.push_back(key);
    }
    fail(ErrorCode::kUsage, "unknown layer type \"", name, "\"", suggest(name, known));
  }
  void add(const std::string& name, std::vector<LayerAttr> attrs, FakeLayer::Trace trace) {
    types_.emplace(name, FakeLayer(name, std::move(attrs), std::move(trace)));
  }

 private:
  static ValueId dense(Tracer& t, const LayerArgs& args, ValueId x) {
    const Shape shape = t.recorder().desc(x).shape;
    const int64_t out = args.values.integer("out");
    std::vector<ValueId> in = {
        x, t.slot({"weight", {DType::kF32, Shape{shape[1], out}}, NETCL_INIT_NORMAL, 0, 0.3})};
    if (args.values.integer("bias") != 0)
      in.push_back(t.slot({"bias", {DType::kF32, Shape{out}}, NETCL_INIT_ZEROS, 0, 0}));
    return t.recorder().call("matmul", in);
  }

  // y = x * sigmoid(x * w), twice; the attribute "slope" is for the kernels.
  static ValueId gates(Tracer& t, const LayerArgs& args, ValueId x) {
    const ValueId w =
        t.slot({"w", {DType::kF32, Shape{t.recorder().desc(x).shape[1]}}, NETCL_INIT_ONES, 0, 0});
    for (int i = 0; i < 2; ++i) {
      const ValueId gate = t.recorder().call("sigmoid", {t.recorder().call("mul", {x, w})});
      const ValueId y = t.recorder().call("mul", {x, gate});
      const Attrs attrs = {{"slope", args.values.number("slope")}};
      x = args.values.integer("fused") != 0 ? t.fused("test.gate", {x, w}, attrs, {y})[0] : y;
    }
    return x;
  }

  std::map<std::string, FakeLayer> types_;
};

}  // namespace testing
}  // namespace netcl

#endif  // NETCL_TESTS_NN_FAKE_LAYERS_H_
