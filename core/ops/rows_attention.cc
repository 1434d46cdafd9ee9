// Rows of scaled dot-product attention and its backward ops. None of them holds the whole matrix of
// scores: the forward op saves the logarithm of each row's sum of exponentials (lse), from which
// the backward ops recompute the probabilities. Only the gradient of a trained mask has its size.
#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "core/base/error.h"
#include "core/ops/checks.h"
#include "core/ops/gradients.h"
#include "core/ops/rows.h"

namespace netcl {

namespace {

constexpr double kMinusInfinity = -std::numeric_limits<double>::infinity();

// Inputs: q, k, v, then `extra` more, then the mask if there is one.
const TensorDesc* mask_of(const OpCall& call, size_t extra) {
  return call.in.size() > 3 + extra ? &call.in[3 + extra] : nullptr;
}

void check_mask(const TensorDesc& mask, const Shape& scores) {
  NETCL_CHECK(is_float(mask.dtype) || mask.dtype == DType::kBool, ErrorCode::kUsage,
              "the mask must be bool (true: may attend) or a float that is added, is ", mask.str());
  NETCL_CHECK(mask.shape.rank() <= 4 && broadcast_shapes(mask.shape, scores, "mask") == scores,
              ErrorCode::kUsage, "the mask ", mask.str(), " does not stretch to the scores ",
              scores.str());
}

Shape scores_shape(const OpCall& call) {
  const Shape &q = call.in[0].shape, &k = call.in[1].shape;
  return {q[0], q[1], q[2], k[2]};
}

// Checks q, k, v and the mask. Returns their float type.
DType check_attention(const OpCall& call, size_t extra) {
  const DType dtype = common_float(call, {0, 1, 2});
  require_rank(call, 0, 4, "[B,H,T,D]");
  require_rank(call, 1, 4, "[B,H,S,D]");
  const Shape &q = call.in[0].shape, &k = call.in[1].shape;
  NETCL_CHECK(k[0] == q[0] && k[1] == q[1] && k[3] == q[3], ErrorCode::kUsage, "q is ", q.str(),
              " and k ", k.str(), ": batch, heads and features must be equal");
  NETCL_CHECK(call.in[2].shape == k, ErrorCode::kUsage, "v is ", call.in[2].shape.str(),
              ", and must have the shape of k, ", k.str());
  NETCL_CHECK(q[1] >= 0 && q[2] >= 0 && k[2] >= 0 && q[3] >= 1, ErrorCode::kUsage, "q is ", q.str(),
              " and k ", k.str(),
              ": only the first dimension may depend on the batch, and features must not be 0");
  const double scale = call.attrs.number("scale");
  NETCL_CHECK(std::isfinite(scale) && scale >= 0, ErrorCode::kUsage,
              "scale must be positive, or 0 for 1/sqrt(D); is ", scale);
  flag(call.attrs, "causal");
  if (const TensorDesc* mask = mask_of(call, extra)) check_mask(*mask, scores_shape(call));
  return dtype;
}

// dy, lse and delta of the backward ops.
DType check_backward(const OpCall& call) {
  const DType dtype = check_attention(call, 3);
  const Shape& q = call.in[0].shape;
  require_desc(call, 3, {dtype, q}, "gradient dy");
  require_desc(call, 4, {DType::kF32, {q[0], q[1], q[2]}}, "log-sum-exp");
  require_desc(call, 5, {DType::kF32, {q[0], q[1], q[2]}}, "delta");
  return dtype;
}

double scale_of(const OpCall& call) {
  const double scale = call.attrs.number("scale");
  return scale > 0 ? scale : 1 / std::sqrt(static_cast<double>(call.in[0].shape[3]));
}

// Element strides of the mask along [B,H,T,S]; 0 where it is stretched.
std::vector<int64_t> mask_strides(const TensorDesc& mask) {
  std::vector<int64_t> strides(4, 0);
  int64_t stride = 1;
  for (size_t i = 0; i < mask.shape.rank(); ++i) {
    const int64_t dim = mask.shape[mask.shape.rank() - 1 - i];
    if (dim != 1) strides[3 - i] = stride;
    stride *= dim;
  }
  return strides;
}

void attention_facts(const OpCall& call, size_t extra, Attrs& facts) {
  const Shape &q = call.in[0].shape, &k = call.in[1].shape;
  facts.set("heads", q[0] * q[1]);
  facts.set("H", q[1]);
  facts.set("T", q[2]);
  facts.set("S", k[2]);
  facts.set("D", q[3]);
  facts.set("factor", scale_of(call));
  const TensorDesc* mask = mask_of(call, extra);
  facts.set("has_mask", int64_t{mask != nullptr});
  facts.set("mask_dtype",
            std::string(dtype_name(mask != nullptr ? mask->dtype : call.in[0].dtype)));
  std::vector<int64_t> strides(NETCL_MAX_RANK, 0);
  if (mask != nullptr) {
    const std::vector<int64_t> own = mask_strides(*mask);
    std::copy(own.begin(), own.end(), strides.end() - 4);
  }
  facts.set("mask_strides", strides);
}

// ---- the reference: one query row at a time ----

struct Scores {
  Scores(const OpCall& call, const std::vector<const HostTensor*>& in, size_t extra)
      : heads(call.in[0].shape[1]),
        all_heads(call.in[0].shape[0] * heads),
        t(call.in[0].shape[2]),
        s(call.in[1].shape[2]),
        d(call.in[0].shape[3]),
        scale(scale_of(call)),
        causal(flag(call.attrs, "causal")),
        mask(in.size() > 3 + extra ? in[3 + extra] : nullptr),
        strides(mask != nullptr ? mask_strides(mask->desc) : std::vector<int64_t>()),
        data({in[0]->data.data(), in[1]->data.data(), in[2]->data.data()}) {}

  // The score of query i and key j of head h, -infinity where it is forbidden.
  double score(int64_t h, int64_t i, int64_t j) const {
    if (causal && j > i) return kMinusInfinity;
    const double sum = scale * dot(q(h, i), k(h, j));
    if (mask == nullptr) return sum;
    const double m = mask->data[static_cast<size_t>(
        h / heads * strides[0] + h % heads * strides[1] + i * strides[2] + j * strides[3])];
    if (mask->desc.dtype == DType::kBool) return m != 0 ? sum : kMinusInfinity;
    return sum + m;
  }
  double dot(const double* a, const double* b) const {
    double sum = 0;
    for (int64_t e = 0; e < d; ++e) sum += a[e] * b[e];
    return sum;
  }
  const double* q(int64_t h, int64_t i) const { return data[0] + (h * t + i) * d; }
  const double* k(int64_t h, int64_t j) const { return data[1] + (h * s + j) * d; }
  const double* v(int64_t h, int64_t j) const { return data[2] + (h * s + j) * d; }

  int64_t heads, all_heads, t, s, d;
  double scale;
  bool causal;
  const HostTensor* mask;
  std::vector<int64_t> strides;
  std::array<const double*, 3> data;
};

void attention_reference(const OpCall& call, const std::vector<const HostTensor*>& in,
                         std::vector<HostTensor>& out) {
  const Scores r(call, in, 0);
  std::fill(out[0].data.begin(), out[0].data.end(), 0.0);
  std::vector<double> scores(static_cast<size_t>(r.s));
  for (int64_t h = 0; h < r.all_heads; ++h) {
    for (int64_t i = 0; i < r.t; ++i) {
      double top = kMinusInfinity, sum = 0;
      for (int64_t j = 0; j < r.s; ++j) {
        scores[static_cast<size_t>(j)] = r.score(h, i, j);
        top = std::max(top, scores[static_cast<size_t>(j)]);
      }
      const auto row = static_cast<size_t>(h * r.t + i);
      out[1].data[row] = 0;
      if (top == kMinusInfinity) continue;  // nothing to attend to
      for (const double x : scores) sum += std::exp(x - top);
      out[1].data[row] = top + std::log(sum);
      for (int64_t j = 0; j < r.s; ++j) {
        const double p = std::exp(scores[static_cast<size_t>(j)] - out[1].data[row]);
        for (int64_t e = 0; e < r.d; ++e) {
          out[0].data[row * static_cast<size_t>(r.d) + static_cast<size_t>(e)] += p * r.v(h, j)[e];
        }
      }
    }
  }
}

// Calls f(h, i, j, p, ds) for every query, key and head: the probability and the gradient of the
// score.
template <typename F>
void for_each_score(const OpCall& call, const std::vector<const HostTensor*>& in, F f) {
  const Scores r(call, in, 3);
  for (int64_t h = 0; h < r.all_heads; ++h) {
    for (int64_t i = 0; i < r.t; ++i) {
      const auto row = static_cast<size_t>(h * r.t + i);
      for (int64_t j = 0; j < r.s; ++j) {
        const double p = std::exp(r.score(h, i, j) - in[4]->data[row]);
        f(r, h, i, j, p,
          p * (r.dot(in[3]->data.data() + (h * r.t + i) * r.d, r.v(h, j)) - in[5]->data[row]));
      }
    }
  }
}

void grad_q_reference(const OpCall& call, const std::vector<const HostTensor*>& in,
                      std::vector<HostTensor>& out) {
  std::fill(out[0].data.begin(), out[0].data.end(), 0.0);
  for_each_score(call, in,
                 [&](const Scores& r, int64_t h, int64_t i, int64_t j, double, double ds) {
                   double* dq = out[0].data.data() + (h * r.t + i) * r.d;
                   for (int64_t e = 0; e < r.d; ++e) dq[e] += r.scale * ds * r.k(h, j)[e];
                 });
}

void grad_kv_reference(const OpCall& call, const std::vector<const HostTensor*>& in,
                       std::vector<HostTensor>& out) {
  for (HostTensor& t : out) std::fill(t.data.begin(), t.data.end(), 0.0);
  for_each_score(call, in,
                 [&](const Scores& r, int64_t h, int64_t i, int64_t j, double p, double ds) {
                   const double* dy = in[3]->data.data() + (h * r.t + i) * r.d;
                   for (int64_t e = 0; e < r.d; ++e) {
                     const auto at = static_cast<size_t>((h * r.s + j) * r.d + e);
                     out[0].data[at] += r.scale * ds * r.q(h, i)[e];
                     out[1].data[at] += p * dy[e];
                   }
                 });
}

void grad_mask_reference(const OpCall& call, const std::vector<const HostTensor*>& in,
                         std::vector<HostTensor>& out) {
  for_each_score(call, in,
                 [&](const Scores& r, int64_t h, int64_t i, int64_t j, double, double ds) {
                   out[0].data[static_cast<size_t>((h * r.t + i) * r.s + j)] = ds;
                 });
}

// ---- gradient ----

ValueId as_f32(const GradCall& c, ValueId x) {
  if (c.recorder.desc(x).dtype == DType::kF32) return x;
  return c.recorder.call("cast", {x}, {{"dtype", std::string("f32")}});
}

// delta_i = sum_d dy_i y_i - dlse_i: what every score's gradient of row i is lessened by.
ValueId delta_of(const GradCall& c, ValueId dy) {
  const ValueId product = c.recorder.call("mul", {as_f32(c, dy), as_f32(c, c.node.out[0])});
  const ValueId sum =
      c.recorder.call("sum", {product}, {{"axes", std::vector<int64_t>{3}}, {"keep", int64_t{0}}});
  return c.dy[1] ? c.recorder.call("sub", {sum, *c.dy[1]}) : sum;
}

Grads attention_gradient(const GradCall& c) {
  const TensorDesc q = c.in_desc(0);
  const ValueId dy =
      c.dy[0]
          ? *c.dy[0]
          : c.recorder.call(
                "full", {},
                {{"shape", q.shape}, {"value", 0.0}, {"dtype", std::string(dtype_name(q.dtype))}});
  const ValueId delta = delta_of(c, dy);
  std::vector<ValueId> in = {c.node.in[0], c.node.in[1], c.node.in[2], dy, c.node.out[1], delta};
  const bool masked = c.node.in.size() == 4;
  if (masked) in.push_back(c.node.in[3]);
  Grads out(c.node.in.size());
  if (c.needed[0]) out[0] = c.recorder.call("sdpa_grad_q", in, c.node.attrs);
  if (c.needed[1] || c.needed[2]) {
    const std::vector<ValueId> both = c.recorder.apply("sdpa_grad_kv", in, c.node.attrs);
    out[1] = both[0];
    out[2] = both[1];
  }
  if (masked && c.needed[3]) {
    const Shape mask = c.in_desc(3).shape;
    out[3] = reduce_to(c.recorder, c.recorder.call("sdpa_grad_mask", in, c.node.attrs), mask);
  }
  return out;
}

// ---- cases ----

struct CaseShape {
  int64_t b, h, t, s, d;
  bool causal;
  double scale;
  DType mask_dtype;
  std::vector<Shape> mask;  // one or none
};

// Few different d, causal and mask kinds: each makes programs of its own.
std::vector<CaseShape> case_shapes() {
  return {{1, 1, 1, 1, 1, false, 0, DType::kF32, {}},
          {2, 1, 3, 5, 7, false, 0, DType::kF32, {}},
          {1, 2, 17, 17, 8, true, 0, DType::kF32, {}},
          {2, 2, 7, 19, 8, true, 0.5, DType::kF32, {}},
          {1, 1, 19, 7, 8, true, 0, DType::kF32, {}},
          {2, 2, 5, 18, 7, false, 0, DType::kF32, {{5, 18}}},
          {2, 3, 5, 3, 7, false, 0, DType::kF32, {{2, 1, 1, 3}}},
          {2, 2, 5, 6, 7, false, 0, DType::kBool, {{2, 1, 5, 6}}},
          {1, 2, 6, 6, 8, true, 0, DType::kBool, {{2, 6, 6}}},
          {2, 1, 3, 2, 7, false, 0, DType::kBool, {{2, 1, 1, 2}}},
          {1, 1, 67, 41, 33, false, 0, DType::kF32, {}},
          {0, 2, 3, 3, 8, true, 0, DType::kF32, {}},
          {1, 2, 0, 3, 7, false, 0, DType::kF32, {}},
          {1, 2, 3, 0, 7, false, 0, DType::kF32, {}}};
}

OpCase forward_case(const CaseShape& s) {
  OpCase c;
  const Shape q = {s.b, s.h, s.t, s.d}, k = {s.b, s.h, s.s, s.d};
  c.in = {{DType::kF32, q}, {DType::kF32, k}, {DType::kF32, k}};
  c.attrs = {{"causal", int64_t{s.causal}}, {"scale", s.scale}};
  c.tolerance = 1e-5;
  c.note = "sums of products inside of exponentials";
  if (!s.mask.empty()) {
    c.in.push_back({s.mask_dtype, s.mask[0]});
    c.int_high = {0, 0, 0, 2};
  }
  return c;
}

// lse lies high enough for probabilities below 1, as in a step.
OpCase backward_case(const CaseShape& s) {
  OpCase c = forward_case(s);
  const Shape rows = {s.b, s.h, s.t};
  c.in.insert(c.in.begin() + 3, {c.in[0], {DType::kF32, rows}, {DType::kF32, rows}});
  if (!s.mask.empty()) c.int_high = {0, 0, 0, 0, 0, 0, 2};
  std::vector<double> lse;
  for (int64_t i = 0; i < rows.num_elements(); ++i)
    lse.push_back(1.5 + 0.1 * static_cast<double>(i % 7));
  c.fixed = {{4, lse}};
  c.tolerance = 2e-5;
  return c;
}

OpRow attention_base(const std::string& name, size_t extra) {
  OpRow row;
  row.name = name;
  row.min_in = 3 + extra;
  row.max_in = 4 + extra;
  row.attrs = {{"causal", int64_t{0}}, {"scale", 0.0}};
  row.half_storage = true;
  row.autocast = Autocast::kLow;
  row.facts = [extra](const OpCall& call, Attrs& facts) { attention_facts(call, extra, facts); };
  for (const CaseShape& s : case_shapes()) {
    if (name == "sdpa_grad_mask" && s.mask.empty() && s.b > 0 && s.t > 0) continue;
    row.cases.push_back(extra == 0 ? forward_case(s) : backward_case(s));
  }
  if (extra > 0) row.always_f32 = {4, 5};
  return row;
}

OpRow grad_row(const std::string& name,
               std::function<std::vector<TensorDesc>(const OpCall&)> outputs,
               void (*reference)(const OpCall&, const std::vector<const HostTensor*>&,
                                 std::vector<HostTensor>&),
               const std::string& formula) {
  OpRow row = attention_base(name, 3);
  row.infer = [outputs = std::move(outputs)](const OpCall& call) {
    check_backward(call);
    return outputs(call);
  };
  row.reference = reference;
  row.doc = {formula + ", with p = exp(score - lse), ds = p (dy v^T - delta)", "", ""};
  return row;
}

}  // namespace

void add_attention_rows(std::vector<OpRow>& rows) {
  OpRow row = attention_base("scaled_dot_product_attention", 0);
  row.infer = [](const OpCall& call) -> std::vector<TensorDesc> {
    const DType dtype = check_attention(call, 0);
    const Shape& q = call.in[0].shape;
    return {{dtype, q}, {DType::kF32, {q[0], q[1], q[2]}}};
  };
  row.gradient = attention_gradient;
  row.reference = attention_reference;
  row.doc = {
      "y = softmax(scale q k^T + mask) v and lse, the log-sum-exp of each row of scores; a "
      "row that may attend to nothing gives 0",
      "sdpa_grad_q, sdpa_grad_kv and, for a trained mask, sdpa_grad_mask, from q, k, v and "
      "lse",
      "Vaswani et al., Attention is all you need, 2017; Dao et al., FlashAttention, 2022"};
  rows.push_back(std::move(row));
  rows.push_back(grad_row(
      "sdpa_grad_q", [](const OpCall& call) -> std::vector<TensorDesc> { return {call.in[0]}; },
      grad_q_reference, "dq = scale ds k"));
  rows.push_back(grad_row(
      "sdpa_grad_kv",
      [](const OpCall& call) -> std::vector<TensorDesc> {
        return {call.in[1], call.in[2]};
      },
      grad_kv_reference, "dk = scale ds^T q, dv = p^T dy"));
  rows.push_back(grad_row(
      "sdpa_grad_mask",
      [](const OpCall& call) -> std::vector<TensorDesc> {
        return {{call.in[0].dtype, scores_shape(call)}};
      },
      grad_mask_reference, "dmask = ds"));
}

}  // namespace netcl
