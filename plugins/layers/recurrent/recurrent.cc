// Recurrent layers over [B,T,F]: rnn (tanh), lstm, gru. The loop over T is unrolled into ops;
// states begin at zero. Slots are named and shaped as in PyTorch: weight_ih_l0 [gates H, F],
// weight_hh_l0 [gates H, H], bias_ih_l0, bias_hh_l0 [gates H], with _reverse for the backward
// direction.
#include <cmath>
#include <string>
#include <vector>

#include "core/abi/netcl_plugin.hpp"

namespace {

using netcl::plugin::attr_dims;
using netcl::plugin::attr_float;
using netcl::plugin::attr_int;
using netcl::plugin::attr_ints;
using netcl::plugin::AttrSpec;
using netcl::plugin::Failure;
using netcl::plugin::joined;
using netcl::plugin::Trace;
using netcl::plugin::Value;

enum class Cell { kRnn, kLstm, kGru };

int64_t gates_of(Cell cell) { return cell == Cell::kLstm ? 4 : cell == Cell::kGru ? 3 : 1; }

// What a layer is traced with.
struct Plan {
  const Trace& t;
  Cell cell;
  int64_t hidden;
  bool bias;
};

using Steps = std::vector<Value>;  // one value [B, features] a time

// x[:, at, :] of [B,T,F].
Value time_step(const Trace& t, Value x, int64_t at) {
  const std::vector<int64_t> shape = t.shape(x);
  const std::vector<int64_t> axes = {1}, start = {at}, stop = {at + 1};
  const Value part = t.op(
      "slice", {x}, {attr_ints("axes", axes), attr_ints("start", start), attr_ints("stop", stop)});
  return t.op("reshape", {part}, {attr_dims("shape", {shape[0], shape[2]})});
}

// One direction of one layer. Weights and biases start uniform in +-1/sqrt(H).
Steps run_direction(const Plan& p, const Steps& in, const std::string& suffix, bool reverse) {
  const Trace& t = p.t;
  const int64_t rows = gates_of(p.cell) * p.hidden;
  const std::vector<int64_t> shape = t.shape(in[0]);
  const double bound = 1 / std::sqrt(static_cast<double>(p.hidden));
  const auto slot = [&](const char* name, const std::vector<int64_t>& dims) {
    return t.parameter(name + suffix, dims, NETCL_INIT_UNIFORM, -bound, bound);
  };
  std::vector<Value> to_input = {slot("weight_ih_l", {rows, shape[1]})};
  std::vector<Value> to_state = {slot("weight_hh_l", {rows, p.hidden})};
  if (p.bias) {
    to_input.push_back(slot("bias_ih_l", {rows}));
    to_state.push_back(slot("bias_hh_l", {rows}));
  }
  const std::vector<int64_t> state_shape = {shape[0], p.hidden};
  const Value zeros = t.op("full", {}, {attr_dims("shape", state_shape), attr_float("value", 0)});
  const auto product = [&](Value x, const std::vector<Value>& weights) {
    std::vector<Value> operands = {x};
    operands.insert(operands.end(), weights.begin(), weights.end());
    return t.op("matmul", operands, {attr_int("transpose_b", 1)});
  };
  Value h = zeros, c = zeros;
  Steps out(in.size());
  for (size_t step = 0; step < in.size(); ++step) {
    const size_t at = reverse ? in.size() - 1 - step : step;
    const Value gx = product(in[at], to_input), gh = product(h, to_state);
    if (p.cell == Cell::kLstm) {
      const std::vector<Value> next = t.ops("lstm_cell", {gx, gh, c}, {}, 2);
      h = next[0];
      c = next[1];
    } else if (p.cell == Cell::kGru) {
      h = t.op("gru_cell", {gx, gh, h});
    } else {
      h = t.op("tanh", {t.op("add", {gx, gh})});
    }
    out[at] = h;
  }
  return out;
}

void recurrent(const Trace& t, Cell cell) {
  const Value x = t.input(0);
  const std::vector<int64_t> shape = t.shape(x);
  if (shape.size() != 3 || shape[1] < 1 || shape[2] < 1) {
    throw Failure(NETCL_E_ARG, "expected an input [B,T,F] with fixed T and F above 0, got " +
                                   std::to_string(shape.size()) + " dimensions; reshape it first");
  }
  const Plan plan{t, cell, t.attrs().integer("hidden"), t.attrs().boolean("bias")};
  const bool both = t.attrs().boolean("bidirectional");
  const int64_t layers = t.attrs().integer("num_layers");
  Steps steps;
  for (int64_t at = 0; at < shape[1]; ++at) steps.push_back(time_step(t, x, at));
  Steps forward, backward;
  for (int64_t layer = 0; layer < layers; ++layer) {
    const std::string suffix = std::to_string(layer);
    forward = run_direction(plan, steps, suffix, false);
    if (both) backward = run_direction(plan, steps, suffix + "_reverse", true);
    for (size_t at = 0; at < steps.size(); ++at) {
      steps[at] = both ? joined(t, {forward[at], backward[at]}, 1) : forward[at];
    }
  }
  if (t.attrs().text("output") == "last") {
    // The state after the whole sequence: of the backward direction that at the first time.
    const Value last = both ? joined(t, {forward.back(), backward.front()}, 1) : forward.back();
    return t.output(0, last);
  }
  const int64_t width = plan.hidden * (both ? 2 : 1);
  for (Value& step : steps) {
    step = t.op("reshape", {step}, {attr_dims("shape", {shape[0], 1, width})});
  }
  t.output(0, joined(t, steps, 1));
}

class Recurrent : public netcl::plugin::LayerFamily {
 public:
  explicit Recurrent(const netcl_host* host) : LayerFamily(host) {
    const std::vector<AttrSpec> keys = {
        {"hidden", NETCL_ATTR_INT, true, 0, "", 1, 1 << 20, "", "units of the state"},
        {"num_layers", NETCL_ATTR_INT, false, 1, "", 1, 64, "", "layers on top of each other"},
        {"bidirectional", NETCL_ATTR_BOOL, false, 0, "", 0, 0, "",
         "a second state that runs backwards; both are joined"},
        {"bias", NETCL_ATTR_BOOL, false, 1, "", 0, 0, "", "add trained biases"},
        {"output", NETCL_ATTR_STR, false, 0, "sequence", 0, 0, "sequence|last",
         "the states of all times [B,T,H], or after the last [B,H]"}};
    add({"rnn", "h' = tanh(W x + b + U h + c)", keys,
         [](const Trace& t) { recurrent(t, Cell::kRnn); }});
    add({"lstm", "long short-term memory", keys,
         [](const Trace& t) { recurrent(t, Cell::kLstm); }});
    add({"gru", "gated recurrent unit", keys, [](const Trace& t) { recurrent(t, Cell::kGru); }});
  }
  std::string_view id() const override { return "recurrent"; }
  std::string_view version() const override { return "1.0.0"; }
};

}  // namespace

NETCL_PLUGIN(Recurrent)
