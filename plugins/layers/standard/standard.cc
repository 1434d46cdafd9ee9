// The standard layers, said in core ops: linear, relu, gelu, tanh, sigmoid, dropout, flatten,
// reshape, softmax. A layer is one entry of the constructor: its keys and its trace.
#include <cmath>
#include <string>
#include <vector>

#include "core/abi/netcl_initialisers.hpp"
#include "core/abi/netcl_plugin.hpp"

namespace {

using netcl::plugin::attr_dims;
using netcl::plugin::attr_float;
using netcl::plugin::attr_int;
using netcl::plugin::AttrSpec;
using netcl::plugin::Decline;
using netcl::plugin::Failure;
using netcl::plugin::initialiser_attrs;
using netcl::plugin::Trace;
using netcl::plugin::Value;

// y = x W^T + b on the last dimension; leading dimensions are treated as one batch.
// Weight and bias start uniform in +-1/sqrt(in), as in PyTorch.
void linear(const Trace& t) {
  const Value x = t.input(0);
  const std::vector<int64_t> shape = t.shape(x);
  if (t.desc(x).dtype == NETCL_I32) {
    throw Failure(NETCL_E_ARG,
                  "expected numbers, found i32 tokens; put an embedding before this layer");
  }
  if (shape.size() < 2 || shape.back() < 1) {
    throw Failure(
        NETCL_E_ARG,
        "expected an input of at least 2 dimensions with a fixed last one; flatten it first");
  }
  const int64_t in = shape.back(), out = t.attrs().integer("out");
  const auto usual = netcl::plugin::uniform_within(1.0 / std::sqrt(static_cast<double>(in)));
  std::vector<Value> operands = {x, declare(t, "weight", {out, in},
                                            initial_weight(t.attrs(), static_cast<double>(in),
                                                           static_cast<double>(out), usual))};
  if (t.attrs().boolean("bias")) {
    operands.push_back(declare(t, "bias", {out}, initial_bias(t.attrs(), usual)));
  }
  std::vector<int64_t> result = shape;
  result.back() = out;
  if (shape.size() > 2) {
    int64_t rows = 1;
    for (size_t i = 0; i + 1 < shape.size(); ++i) rows *= shape[i];
    operands[0] = t.op("reshape", {x}, {attr_dims("shape", {rows, in})});
  }
  Value y = t.op("matmul", operands, {attr_int("transpose_b", 1)});
  if (shape.size() > 2) y = t.op("reshape", {y}, {attr_dims("shape", result)});
  t.output(0, y);
}

void gelu(const Trace& t) {
  t.output(0, t.op(t.attrs().text("approximate") == "tanh" ? "gelu_tanh" : "gelu", {t.input(0)}));
}

// Active in training only; the mask depends on seed, step, layer and the sample's place in the
// global batch, so it is the same on any number of devices.
void dropout(const Trace& t) {
  const double p = t.attrs().number("p");
  if (!t.training() || p == 0) return t.output(0, t.input(0));
  const auto [state, stream] = t.random_stream();
  t.output(0,
           t.op("dropout", {t.input(0), state}, {attr_float("p", p), attr_int("stream", stream)}));
}

void flatten(const Trace& t) {
  const std::vector<int64_t> shape = t.shape(t.input(0));
  int64_t features = 1;
  for (size_t i = 1; i < shape.size(); ++i) features *= shape[i];
  t.output(0, t.op("reshape", {t.input(0)}, {attr_dims("shape", {shape[0], features})}));
}

// The samples under another shape; one dimension may be -1, what remains.
void reshape(const Trace& t) {
  const std::vector<int64_t> from = t.shape(t.input(0));
  std::vector<int64_t> to = t.attrs().integers("shape");
  int64_t have = 1, want = 1;
  size_t open = to.size();
  for (size_t i = 1; i < from.size(); ++i) have *= from[i];
  for (size_t i = 0; i < to.size(); ++i) {
    if (to[i] == -1 && open == to.size()) {
      open = i;
    } else if (to[i] < 1) {
      throw Failure(NETCL_E_ARG, "shape: expected sizes of at least 1, one of them -1 at most");
    } else {
      want *= to[i];
    }
  }
  if (open < to.size() && have % want == 0) to[open] = have / want;
  if (open < to.size() ? have % want != 0 : have != want) {
    throw Failure(NETCL_E_ARG, "shape: a sample has " + std::to_string(have) +
                                   " elements, the new shape " + std::to_string(want) +
                                   (open < to.size() ? " times a whole number" : "") +
                                   "; the batch is not part of it");
  }
  to.insert(to.begin(), from.at(0));
  t.output(0, t.op("reshape", {t.input(0)}, {attr_dims("shape", to)}));
}

// A layer that is one op without attributes.
std::function<void(const Trace&)> unary(const char* op) {
  return [op](const Trace& t) { t.output(0, t.op(op, {t.input(0)})); };
}

// A layer that is one op with one number.
std::function<void(const Trace&)> with_number(const char* op, const char* key) {
  return [op, key](const Trace& t) {
    t.output(0, t.op(op, {t.input(0)}, {attr_float(key, t.attrs().number(key))}));
  };
}

// A layer that is one op along an axis of a sample.
std::function<void(const Trace&)> over_axis(const char* op) {
  return [op](const Trace& t) {
    const int64_t along =
        netcl::plugin::sample_axis(t.shape(t.input(0)), t.attrs().integer("axis"));
    t.output(0, t.op(op, {t.input(0)}, {attr_int("axis", along)}));
  };
}

AttrSpec integer(const char* key, double min, double max, const char* doc) {
  return {key, NETCL_ATTR_INT, true, 0, "", min, max, "", doc};
}

class Standard : public netcl::plugin::LayerFamily {
 public:
  explicit Standard(const netcl_host* host) : LayerFamily(host) {
    const AttrSpec bias = {"bias", NETCL_ATTR_BOOL, false, 1, "", 0, 0, "", "add a trained bias"};
    const AttrSpec form = {"approximate", NETCL_ATTR_STR,        false, 0, "none", 0, 0,
                           "none|tanh",   "form of the function"};
    const AttrSpec axis = {"axis", NETCL_ATTR_INT,         false, -1, "", -8, 7,
                           "",     "axis that sums to one"};
    const AttrSpec slope = {"slope", NETCL_ATTR_FLOAT, false, 0.01, "", -1e6, 1e6,
                            "",      "slope below 0"};
    const AttrSpec alpha = {
        "alpha", NETCL_ATTR_FLOAT, false, 1, "", -1e6, 1e6, "", "minus the limit far below 0"};
    const AttrSpec p = {"p",
                        NETCL_ATTR_FLOAT,
                        false,
                        0.5,
                        "",
                        0,
                        0.999999,
                        "",
                        "probability of dropping an element"};
    std::vector<AttrSpec> linear_attrs = initialiser_attrs();
    linear_attrs.insert(linear_attrs.begin(),
                        {integer("out", 1, 1 << 30, "number of outputs"), bias});
    add({"linear", "y = x W^T + b", linear_attrs, linear});
    add({"relu", "max(x, 0)", {}, unary("relu")});
    add({"gelu", "x times the normal distribution function of x", {form}, gelu});
    add({"tanh", "hyperbolic tangent", {}, unary("tanh")});
    add({"sigmoid", "1 / (1 + exp(-x))", {}, unary("sigmoid")});
    add({"dropout", "drops elements in training", {p}, dropout});
    add({"flatten", "all dimensions but the first become one", {}, flatten});
    add({"reshape",
         "samples under another shape",
         {{"shape", NETCL_ATTR_INTS, true, 0, "", 0, 0, "",
           "shape of a sample, without the batch"}},
         reshape});
    add({"softmax", "exp(x) / sum exp(x)", {axis}, over_axis("softmax")});
    add({"log_softmax", "x - log sum exp(x)", {axis}, over_axis("log_softmax")});
    add({"silu", "x sigmoid(x)", {}, unary("silu")});
    add({"mish", "x tanh(softplus(x))", {}, unary("mish")});
    add({"softplus", "log(1 + exp(x))", {}, unary("softplus")});
    add({"hardswish", "x min(max(x + 3, 0), 6) / 6", {}, unary("hardswish")});
    add({"leaky_relu", "x if x > 0, else slope x", {slope}, with_number("leaky_relu", "slope")});
    add({"elu", "x if x > 0, else alpha (exp(x) - 1)", {alpha}, with_number("elu", "alpha")});
  }
  std::string_view id() const override { return "standard"; }
  std::string_view version() const override { return "1.0.0"; }
};

}  // namespace

NETCL_PLUGIN(Standard)
