// The tape on a device: a small network's gradients equal the host's in double, and it trains.
#include "core/autograd/tape.h"

#include <gtest/gtest.h>

#include <cmath>

#include "core/autograd/backward.h"
#include "core/base/error.h"
#include "core/ops/case_inputs.h"
#include "core/ops/host_recorder.h"
#include "core/verify/host_bytes.h"
#include "tests/ops/device_fixture.h"

namespace netcl {
namespace testing {
namespace {

std::vector<HostTensor> network_inputs() {
  std::vector<HostTensor> out;
  uint64_t seed = 7;
  for (const Shape& shape : {Shape{11, 6}, Shape{6, 9}, Shape{9}, Shape{9, 4}, Shape{4}})
    out.push_back(random_tensor(shape, -1, 1, ++seed));
  HostTensor labels{{DType::kI32, {11}}, {}};
  for (int i = 0; i < 11; ++i) labels.data.push_back(i % 4);
  out.push_back(labels);
  return out;
}

// Mean cross entropy of two dense layers; in: x, w1, b1, w2, b2, labels.
ValueId network(Recorder& r, const std::vector<ValueId>& in) {
  const ValueId h = r.call("gelu", {r.call("matmul", {in[0], in[1], in[2]})});
  const ValueId y = r.call("matmul", {h, in[3], in[4]});
  return r.call("mean", {r.apply("cross_entropy", {y, in[5]})[0]});
}

Tensor to_device(const HostTensor& t) {
  return Tensor::from_host(shared_device().queue(), t.desc, to_bytes(t).data());
}

TEST(TapeTest, GradientsOfANetworkEqualTheHosts) {
  HostRecorder host;
  Tape tape(shared_device().eager());
  std::vector<ValueId> host_in, tape_in;
  for (const HostTensor& t : network_inputs()) {
    host_in.push_back(host.input(t));
    tape_in.push_back(tape.watch(to_device(t)));
  }
  const ValueId host_loss = network(host, host_in), tape_loss = network(tape, tape_in);
  EXPECT_NEAR(tape.tensor(tape_loss).item(), host.value(host_loss).data[0], 1e-6);
  const auto want = gradients(host, host_loss, std::nullopt, {host_in.begin(), host_in.end() - 1});
  const auto got = tape.backward(tape_loss, {tape_in.begin(), tape_in.end() - 1});
  for (size_t i = 0; i < want.size(); ++i) {
    const std::vector<double>& w = host.value(*want[i]).data;
    const std::vector<float> g = got[i]->to_floats();
    ASSERT_EQ(g.size(), w.size());
    // Gradients of order 0.1 through some twenty roundings.
    for (size_t e = 0; e < w.size(); ++e)
      EXPECT_NEAR(g[e], w[e], 2e-6) << "input " << i << " element " << e;
  }
}

TEST(TapeTest, GradientStepsLowerTheLoss) {
  std::vector<HostTensor> in = network_inputs();
  Eager& eager = shared_device().eager();
  std::vector<Tensor> parameters;
  for (size_t i = 1; i < 5; ++i) parameters.push_back(to_device(in[i]));
  const Tensor x = to_device(in[0]), labels = to_device(in[5]);
  float first = 0, last = 0;
  for (int step = 0; step < 30; ++step) {
    Tape tape(eager);
    std::vector<ValueId> ids = {tape.watch(x)}, wanted;
    for (const Tensor& p : parameters) wanted.push_back(tape.watch(p));
    ids.insert(ids.end(), wanted.begin(), wanted.end());
    ids.push_back(tape.watch(labels));
    const ValueId loss = network(tape, ids);
    const auto grads = tape.backward(loss, wanted);
    last = tape.tensor(loss).item();
    if (step == 0) first = last;
    for (size_t i = 0; i < parameters.size(); ++i) {
      const ValueId update = tape.call("scale", {tape.watch(*grads[i])}, {{"factor", -0.5}});
      parameters[i] = tape.tensor(tape.call("add", {wanted[i], update}));
    }
  }
  EXPECT_LT(last, 0.5f * first);
}

TEST(TapeTest, WhatTheOutputDoesNotDependOnHasNoGradient) {
  Tape tape(shared_device().eager());
  const ValueId a = tape.watch(Tensor::from_floats(shared_device().queue(), Shape{2}, {1, 2}));
  const ValueId b = tape.watch(Tensor::from_floats(shared_device().queue(), Shape{2}, {3, 4}));
  const auto grads = tape.backward(tape.call("mul", {a, a}), {a, b});
  EXPECT_EQ(grads[0]->to_floats(), (std::vector<float>{2, 4}));
  EXPECT_FALSE(grads[1].has_value());
}

TEST(TapeTest, RefusesATensorOfAnotherQueue) {
  Tape tape(shared_device().eager());
  const auto other = Queue::create(shared_device().device());
  try {
    tape.watch(Tensor::from_floats(other, Shape{1}, {1}));
    FAIL();
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), ErrorCode::kUsage);
    EXPECT_NE(e.message().find("another queue"), std::string::npos);
  }
}

}  // namespace
}  // namespace testing
}  // namespace netcl
