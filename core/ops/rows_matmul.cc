// Row of matmul: y = activation(op(a) op(b) + bias), with op the identity or the transpose of the
// last two dimensions. Leading dimensions are a batch of products; a b of rank 2 serves all of it.
#include <cmath>

#include "core/base/error.h"
#include "core/ops/checks.h"
#include "core/ops/gradients.h"
#include "core/ops/rows.h"

namespace netcl {

namespace {

// The product's sizes as the shapes give them; m may be symbolic.
struct Sizes {
  int64_t m, n, k, k_of_b;
};

Sizes sizes_of(const OpCall& call) {
  const Shape& a = call.in[0].shape;
  const Shape& b = call.in[1].shape;
  const size_t ta = flag(call.attrs, "transpose_a") ? 1 : 0;
  const size_t tb = flag(call.attrs, "transpose_b") ? 1 : 0;
  const size_t la = a.rank() - 2, lb = b.rank() - 2;
  return {a[la + ta], b[lb + 1 - tb], a[la + 1 - ta], b[lb + tb]};
}

Shape leading(const Shape& shape) {
  return Shape(std::vector<int64_t>(shape.dims().begin(), shape.dims().end() - 2));
}

void check_batch(const Shape& a, const Shape& b) {
  NETCL_CHECK(a.rank() >= 2 && b.rank() >= 2, ErrorCode::kUsage,
              "needs inputs of rank 2 or more; a is ", a.str(), ", b is ", b.str(),
              "; reshape them first");
  NETCL_CHECK(b.rank() == 2 || leading(a) == leading(b), ErrorCode::kUsage,
              "leading dimensions differ: a is ", a.str(), ", b is ", b.str(),
              "; make them equal, or give b rank 2 to use it for the whole batch");
}

std::vector<TensorDesc> infer_matmul(const OpCall& call) {
  const DType dtype = common_float(call);
  check_batch(call.in[0].shape, call.in[1].shape);
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
  std::vector<int64_t> dims = leading(call.in[0].shape).dims();
  dims.insert(dims.end(), {s.m, s.n});
  return {{dtype, Shape(std::move(dims))}};
}

// What kernels compute: `batch` products of the same sizes. A shared b under an a that is not
// transposed is one product of more rows.
struct Products {
  Sizes sizes;
  int64_t batch;
  bool shared_b;
};

Products products_of(const OpCall& call) {
  Products p{sizes_of(call), leading(call.in[0].shape).num_elements(),
             call.in[1].shape.rank() == 2};
  if (p.shared_b && !flag(call.attrs, "transpose_a")) {
    p.sizes.m *= p.batch;
    p.batch = 1;
  }
  return p;
}

void matmul_facts(const OpCall& call, Attrs& facts) {
  const Products p = products_of(call);
  facts.set("M", p.sizes.m);
  facts.set("N", p.sizes.n);
  facts.set("K", p.sizes.k);
  facts.set("has_bias", int64_t{call.in.size() == 3});
  facts.set("batch", p.batch);
  facts.set("a_batch", p.batch > 1 ? p.sizes.m * p.sizes.k : int64_t{0});
  facts.set("b_batch", p.batch > 1 && !p.shared_b ? p.sizes.k * p.sizes.n : int64_t{0});
}

ValueId product(const GradCall& c, ValueId a, bool ta, ValueId b, bool tb) {
  return c.recorder.call("matmul", {a, b},
                         {{"transpose_a", int64_t{ta}}, {"transpose_b", int64_t{tb}}});
}

ValueId swap_last(const GradCall& c, ValueId x) {
  const auto rank = static_cast<int64_t>(c.recorder.desc(x).shape.rank());
  std::vector<int64_t> axes;
  for (int64_t d = 0; d < rank - 2; ++d) axes.push_back(d);
  axes.insert(axes.end(), {rank - 1, rank - 2});
  return c.recorder.call("permute", {x}, {{"axes", axes}});
}

// [.., m, k] as [rows, k].
ValueId folded(const GradCall& c, ValueId x) {
  const Shape shape = c.recorder.desc(x).shape;
  if (shape.rank() == 2) return x;
  int64_t rows = 1;
  for (size_t d = 0; d + 1 < shape.rank(); ++d) {
    NETCL_CHECK(rows > 0 || shape[d] >= 0, ErrorCode::kUsage,
                "two dimensions depend on the batch: ", shape.str());
    rows *= shape[d];
  }
  return c.recorder.call("reshape", {x}, {{"shape", Shape{rows, shape[shape.rank() - 1]}}});
}

Grads matmul_gradient(const GradCall& c) {
  const std::string activation = c.node.attrs.text("activation");
  ValueId dz = dy0(c);
  if (activation != "none") dz = c.recorder.call(activation + "_grad", {dz, c.node.out[0]});
  const bool ta = c.node.attrs.integer("transpose_a") == 1;
  const bool tb = c.node.attrs.integer("transpose_b") == 1;
  const ValueId a = c.node.in[0], b = c.node.in[1];
  const size_t rank = c.in_desc(0).shape.rank();
  Grads out(c.node.in.size());
  if (rank > 2 && c.in_desc(1).shape.rank() == 2) {  // one b for the whole batch
    if (c.needed[0]) {
      const ValueId da = product(c, dz, false, b, !tb);
      out[0] = ta ? swap_last(c, da) : da;
    }
    if (c.needed[1]) {
      const ValueId rows = folded(c, ta ? swap_last(c, a) : a), dz_rows = folded(c, dz);
      out[1] = tb ? product(c, dz_rows, true, rows, false) : product(c, rows, true, dz_rows, false);
    }
  } else {
    if (c.needed[0]) out[0] = ta ? product(c, b, tb, dz, true) : product(c, dz, false, b, !tb);
    if (c.needed[1]) out[1] = tb ? product(c, dz, true, a, ta) : product(c, a, !ta, dz, false);
  }
  if (out.size() == 3 && c.needed[2]) {
    std::vector<int64_t> axes;
    for (size_t d = 0; d + 1 < rank; ++d) axes.push_back(static_cast<int64_t>(d));
    out[2] = c.recorder.call("sum", {dz}, {{"axes", axes}});
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
  const Products p = products_of(call);
  const Sizes& s = p.sizes;
  const bool ta = flag(call.attrs, "transpose_a"), tb = flag(call.attrs, "transpose_b");
  const std::string& activation = call.attrs.text("activation");
  for (int64_t i = 0; i < p.batch; ++i) {
    const double* a = in[0]->data.data() + i * s.m * s.k;
    const double* b = in[1]->data.data() + (p.shared_b ? 0 : i * s.k * s.n);
    double* y = out[0].data.data() + i * s.m * s.n;
    for (int64_t m = 0; m < s.m; ++m) {
      for (int64_t n = 0; n < s.n; ++n) {
        double z = in.size() == 3 ? in[2]->data[static_cast<size_t>(n)] : 0;
        for (int64_t k = 0; k < s.k; ++k) {
          z += a[ta ? k * s.m + m : m * s.k + k] * b[tb ? n * s.k + k : k * s.n + n];
        }
        y[m * s.n + n] = activate(activation, z);
      }
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

// Batches: b of a's rank, and one b for all.
void add_batched_cases(std::vector<OpCase>& cases) {
  const auto add = [&cases](const Shape& a, const Shape& b, bool ta, bool tb, int64_t bias,
                            const char* activation) {
    OpCase c;
    c.in = {{DType::kF32, a}, {DType::kF32, b}};
    if (bias > 0) c.in.push_back({DType::kF32, {bias}});
    c.attrs = {{"transpose_a", int64_t{ta}},
               {"transpose_b", int64_t{tb}},
               {"activation", std::string(activation)}};
    cases.push_back(std::move(c));
  };
  add({1, 1, 1}, {1, 1, 1}, false, false, 1, "none");
  add({3, 5, 7}, {3, 7, 2}, false, false, 2, "tanh");
  add({3, 7, 5}, {3, 7, 2}, true, false, 2, "none");
  add({3, 5, 7}, {3, 17, 7}, false, true, 0, "none");
  add({2, 3, 7, 5}, {2, 3, 4, 7}, true, true, 0, "none");
  add({2, 65, 3}, {2, 3, 18}, false, false, 18, "none");
  add({3, 5, 7}, {7, 3}, false, false, 3, "sigmoid");
  add({2, 3, 5, 7}, {3, 7}, false, true, 0, "none");
  add({3, 7, 5}, {7, 2}, true, false, 2, "none");
  add({3, 7, 5}, {2, 7}, true, true, 0, "none");
  add({0, 5, 7}, {0, 7, 2}, false, false, 2, "none");
  add({0, 7, 5}, {7, 2}, true, false, 2, "none");
  add({3, 5, 0}, {3, 0, 2}, false, false, 2, "none");
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
  add_batched_cases(cases);
  // Tiles take seconds to build on a CPU, for every type and kind of product: so few kinds in 16
  // bits.
  for (OpCase& c : cases) {
    const bool ta = c.attrs.integer("transpose_a") == 1, tb = c.attrs.integer("transpose_b") == 1;
    const bool plain = c.attrs.text("activation") == "none", bias = c.in.size() == 3;
    const bool kept = plain ? (ta != tb && bias) || (!ta && !tb && bias)
                            : c.attrs.text("activation") == "tanh" && bias;
    c.f32_only = !kept || c.in[0].shape[0] > 40;
  }
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
  row.half_storage = true;
  row.autocast = Autocast::kLow;
  row.doc = {"y[..,m,n] = activation(sum_k a[..,m,k] b[..,k,n] + bias[n])",
             "da = dz b^T, db = a^T dz (summed over the batch if b is shared), dbias = sum dz", ""};
  row.cases = matmul_cases();
  rows.push_back(std::move(row));
}

}  // namespace netcl
