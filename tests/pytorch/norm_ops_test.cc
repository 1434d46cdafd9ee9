// Norms, losses and recurrent layers against values and gradients that PyTorch computed
// (norm_ops.json, made by norm_ops.py). The ops run in double on the host: that devices equal the
// host is tested for every op by device_cases_test.
#include <gtest/gtest.h>

#include "core/autograd/backward.h"
#include "core/ops/host_recorder.h"
#include "tests/pytorch/harness.h"

namespace netcl {
namespace testing {
namespace {

constexpr double kTolerance = 1e-4;  // relative to the largest element

const ordered_json& reference() {
  static const ordered_json json = read_reference("norm_ops");
  return json;
}

void expect_near(const HostTensor& got, const ordered_json& want, const std::string& what) {
  testing::expect_near(got, want, kTolerance, what);
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

TEST(NormOpsTest, LayersEqualPyTorch) {
  for (const ordered_json& c : reference().at("layers")) {
    SCOPED_TRACE(c.at("name").get<std::string>());
    HostRecorder r;
    const ValueId x = r.input(host_tensor(c.at("input")));
    const TracedLayer layer(
        r, c.at("config"), x,
        [&](const std::string& name, const Slot&) {
          return r.input(host_tensor(c.at("slots").at(name)));
        },
        c.at("training").get<bool>());
    expect_near(r.value(layer.y), c.at("output"), "output");
    ASSERT_EQ(layer.slots.size(), c.at("slots").size());
    std::vector<ValueId> wanted = {x};
    std::vector<std::string> names;
    for (const auto& [name, gradient] : c.at("slot_gradients").items()) {
      names.push_back(name);
      wanted.push_back(layer.slots.at(name));
    }
    const ValueId seed = r.input(host_tensor(c.at("seed")));
    const auto grads = gradients(r, layer.y, seed, wanted);
    expect_near(r.value(*grads[0]), c.at("input_gradient"), "gradient of the input");
    for (size_t i = 0; i < names.size(); ++i) {
      SCOPED_TRACE("gradient of " + names[i]);
      const ordered_json& want = c.at("slot_gradients").at(names[i]);
      // Of a state weight behind a state of zeros nothing need be recorded.
      if (grads[i + 1].has_value()) {
        expect_near(r.value(*grads[i + 1]), want, names[i]);
      } else {
        for (const double element : host_tensor(want).data) EXPECT_EQ(element, 0);
      }
    }
    if (!c.contains("statistics")) continue;
    ASSERT_EQ(layer.updates.size(), c.at("statistics").size());
    for (const auto& [name, next] : layer.updates)
      expect_near(r.value(next), c.at("statistics").at(name), name);
  }
}

}  // namespace
}  // namespace testing
}  // namespace netcl
