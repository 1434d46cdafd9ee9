// Norms, losses and recurrent layers against values and gradients that PyTorch computed
// (norm_ops.json, made by norm_ops.py). The ops run in double on the host: that devices equal the
// host is tested for every op by device_cases_test.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>

#include "core/autograd/backward.h"
#include "core/nn/tracer.h"
#include "core/ops/host_recorder.h"
#include "core/runtime/layer_set.h"
#include "tests/ops/device_fixture.h"

namespace netcl {
namespace testing {
namespace {

using nlohmann::ordered_json;

constexpr double kTolerance = 1e-4;  // relative to the largest element

const ordered_json& reference() {
  static const ordered_json json = [] {
    std::ifstream file("tests/pytorch/norm_ops.json");
    return ordered_json::parse(file);
  }();
  return json;
}

HostTensor host_tensor(const ordered_json& json) {
  std::vector<int64_t> dims = json.at("shape").get<std::vector<int64_t>>();
  return {{dtype_named(json.at("dtype").get<std::string>()), Shape(std::move(dims))},
          json.at("data").get<std::vector<double>>()};
}

void expect_near(const HostTensor& got, const ordered_json& json, const std::string& what) {
  SCOPED_TRACE(what);
  const HostTensor want = host_tensor(json);
  ASSERT_EQ(got.desc, want.desc) << got.desc.str() << " against " << want.desc.str();
  double largest = 1e-3;
  for (const double x : want.data) largest = std::max(largest, std::fabs(x));
  for (size_t i = 0; i < want.data.size(); ++i) {
    ASSERT_NEAR(got.data[i], want.data[i], kTolerance * largest) << "element " << i;
  }
}

Attrs attrs_of(const ordered_json& json) {
  Attrs out;
  for (const auto& [key, value] : json.items()) {
    if (value.is_number_float()) {
      out.set(key, value.get<double>());
    } else {
      out.set(key, value.get<int64_t>());
    }
  }
  return out;
}

double sum(const HostTensor& t) {
  double total = 0;
  for (const double x : t.data) total += x;
  return total;
}

TEST(NormOpsTest, OpsEqualPyTorch) {
  for (const ordered_json& c : reference().at("ops")) {
    SCOPED_TRACE(c.at("name").get<std::string>());
    HostRecorder r;
    std::vector<ValueId> in, wanted;
    for (const ordered_json& input : c.at("inputs")) {
      in.push_back(r.input(host_tensor(input)));
      const bool real = is_float(r.desc(in.back()).dtype);
      if (real && wanted.size() < c.at("gradients").size()) wanted.push_back(in.back());
    }
    const std::vector<ValueId> y = r.apply(c.at("op"), in, attrs_of(c.at("attrs")));
    expect_near(r.value(y[0]), c.at("output"), "output");
    if (c.contains("mean")) {
      const double mean = sum(r.value(y.at(0))) / sum(r.value(y.at(1)));
      EXPECT_NEAR(mean, c.at("mean").get<double>(), 1e-6);
    }
    const auto grads = gradients(r, y[0], r.input(host_tensor(c.at("seed"))), wanted);
    for (size_t i = 0; i < wanted.size(); ++i) {
      ASSERT_TRUE(grads[i].has_value());
      expect_near(r.value(*grads[i]), c.at("gradients")[i], "gradient " + std::to_string(i));
    }
  }
}

// A layer of the file, traced on the host with the file's values in its slots.
struct LayerRun {
  explicit LayerRun(const ordered_json& c)
      : layers(shared_device().plugins()),
        tracer(
            r, layers, declared,
            [this, &c](const Slot& slot) {
              const std::string name = slot.name.substr(std::string("layers.0.").size());
              EXPECT_TRUE(c.at("slots").contains(name)) << name;
              return slots[name] = r.input(host_tensor(c.at("slots").at(name)));
            },
            [] { return ValueId{0}; }, TraceOptions{c.at("training").get<bool>(), nullptr}),
        x(r.input(host_tensor(c.at("input")))),
        y(tracer.sequence(ordered_json::array({c.at("config")}), "model.layers", x)) {}

  HostRecorder r;
  LayerSet layers;
  std::vector<Slot> declared;
  std::map<std::string, ValueId> slots;
  Tracer tracer;
  ValueId x, y;
};

TEST(NormOpsTest, LayersEqualPyTorch) {
  for (const ordered_json& c : reference().at("layers")) {
    SCOPED_TRACE(c.at("name").get<std::string>());
    LayerRun run(c);
    expect_near(run.r.value(run.y), c.at("output"), "output");
    ASSERT_EQ(run.slots.size(), c.at("slots").size());
    std::vector<ValueId> wanted = {run.x};
    std::vector<std::string> names;
    for (const auto& [name, gradient] : c.at("slot_gradients").items()) {
      names.push_back(name);
      wanted.push_back(run.slots.at(name));
    }
    const ValueId seed = run.r.input(host_tensor(c.at("seed")));
    const auto grads = gradients(run.r, run.y, seed, wanted);
    expect_near(run.r.value(*grads[0]), c.at("input_gradient"), "gradient of the input");
    for (size_t i = 0; i < names.size(); ++i) {
      SCOPED_TRACE("gradient of " + names[i]);
      const ordered_json& want = c.at("slot_gradients").at(names[i]);
      // Of a state weight behind a state of zeros nothing need be recorded.
      if (grads[i + 1].has_value()) {
        expect_near(run.r.value(*grads[i + 1]), want, names[i]);
      } else {
        for (const double x : host_tensor(want).data) EXPECT_EQ(x, 0);
      }
    }
    if (!c.contains("statistics")) continue;
    ASSERT_EQ(run.tracer.updates().size(), c.at("statistics").size());
    for (const SlotUpdate& update : run.tracer.updates()) {
      const std::string name = update.slot.substr(std::string("layers.0.").size());
      expect_near(run.r.value(update.next), c.at("statistics").at(name), name);
    }
  }
}

}  // namespace
}  // namespace testing
}  // namespace netcl
