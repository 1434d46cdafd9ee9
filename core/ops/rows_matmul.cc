// Row of matmul: y = activation(op(a) op(b) + bias), with op the identity or the transpose.
#include <cmath>

#include "core/base/error.h"
#include "core/ops/gradients.h"
#include "core/ops/rows.h"

namespace netcl {

namespace {

bool flag(const Attrs& attrs, const char* key) {
  const int64_t value = attrs.integer(key);
  NETCL_CHECK(value == 0 || value == 1, ErrorCode::kUsage, "attribute \"", key,
              "\" must be 0 or 1, is ", value);
  return value == 1;
}

struct Sizes {
  int64_t m, n, k, k_of_b;
};

Sizes sizes_of(const OpCall& call) {
  const Shape& a = call.in[0].shape;
  const Shape& b = call.in[1].shape;
  const size_t ta = flag(call.attrs, "transpose_a") ? 1 : 0;
  const size_t tb = flag(call.attrs, "transpose_b") ? 1 : 0;
  return {a[ta], b[1 - tb], a[1 - ta], b[tb]};
}

std::vector<TensorDesc> infer_matmul(const OpCall& call) {
  for (const TensorDesc& desc : call.in) {
    NETCL_CHECK(desc.dtype == DType::kF32, ErrorCode::kUsage, "needs f32 inputs");
  }
  for (size_t i = 0; i < 2; ++i) {
    NETCL_CHECK(call.in[i].shape.rank() == 2, ErrorCode::kUsage, "needs inputs of rank 2; input ",
                i, " has rank ", call.in[i].shape.rank(), "; reshape it first");
  }
  const Sizes s = sizes_of(call);
  NETCL_CHECK(s.k == s.k_of_b, ErrorCode::kUsage, "inner dimensions differ: a has ",
              Shape{s.k}.str(), ", b has ", Shape{s.k_of_b}.str(),
              " (transpose_a=", call.attrs.integer("transpose_a"),
              " transpose_b=", call.attrs.integer("transpose_b"), ")");
  if (call.in.size() == 3) {
    NETCL_CHECK((call.in[2].shape == Shape{s.n}), ErrorCode::kUsage, "the bias must have shape ",
                Shape{s.n}.str(), ", has ", call.in[2].shape.str());
  }
  const std::string& activation = call.attrs.text("activation");
  NETCL_CHECK(activation == "none" || activation == "relu" || activation == "tanh" ||
                  activation == "sigmoid",
              ErrorCode::kUsage, "activation \"", activation,
              "\" is unknown; known: none, relu, tanh, sigmoid");
  return {{DType::kF32, Shape{s.m, s.n}}};
}

void matmul_facts(const OpCall& call, Attrs& facts) {
  const Sizes s = sizes_of(call);
  facts.set("M", s.m);
  facts.set("N", s.n);
  facts.set("K", s.k);
  facts.set("has_bias", int64_t{call.in.size() == 3});
}

ValueId product(const GradCall& c, ValueId a, bool ta, ValueId b, bool tb) {
  return c.recorder.call("matmul", {a, b},
                         {{"transpose_a", int64_t{ta}}, {"transpose_b", int64_t{tb}}});
}

Grads matmul_gradient(const GradCall& c) {
  const std::string activation = c.node.attrs.text("activation");
  ValueId dz = dy0(c);
  if (activation != "none") dz = c.recorder.call(activation + "_grad", {dz, c.node.out[0]});
  const bool ta = c.node.attrs.integer("transpose_a") == 1;
  const bool tb = c.node.attrs.integer("transpose_b") == 1;
  const ValueId a = c.node.in[0], b = c.node.in[1];
  Grads out(c.node.in.size());
  if (c.needed[0]) out[0] = ta ? product(c, b, tb, dz, true) : product(c, dz, false, b, !tb);
  if (c.needed[1]) out[1] = tb ? product(c, dz, true, a, ta) : product(c, a, !ta, dz, false);
  if (out.size() == 3 && c.needed[2]) {
    out[2] = c.recorder.call("sum", {dz}, {{"axes", std::vector<int64_t>{0}}});
  }
  return out;
}

double activate(const std::string& activation, double z) {
  if (activation == "relu") return z < 0 ? 0 : z;
  if (activation == "tanh") return std::tanh(z);
  if (activation == "sigmoid") return 1 / (1 + std::exp(-z));
  return z;
}

void matmul_reference(const OpCall& call, const std::vector<const HostTensor*>& in,
                      std::vector<HostTensor>& out) {
  const Sizes s = sizes_of(call);
  const bool ta = flag(call.attrs, "transpose_a"), tb = flag(call.attrs, "transpose_b");
  const std::string& activation = call.attrs.text("activation");
  const auto at = [](const HostTensor& t, int64_t row, int64_t column) {
    return t.data[static_cast<size_t>(row * t.desc.shape[1] + column)];
  };
  for (int64_t m = 0; m < s.m; ++m) {
    for (int64_t n = 0; n < s.n; ++n) {
      double z = 0;
      for (int64_t k = 0; k < s.k; ++k) {
        z +=
            (ta ? at(*in[0], k, m) : at(*in[0], m, k)) * (tb ? at(*in[1], n, k) : at(*in[1], k, n));
      }
      if (in.size() == 3) z += in[2]->data[static_cast<size_t>(n)];
      out[0].data[static_cast<size_t>(m * s.n + n)] = activate(activation, z);
    }
  }
}

OpCase matmul_case(int64_t m, int64_t n, int64_t k, bool ta, bool tb, bool bias,
                   const std::string& activation) {
  OpCase c;
  c.in = {{DType::kF32, ta ? Shape{k, m} : Shape{m, k}},
          {DType::kF32, tb ? Shape{n, k} : Shape{k, n}}};
  if (bias) c.in.push_back({DType::kF32, {n}});
  c.attrs = {
      {"transpose_a", int64_t{ta}}, {"transpose_b", int64_t{tb}}, {"activation", activation}};
  if (activation == "relu") c.note = "the kink at 0 is a point that random values miss";
  return c;
}

std::vector<OpCase> matmul_cases() {
  std::vector<OpCase> cases;
  const std::vector<std::vector<int64_t>> sizes = {
      {1, 1, 1}, {3, 5, 7}, {17, 13, 31}, {64, 10, 64}};
  for (const auto& s : sizes) {
    for (const bool ta : {false, true}) {
      for (const bool tb : {false, true}) {
        cases.push_back(matmul_case(s[0], s[1], s[2], ta, tb, ta != tb, "none"));
      }
    }
  }
  for (const char* activation : {"relu", "tanh", "sigmoid"}) {
    cases.push_back(matmul_case(5, 7, 3, false, false, true, activation));
    cases.push_back(matmul_case(5, 7, 3, false, true, false, activation));
  }
  cases.push_back(matmul_case(0, 5, 3, false, false, true, "none"));
  cases.push_back(matmul_case(4, 0, 3, false, false, true, "none"));
  cases.push_back(matmul_case(4, 5, 0, false, false, true, "tanh"));
  cases.push_back(matmul_case(4, 5, 0, true, true, false, "none"));
  cases.push_back(matmul_case(1, 67, 129, false, false, true, "none"));
  cases.push_back(matmul_case(131, 1, 33, false, true, false, "none"));
  return cases;
}

}  // namespace

void add_matmul_rows(std::vector<OpRow>& rows) {
  OpRow row;
  row.name = "matmul";
  row.min_in = 2;
  row.max_in = 3;
  row.attrs = {{"transpose_a", int64_t{0}},
               {"transpose_b", int64_t{0}},
               {"activation", std::string("none")}};
  row.infer = infer_matmul;
  row.facts = matmul_facts;
  row.gradient = matmul_gradient;
  row.reference = matmul_reference;
  row.cases = matmul_cases();
  rows.push_back(std::move(row));
}

}  // namespace netcl
