// Rows of batch norm, in pieces, so that replicas can add up their sums in between:
// batch_norm_sums -> (all_reduce) -> batch_norm, and backward likewise. Sums, statistics and
// parameters are f32, whatever the type of x.
#include <algorithm>
#include <cmath>

#include "core/base/error.h"
#include "core/ops/checks.h"
#include "core/ops/gradients.h"
#include "core/ops/reduce.h"
#include "core/ops/rows.h"

namespace netcl {

namespace {

// x seen as [N, C, S].
struct ChannelView {
  explicit ChannelView(const Shape& shape) : N(shape[0]), C(shape[1]) {
    for (size_t d = 2; d < shape.rank(); ++d) S *= shape[d];
  }
  int64_t N, C, S = 1;
};

// Channels of input `x`, which must be [N,C,...].
int64_t channels_of(const OpCall& call, size_t x) {
  const Shape& shape = call.in[x].shape;
  NETCL_CHECK(shape.rank() >= 2 && shape[1] > 0, ErrorCode::kUsage, "input ", x,
              " must be [N,C,...] with a fixed number of channels C, is ", shape.str());
  return shape[1];
}

void require_channels(const OpCall& call, size_t i, int64_t size, const char* what) {
  require_desc(call, i, {DType::kF32, Shape{size}}, what);
}

void channel_facts(const OpCall& call, Attrs& facts) {
  const bool backward = call.row.name.find("_grad") != std::string::npos;
  const ChannelView v(call.in[backward ? 1 : 0].shape);
  facts.set("N", v.N);
  facts.set("C", v.C);
  facts.set("S", v.S);
}

template <typename F>
void for_each_element(const ChannelView& v, F f) {
  for (int64_t n = 0; n < v.N; ++n) {
    for (int64_t c = 0; c < v.C; ++c) {
      for (int64_t s = 0; s < v.S; ++s) {
        f(static_cast<size_t>(c), static_cast<size_t>((n * v.C + c) * v.S + s));
      }
    }
  }
}

struct Channel {
  double mean, rstd;
};

// Mean and reciprocal deviation that sums [2C+1] and shift [C] stand for; no elements: shift, 0.
Channel channel_stats(const HostTensor& sums, const HostTensor& shift, size_t c, double eps) {
  const size_t channels = shift.data.size();
  const double n = sums.data[2 * channels];
  const double d = n > 0 ? sums.data[c] / n : 0;
  const double var = n > 0 ? std::max(sums.data[channels + c] / n - d * d, 0.0) : 0;
  return {shift.data[c] + d, 1 / std::sqrt(var + eps)};
}

std::vector<Shape> shapes() {
  return {{1, 1},       {5, 7},        {13, 16},     {131, 9},    {3, 2, 5},
          {2, 3, 4, 5}, {2, 9, 3, 11}, {0, 4, 3, 3}, {3, 1, 137}, {0, 3}};
}

// Sums that could have come from n elements a channel, with variances well above 0.
std::vector<double> plausible_sums(const Shape& shape) {
  const ChannelView v(shape);
  const auto n = static_cast<double>(v.N * v.S);
  std::vector<double> sums;
  for (int64_t c = 0; c < v.C; ++c) sums.push_back(n * 0.125 * static_cast<double>(c % 5 - 2));
  for (int64_t c = 0; c < v.C; ++c) {
    const double d = n > 0 ? sums[static_cast<size_t>(c)] / n : 0;
    sums.push_back(n * (d * d + 0.5 + 0.25 * static_cast<double>(c % 3)));
  }
  sums.push_back(n);
  return sums;
}

OpCase case_of(const Shape& shape, size_t num_x, const std::vector<int64_t>& rest) {
  OpCase c;
  c.in.assign(num_x, {DType::kF32, shape});
  for (const int64_t size : rest) c.in.push_back({DType::kF32, {size}});
  return c;
}

OpRow sums_row() {
  OpRow row;
  row.name = "batch_norm_sums";
  row.min_in = row.max_in = 2;
  row.half_storage = true;
  row.always_f32 = {1};
  row.infer = [](const OpCall& call) -> std::vector<TensorDesc> {
    common_float(call, {0});
    const int64_t channels = channels_of(call, 0);
    require_channels(call, 1, channels, "shift");
    return {{DType::kF32, Shape{2 * channels + 1}}};
  };
  row.facts = channel_facts;
  row.reference = [](const OpCall& call, const std::vector<const HostTensor*>& in,
                     std::vector<HostTensor>& out) {
    const ChannelView v(call.in[0].shape);
    const auto channels = static_cast<size_t>(v.C);
    std::vector<double>& sums = out[0].data;
    std::fill(sums.begin(), sums.end(), 0);
    for_each_element(v, [&](size_t c, size_t i) {
      const double d = in[0]->data[i] - in[1]->data[c];
      sums[c] += d;
      sums[channels + c] += d * d;
    });
    sums[2 * channels] = static_cast<double>(v.N * v.S);
  };
  for (const Shape& shape : shapes()) row.cases.push_back(case_of(shape, 1, {shape[1]}));
  for (OpCase& c : row.cases) {
    c.tolerance = 2e-5;
    c.note = "sums of up to 137 terms, which may cancel";
  }
  row.doc = {
      "out[c] = sum(x - shift[c]), out[C+c] = sum((x - shift[c])^2), out[2C] = elements of a "
      "channel; batch_norm's gradient flows past it",
      "", ""};
  return row;
}

Grads batch_norm_gradient(const GradCall& c) {
  Recorder& r = c.recorder;
  const std::vector<ValueId> in = c.node.in;
  const double eps = c.node.attrs.number("eps");
  const ValueId dy = dy0(c);
  const std::vector<ValueId> sums =
      r.apply("batch_norm_grad_sums", {dy, in[0], in[1], in[2]}, {{"eps", eps}});
  ValueId total = sums[0];
  if (c.node.attrs.integer("sync") == 1) total = r.call("all_reduce", {total});
  Grads out(5);
  if (c.needed[0]) {
    out[0] =
        r.call("batch_norm_grad_input", {dy, in[0], in[1], in[2], in[3], total}, {{"eps", eps}});
  }
  out[3] = sums[2];
  out[4] = sums[1];
  return out;
}

OpRow forward_row() {
  OpRow row;
  row.name = "batch_norm";
  row.min_in = row.max_in = 5;
  row.half_storage = true;
  row.always_f32 = {1, 2, 3, 4};
  row.attrs = {{"eps", 1e-5}, {"sync", int64_t{0}}};
  row.infer = [](const OpCall& call) -> std::vector<TensorDesc> {
    common_float(call, {0});
    flag(call.attrs, "sync");
    const int64_t channels = channels_of(call, 0);
    require_channels(call, 1, 2 * channels + 1, "sums");
    require_channels(call, 2, channels, "shift");
    require_channels(call, 3, channels, "weight");
    require_channels(call, 4, channels, "bias");
    return {call.in[0]};
  };
  row.facts = channel_facts;
  row.gradient = batch_norm_gradient;
  row.gradient_through_others = true;
  row.reference = [](const OpCall& call, const std::vector<const HostTensor*>& in,
                     std::vector<HostTensor>& out) {
    const double eps = call.attrs.number("eps");
    for_each_element(ChannelView(call.in[0].shape), [&](size_t c, size_t i) {
      const Channel st = channel_stats(*in[1], *in[2], c, eps);
      out[0].data[i] = (in[0]->data[i] - st.mean) * st.rstd * in[3]->data[c] + in[4]->data[c];
    });
  };
  for (const Shape& shape : shapes()) {
    const int64_t channels = shape[1];
    OpCase c = case_of(shape, 1, {2 * channels + 1, channels, channels, channels});
    c.fixed = {{1, plausible_sums(shape)}};
    c.note = "sums that could have come from data";
    row.cases.push_back(c);
  }
  row.doc = {
      "y = (x - mean) / sqrt(var + eps) * weight[c] + bias[c], mean = shift + S1 / n, "
      "var = S2 / n - (S1 / n)^2",
      "complete dx = weight rstd (dy - sum(dy) / n - v sum(dy v) / n), v = (x - mean) rstd; "
      "with sync the sums are added up over the replicas; nothing for sums and shift",
      "Ioffe, Szegedy: Batch Normalization, ICML 2015"};
  return row;
}

OpRow grad_sums_row() {
  OpRow row;
  row.name = "batch_norm_grad_sums";
  row.min_in = row.max_in = 4;
  row.half_storage = true;
  row.always_f32 = {2, 3};
  row.attrs = {{"eps", 1e-5}};
  row.infer = [](const OpCall& call) -> std::vector<TensorDesc> {
    common_float(call, {0, 1});
    const int64_t channels = channels_of(call, 1);
    require_desc(call, 0, call.in[1], "output gradient");
    require_channels(call, 2, 2 * channels + 1, "sums");
    require_channels(call, 3, channels, "shift");
    const TensorDesc one{DType::kF32, Shape{channels}};
    return {{DType::kF32, Shape{2 * channels}}, one, one};
  };
  row.facts = channel_facts;
  row.reference = [](const OpCall& call, const std::vector<const HostTensor*>& in,
                     std::vector<HostTensor>& out) {
    const ChannelView v(call.in[1].shape);
    const auto channels = static_cast<size_t>(v.C);
    for (HostTensor& t : out) std::fill(t.data.begin(), t.data.end(), 0);
    for_each_element(v, [&](size_t c, size_t i) {
      const Channel st = channel_stats(*in[2], *in[3], c, call.attrs.number("eps"));
      out[0].data[c] += in[0]->data[i];
      out[0].data[channels + c] += in[0]->data[i] * (in[1]->data[i] - st.mean) * st.rstd;
    });
    for (size_t c = 0; c < channels; ++c) {
      out[1].data[c] = out[0].data[c];
      out[2].data[c] = out[0].data[channels + c];
    }
  };
  for (const Shape& shape : shapes()) {
    OpCase c = case_of(shape, 2, {2 * shape[1] + 1, shape[1]});
    c.fixed = {{2, plausible_sums(shape)}};
    c.tolerance = 2e-5;
    c.note = "sums of up to 137 terms, which may cancel";
    row.cases.push_back(c);
  }
  row.doc = {
      "outputs [sum dy, sum dy v] f32[2C], sum dy f32[C], sum dy v f32[C]; v = (x - mean) rstd", "",
      ""};
  return row;
}

OpRow grad_input_row() {
  OpRow row;
  row.name = "batch_norm_grad_input";
  row.min_in = row.max_in = 6;
  row.half_storage = true;
  row.always_f32 = {2, 3, 4, 5};
  row.attrs = {{"eps", 1e-5}};
  row.infer = [](const OpCall& call) -> std::vector<TensorDesc> {
    common_float(call, {0, 1});
    const int64_t channels = channels_of(call, 1);
    require_desc(call, 0, call.in[1], "output gradient");
    require_channels(call, 2, 2 * channels + 1, "sums");
    require_channels(call, 3, channels, "shift");
    require_channels(call, 4, channels, "weight");
    require_channels(call, 5, 2 * channels, "total");
    return {call.in[1]};
  };
  row.facts = channel_facts;
  row.reference = [](const OpCall& call, const std::vector<const HostTensor*>& in,
                     std::vector<HostTensor>& out) {
    const ChannelView v(call.in[1].shape);
    const auto channels = static_cast<size_t>(v.C);
    const double n = in[2]->data.back(), inverse = n > 0 ? 1 / n : 0;
    for_each_element(v, [&](size_t c, size_t i) {
      const Channel st = channel_stats(*in[2], *in[3], c, call.attrs.number("eps"));
      const double normal = (in[1]->data[i] - st.mean) * st.rstd;
      const double off = (in[5]->data[c] + normal * in[5]->data[channels + c]) * inverse;
      out[0].data[i] = in[4]->data[c] * st.rstd * (in[0]->data[i] - off);
    });
  };
  for (const Shape& shape : shapes()) {
    const int64_t channels = shape[1];
    OpCase c = case_of(shape, 2, {2 * channels + 1, channels, channels, 2 * channels});
    c.fixed = {{2, plausible_sums(shape)}};
    c.note = "sums that could have come from data";
    row.cases.push_back(c);
  }
  row.doc = {"dx = weight rstd (dy - total[c] / n - v total[C+c] / n), v = (x - mean) rstd", "",
             ""};
  return row;
}

// A channel's values as [C,1,...], to be broadcast against [N,C,...].
ValueId spread(Recorder& r, ValueId channel, size_t rank) {
  std::vector<int64_t> dims(rank - 1, 1);
  dims[0] = r.desc(channel).shape[0];
  return r.call("reshape", {channel}, {{"shape", Shape(dims)}});
}

Grads infer_gradient(const GradCall& c) {
  Recorder& r = c.recorder;
  const std::vector<ValueId> in = c.node.in;  // x, mean, var, weight, bias
  const size_t rank = c.in_desc(0).shape.rank();
  const ValueId dy = dy0(c);
  const ValueId eps_var = scaled(r, in[2], 1, c.node.attrs.number("eps"));
  const ValueId rstd = r.call("rsqrt", {eps_var});
  const ValueId slope = r.call("mul", {in[3], rstd});
  Grads out(5);
  if (c.needed[0]) out[0] = r.call("mul", {dy, spread(r, slope, rank)});
  if (!c.needed[1] && !c.needed[2] && !c.needed[3] && !c.needed[4]) return out;
  const Shape channels = r.desc(in[3]).shape;
  const auto summed = [&](ValueId v) {
    const ValueId wide = r.call("cast", {v}, {{"dtype", std::string("f32")}});
    std::vector<int64_t> axes;
    for (size_t d = 0; d < rank; ++d) {
      if (d != 1) axes.push_back(static_cast<int64_t>(d));
    }
    const ValueId kept = reduce(r, "sum", wide, axes, false);
    return r.call("reshape", {kept}, {{"shape", channels}});
  };
  const ValueId dbias = summed(dy);
  out[4] = dbias;
  out[1] = r.call("neg", {r.call("mul", {slope, dbias})});
  if (!c.needed[2] && !c.needed[3]) return out;
  const ValueId centred = r.call("sub", {in[0], spread(r, in[1], rank)});
  const ValueId dweight = r.call("mul", {summed(r.call("mul", {dy, centred})), rstd});
  out[3] = dweight;
  const ValueId over = r.call("mul", {slope, rstd});  // d rstd / d var = -rstd^3 / 2
  out[2] = scaled(r, r.call("mul", {over, dweight}), -0.5);
  return out;
}

OpRow infer_row() {
  OpRow row;
  row.name = "batch_norm_infer";
  row.min_in = row.max_in = 5;
  row.half_storage = true;
  row.always_f32 = {1, 2, 3, 4};
  row.attrs = {{"eps", 1e-5}};
  row.infer = [](const OpCall& call) -> std::vector<TensorDesc> {
    common_float(call, {0});
    const int64_t channels = channels_of(call, 0);
    const char* const names[] = {"mean", "variance", "weight", "bias"};
    for (size_t i = 1; i < 5; ++i) require_channels(call, i, channels, names[i - 1]);
    return {call.in[0]};
  };
  row.facts = channel_facts;
  row.gradient = infer_gradient;
  row.reference = [](const OpCall& call, const std::vector<const HostTensor*>& in,
                     std::vector<HostTensor>& out) {
    const double eps = call.attrs.number("eps");
    for_each_element(ChannelView(call.in[0].shape), [&](size_t c, size_t i) {
      const double rstd = 1 / std::sqrt(in[2]->data[c] + eps);
      out[0].data[i] = (in[0]->data[i] - in[1]->data[c]) * rstd * in[3]->data[c] + in[4]->data[c];
    });
  };
  for (const Shape& shape : shapes()) {
    OpCase c = case_of(shape, 1, std::vector<int64_t>(4, shape[1]));
    c.low = 0.5;
    c.high = 2;
    c.tolerance = 2e-5;
    c.note = "variances above 0; parameter gradients are sums of up to 137 terms";
    row.cases.push_back(c);
  }
  row.doc = {"y = (x - mean[c]) / sqrt(var[c] + eps) * weight[c] + bias[c]",
             "all five inputs, composed of elementwise ops and sums", ""};
  return row;
}

OpRow running_row() {
  OpRow row;
  row.name = "batch_norm_running";
  row.min_in = row.max_in = 3;
  row.attrs = {{"momentum", 0.1}};
  row.infer = [](const OpCall& call) -> std::vector<TensorDesc> {
    NETCL_CHECK(call.in[1].shape.rank() == 1, ErrorCode::kUsage, "the shift must be f32[C], is ",
                call.in[1].str());
    const int64_t channels = call.in[1].shape[0];
    require_channels(call, 0, 2 * channels + 1, "sums");
    require_channels(call, 1, channels, "shift");
    require_channels(call, 2, channels, "variance");
    return {call.in[1], call.in[2]};
  };
  row.facts = [](const OpCall& call, Attrs& facts) { facts.set("C", call.in[1].shape[0]); };
  row.reference = [](const OpCall& call, const std::vector<const HostTensor*>& in,
                     std::vector<HostTensor>& out) {
    const double momentum = call.attrs.number("momentum");
    const size_t channels = in[1]->data.size();
    const double n = in[0]->data[2 * channels];
    for (size_t c = 0; c < channels; ++c) {
      const double d = n >= 1 ? in[0]->data[c] / n : 0, old = in[2]->data[c];
      out[0].data[c] = in[1]->data[c] + momentum * d;
      out[1].data[c] = old;
      if (n < 2) continue;
      const double var = std::max(in[0]->data[channels + c] / n - d * d, 0.0) * n / (n - 1);
      out[1].data[c] += momentum * (var - old);
    }
  };
  for (const Shape& shape : shapes()) {
    OpCase c = case_of({shape[1]}, 0, {2 * shape[1] + 1, shape[1], shape[1]});
    c.attrs = {{"momentum", 0.25}};
    c.fixed = {{0, plausible_sums(shape)}};
    c.note = "sums that could have come from data";
    row.cases.push_back(c);
  }
  row.cases.push_back(case_of({0}, 0, {1, 0, 0}));
  row.doc = {
      "mean' = shift + momentum S1 / n; var' = var + momentum (unbiased variance - var); no "
      "elements leave both, one leaves the variance",
      "", ""};
  return row;
}

}  // namespace

void add_batch_norm_rows(std::vector<OpRow>& rows) {
  rows.push_back(sums_row());
  rows.push_back(forward_row());
  rows.push_back(grad_sums_row());
  rows.push_back(grad_input_row());
  rows.push_back(infer_row());
  rows.push_back(running_row());
}

}  // namespace netcl
