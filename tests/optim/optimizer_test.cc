// Twenty steps of each optimiser through its op against a loop written by hand, and the checks of
// its hyper-parameters.
#include "core/optim/optimizer.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "core/base/error.h"
#include "core/ops/case_inputs.h"
#include "core/ops/host_recorder.h"

namespace netcl {
namespace {

constexpr int64_t kSteps = 20;
constexpr int64_t kSize = 5;
constexpr double kDenominator = 4;
// The op sees hyper-parameters as f32: 6e-8 relative for each, twenty times.
constexpr double kTolerance = 2e-6;

double gradient(int64_t step, size_t i) {
  return std::sin(0.7 * static_cast<double>(step) + static_cast<double>(i));
}

ValueId hyper_input(HostRecorder& r, const Optimizer& optimizer, int64_t step, double lr) {
  const std::array<float, 16> h = optimizer.hyper(step, lr, optimizer.weight_decay);
  return r.input({{DType::kF32, {1, 16}}, std::vector<double>(h.begin(), h.end())});
}

// Parameters after kSteps of `optimizer`, run by its op on the host.
std::vector<double> run_op(const Optimizer& optimizer, double lr) {
  HostRecorder r;
  const TensorDesc arena{DType::kF32, {kSize}};
  std::vector<ValueId> state = {r.input({arena, {0.5, -1, 2, 0, 1.5}})};
  for (size_t s = 0; s < optimizer.num_states(); ++s) {
    state.push_back(r.input({arena, std::vector<double>(kSize, optimizer.initial_state())}));
  }
  const ValueId divisor = r.input({{DType::kF32, {1}}, {kDenominator}});
  const ValueId blocks = r.input({{DType::kI32, {1}}, {0}});
  Attrs attrs;
  for (const auto& [key, value] : optimizer.op_flags()) attrs.set(key, value);
  for (int64_t step = 1; step <= kSteps; ++step) {
    std::vector<double> grad;
    for (size_t i = 0; i < kSize; ++i) grad.push_back(kDenominator * gradient(step, i));
    std::vector<ValueId> in = {state[0], r.input({arena, grad}),
                               hyper_input(r, optimizer, step, lr), blocks, divisor};
    in.insert(in.end(), state.begin() + 1, state.end());
    state = r.apply(optimizer.op(), in, attrs);
  }
  return r.value(state[0]).data;
}

std::vector<double> start() { return {0.5, -1, 2, 0, 1.5}; }

void expect_near(const std::vector<double>& a, const std::vector<double>& b) {
  ASSERT_EQ(a.size(), b.size());
  for (size_t i = 0; i < a.size(); ++i) EXPECT_NEAR(a[i], b[i], kTolerance) << "element " << i;
}

struct SgdCase {
  double momentum, dampening, decay;
  bool nesterov;
};

TEST(OptimizerTest, SgdEqualsLoop) {
  for (const SgdCase& c :
       {SgdCase{0, 0, 0, false}, SgdCase{0, 0, 0.1, false}, SgdCase{0.9, 0, 0, false},
        SgdCase{0.9, 0.3, 0.05, false}, SgdCase{0.8, 0, 0.05, true}}) {
    Optimizer optimizer = Optimizer::sgd(0.1);
    optimizer.momentum = c.momentum;
    optimizer.dampening = c.dampening;
    optimizer.weight_decay = c.decay;
    optimizer.nesterov = c.nesterov;
    optimizer.check();
    std::vector<double> p = start(), buffer(kSize);
    for (int64_t step = 1; step <= kSteps; ++step) {
      for (size_t i = 0; i < kSize; ++i) {
        const double d = gradient(step, i) + c.decay * p[i];
        double update = d;
        if (c.momentum > 0) {
          buffer[i] = step == 1 ? d : c.momentum * buffer[i] + (1 - c.dampening) * d;
          update = c.nesterov ? d + c.momentum * buffer[i] : buffer[i];
        }
        p[i] -= 0.1 * update;
      }
    }
    expect_near(run_op(optimizer, 0.1), p);
  }
}

TEST(OptimizerTest, AdamWEqualsLoop) {
  for (const double decay : {0.0, 0.1}) {
    Optimizer optimizer = Optimizer::adamw(0.01);
    optimizer.weight_decay = decay;
    optimizer.check();
    const double b1 = optimizer.beta1, b2 = optimizer.beta2;
    std::vector<double> p = start(), m(kSize), v(kSize);
    for (int64_t step = 1; step <= kSteps; ++step) {
      for (size_t i = 0; i < kSize; ++i) {
        const double g = gradient(step, i);
        p[i] -= 0.01 * decay * p[i];
        m[i] = b1 * m[i] + (1 - b1) * g;
        v[i] = b2 * v[i] + (1 - b2) * g * g;
        const double m_hat = m[i] / (1 - std::pow(b1, static_cast<double>(step)));
        const double v_hat = v[i] / (1 - std::pow(b2, static_cast<double>(step)));
        p[i] -= 0.01 * m_hat / (std::sqrt(v_hat) + optimizer.epsilon);
      }
    }
    expect_near(run_op(optimizer, 0.01), p);
  }
}

TEST(OptimizerTest, NoSamplesMeansNoGradient) {
  for (const double divisor : {0.0, std::numeric_limits<double>::infinity()}) {
    HostRecorder r;
    const TensorDesc one{DType::kF32, {1}};
    const Optimizer sgd = Optimizer::sgd(0.5);
    const auto out =
        r.apply("sgd_step",
                {r.input({one, {3}}), r.input({one, {std::nan("")}}), hyper_input(r, sgd, 1, 0.5),
                 r.input({{DType::kI32, {1}}, {0}}), r.input({one, {divisor}})});
    EXPECT_EQ(r.value(out[0]).data[0], 3);
  }
}

TEST(OptimizerTest, HyperHoldsBiasCorrections) {
  const Optimizer optimizer = Optimizer::adamw();
  const std::array<float, 16> h = optimizer.hyper(1, 0.001, 0.25);
  EXPECT_EQ(h[0], 0.001f);
  EXPECT_EQ(h[1], 0.25f);
  EXPECT_EQ(h[4], h[8]);  // the first step's average is exactly the gradient
  EXPECT_NEAR(static_cast<double>(optimizer.hyper(1000, 0.001, 0)[9]),
              std::sqrt(1 - std::pow(0.999, 1000)), 1e-7);
  EXPECT_EQ(Optimizer::sgd().hyper(1, 0.1, 0)[6], 1.0f);
  EXPECT_EQ(Optimizer::sgd().hyper(2, 0.1, 0)[6], 0.0f);
  EXPECT_THROW(optimizer.hyper(0, 0.1, 0), Error);
}

TEST(OptimizerTest, StatesFollowTheSettings) {
  Optimizer o = Optimizer::sgd();
  EXPECT_TRUE(o.state_names().empty());
  o.momentum = 0.9;
  EXPECT_EQ(o.state_names(), (std::vector<std::string>{"momentum"}));
  o = Optimizer::of(Optimizer::Type::kRmsprop);
  o.momentum = 0.5;
  o.centered = true;
  EXPECT_EQ(o.state_names(), (std::vector<std::string>{"v", "momentum", "mean_gradient"}));
  o = Optimizer::adamw();
  o.amsgrad = true;
  EXPECT_EQ(o.num_states(), 3u);
}

std::string error_of(const Optimizer& optimizer) {
  try {
    optimizer.check();
  } catch (const Error& e) {
    return e.message();
  }
  return "";
}

TEST(OptimizerTest, RefusesNonsense) {
  Optimizer o = Optimizer::sgd(-1);
  EXPECT_EQ(error_of(o), "optimizer: lr must be at least 0, is -1");
  o = Optimizer::sgd();
  o.nesterov = true;
  EXPECT_NE(error_of(o).find("nesterov needs momentum"), std::string::npos);
  o = Optimizer::adamw();
  o.beta2 = 1;
  EXPECT_EQ(error_of(o), "optimizer: beta2 must be in [0, 1), is 1");
  o.beta2 = 0.999;
  o.epsilon = std::nan("");
  EXPECT_NE(error_of(o).find("eps"), std::string::npos);
  EXPECT_EQ(error_of(Optimizer::adamw()), "");
}

TEST(OptimizerTest, NamesRoundTrip) {
  for (const std::string& name : optimizer_names()) {
    EXPECT_EQ(optimizer_name(optimizer_type(name)), name);
    Optimizer::of(optimizer_type(name)).check();
  }
  try {
    optimizer_type("adamx");
    FAIL();
  } catch (const Error& e) {
    EXPECT_NE(e.message().find("did you mean \"adam"), std::string::npos) << e.message();
  }
}

}  // namespace
}  // namespace netcl
