// Rows of layer_norm, rms_norm, group_norm and their backward ops. Statistics are computed and kept
// in f32, whatever the type of x; weight and bias are f32. The backward ops serve all three: `dims`
// last dimensions are normalised together, or, if dims is 0, groups of channels of [N,C,...].
#include <cmath>

#include "core/base/error.h"
#include "core/ops/checks.h"
#include "core/ops/gradients.h"
#include "core/ops/rows.h"

namespace netcl {

namespace {

// x seen as [N, C, S]; row (n, g) of [N, G, C / G * S] is normalised, channel c has weight[c].
struct NormView {
  int64_t N = 1, C = 1, S = 1, G = 1;
  int64_t row() const { return C / G * S; }
};

int64_t integer_or(const Attrs& attrs, const char* key, int64_t other) {
  return attrs.has(key) ? attrs.integer(key) : other;
}

// Last dimensions that are normalised together; 0: groups of channels.
size_t dims_of(const Attrs& attrs) { return static_cast<size_t>(integer_or(attrs, "dims", 0)); }
bool is_rms(const OpCall& call) {
  return call.row.name == "rms_norm" || integer_or(call.attrs, "rms", 0) == 1;
}

NormView view_of(const Shape& shape, const Attrs& attrs) {
  NormView v;
  const size_t dims = dims_of(attrs);
  if (dims == 0) {
    v.N = shape[0];
    v.C = shape[1];
    for (size_t d = 2; d < shape.rank(); ++d) v.S *= shape[d];
    v.G = integer_or(attrs, "groups", 1);
    return v;
  }
  for (size_t d = 0; d < shape.rank(); ++d) (d + dims < shape.rank() ? v.N : v.C) *= shape[d];
  return v;
}

// Shape of weight and bias: the normalised dimensions, or the channels.
Shape weight_shape(const Shape& shape, const Attrs& attrs) {
  const size_t dims = dims_of(attrs);
  if (dims == 0) return Shape{shape[1]};
  return Shape(
      std::vector<int64_t>(shape.dims().end() - static_cast<ptrdiff_t>(dims), shape.dims().end()));
}

Shape stats_shape(const Shape& shape, const Attrs& attrs) {
  const size_t dims = dims_of(attrs);
  if (dims == 0) return Shape{shape[0], integer_or(attrs, "groups", 1), 2};
  std::vector<int64_t> out(shape.dims().begin(), shape.dims().end() - static_cast<ptrdiff_t>(dims));
  out.push_back(2);
  return Shape(std::move(out));
}

// Checks input `x` against the attributes.
void check_view(const OpCall& call, size_t x) {
  const Shape& shape = call.in[x].shape;
  const auto rank = static_cast<int64_t>(shape.rank());
  size_t first = shape.rank() - dims_of(call.attrs);
  if (call.attrs.has("dims"))
    integer_in(call.attrs, "dims", call.attrs.has("groups") ? 0 : 1, rank);
  if (dims_of(call.attrs) == 0) {
    NETCL_CHECK(rank >= 2, ErrorCode::kUsage, "input ", x, " must be [N,C,...], is ", shape.str());
    const int64_t groups = integer_in(call.attrs, "groups", 1, std::max<int64_t>(1, shape[1]));
    NETCL_CHECK(shape[1] > 0 && shape[1] % groups == 0, ErrorCode::kUsage, "the ", shape[1],
                " channels of ", shape.str(), " do not divide into ", groups,
                " groups; choose a divisor");
    first = 1;
  }
  for (size_t d = first; d < shape.rank(); ++d) {
    NETCL_CHECK(shape[d] > 0, ErrorCode::kUsage, "dimension ", d, " of ", shape.str(),
                " is normalised and must be a fixed number above 0");
  }
}

void norm_facts(const OpCall& call, Attrs& facts) {
  const bool backward = call.row.name == "norm_grad_input" || call.row.name == "norm_grad_params";
  const NormView v = view_of(call.in[backward ? 1 : 0].shape, call.attrs);
  facts.set("N", v.N);
  facts.set("C", v.C);
  facts.set("S", v.S);
  facts.set("G", v.G);
}

struct Stats {
  double mean, rstd;
};

Stats row_stats(const double* x, const NormView& v, double eps, bool rms) {
  const auto count = static_cast<size_t>(v.row());
  double mean = 0, squares = 0;
  if (!rms) {
    for (size_t j = 0; j < count; ++j) mean += x[j];
    mean /= static_cast<double>(count);
  }
  for (size_t j = 0; j < count; ++j) squares += (x[j] - mean) * (x[j] - mean);
  return {mean, 1 / std::sqrt(squares / static_cast<double>(count) + eps)};
}

// Calls f(row, channel, element) for every element of x.
template <typename F>
void for_each_element(const NormView& v, F f) {
  for (int64_t n = 0; n < v.N; ++n) {
    for (int64_t c = 0; c < v.C; ++c) {
      for (int64_t s = 0; s < v.S; ++s) {
        f(static_cast<size_t>(n * v.G + c / (v.C / v.G)), static_cast<size_t>(c),
          static_cast<size_t>((n * v.C + c) * v.S + s));
      }
    }
  }
}

void norm_reference(const OpCall& call, const std::vector<const HostTensor*>& in,
                    std::vector<HostTensor>& out) {
  const NormView v = view_of(call.in[0].shape, call.attrs);
  const double* x = in[0]->data.data();
  std::vector<Stats> stats;
  for (int64_t r = 0; r < v.N * v.G; ++r) {
    stats.push_back(row_stats(x + r * v.row(), v, call.attrs.number("eps"), is_rms(call)));
  }
  for_each_element(v, [&](size_t row, size_t c, size_t i) {
    const double weight = in.size() > 1 ? in[1]->data[c] : 1;
    const double bias = in.size() > 2 ? in[2]->data[c] : 0;
    out[0].data[i] = (x[i] - stats[row].mean) * stats[row].rstd * weight + bias;
  });
}

void stats_reference(const OpCall& call, const std::vector<const HostTensor*>& in,
                     std::vector<HostTensor>& out) {
  const NormView v = view_of(call.in[0].shape, call.attrs);
  for (int64_t r = 0; r < v.N * v.G; ++r) {
    const Stats st =
        row_stats(in[0]->data.data() + r * v.row(), v, call.attrs.number("eps"), is_rms(call));
    out[0].data[static_cast<size_t>(2 * r)] = st.mean;
    out[0].data[static_cast<size_t>(2 * r + 1)] = st.rstd;
  }
}

void grad_input_reference(const OpCall& call, const std::vector<const HostTensor*>& in,
                          std::vector<HostTensor>& out) {
  const NormView v = view_of(call.in[1].shape, call.attrs);
  const std::vector<double>&dy = in[0]->data, &x = in[1]->data, &stats = in[2]->data;
  const auto weighted = [&](size_t c, size_t i) {
    return dy[i] * (in.size() > 3 ? in[3]->data[c] : 1);
  };
  const auto normal = [&](size_t row, size_t i) {
    return (x[i] - stats[2 * row]) * stats[2 * row + 1];
  };
  std::vector<double> sums(static_cast<size_t>(v.N * v.G)), dots(sums.size());
  const auto count = static_cast<double>(v.row());
  for_each_element(v, [&](size_t row, size_t c, size_t i) {
    if (!is_rms(call)) sums[row] += weighted(c, i) / count;
    dots[row] += weighted(c, i) * normal(row, i) / count;
  });
  for_each_element(v, [&](size_t row, size_t c, size_t i) {
    out[0].data[i] = stats[2 * row + 1] * (weighted(c, i) - sums[row] - normal(row, i) * dots[row]);
  });
}

void grad_params_reference(const OpCall& call, const std::vector<const HostTensor*>& in,
                           std::vector<HostTensor>& out) {
  const NormView v = view_of(call.in[1].shape, call.attrs);
  const std::vector<double>&dy = in[0]->data, &x = in[1]->data, &stats = in[2]->data;
  for (HostTensor& t : out) std::fill(t.data.begin(), t.data.end(), 0);
  for_each_element(v, [&](size_t row, size_t c, size_t i) {
    out[0].data[c] += dy[i] * (x[i] - stats[2 * row]) * stats[2 * row + 1];
    out[1].data[c] += dy[i];
  });
}

Grads norm_gradient(const GradCall& c) {
  const Attrs& given = c.node.attrs;
  const int64_t rms = c.node.op->name == "rms_norm";
  Attrs attrs{{"dims", integer_or(given, "dims", 0)},
              {"groups", integer_or(given, "groups", 1)},
              {"rms", rms}};
  Attrs with_eps = attrs;
  with_eps.set("eps", given.number("eps"));
  Recorder& r = c.recorder;
  const ValueId x = c.node.in[0], dy = dy0(c);
  const ValueId stats = r.call("norm_stats", {x}, with_eps);
  Grads out(c.node.in.size());
  if (c.needed[0]) {
    std::vector<ValueId> operands = {dy, x, stats};
    if (c.node.in.size() > 1) operands.push_back(c.node.in[1]);
    out[0] = r.call("norm_grad_input", operands, attrs);
  }
  const bool weight = c.node.in.size() > 1 && c.needed[1];
  const bool bias = c.node.in.size() > 2 && c.needed[2];
  if (weight || bias) {
    const std::vector<ValueId> grads = r.apply("norm_grad_params", {dy, x, stats}, attrs);
    if (weight) out[1] = grads[0];
    if (bias) out[2] = grads[1];
  }
  return out;
}

struct Form {
  Shape shape;
  int64_t dims, groups;
};

std::vector<Form> layer_forms() {
  return {{{1, 1}, 1, 1},   {{1, 7}, 1, 1},     {{5, 16}, 1, 1},
          {{13, 17}, 1, 1}, {{2, 3, 37}, 1, 1}, {{3, 4, 5}, 2, 1},
          {{0, 8}, 1, 1},   {{3, 1031}, 1, 1},  {{131, 9}, 1, 1}};
}
std::vector<Form> group_forms() {
  return {{{1, 2}, 0, 1},       {{3, 6}, 0, 3},        {{2, 6, 5, 7}, 0, 2}, {{2, 4, 13}, 0, 4},
          {{0, 4, 3, 3}, 0, 2}, {{2, 8, 3, 11}, 0, 1}, {{5, 3, 2}, 0, 3}};
}

// `inputs` are the forms of what comes with x; eps is large enough that rows of one element stay
// away from a division by nearly nothing.
OpRow norm_row(const std::string& name, size_t max_in, const char* form_key) {
  OpRow row;
  row.name = name;
  row.min_in = 1;
  row.max_in = max_in;
  row.half_storage = true;
  row.always_f32 = {1, 2};
  const bool groups = std::string(form_key) == "groups";
  row.attrs = {{form_key, groups ? std::optional<Attrs::Item>() : Attrs::Item(int64_t{1})},
               {"eps", 1e-5}};
  row.infer = [](const OpCall& call) -> std::vector<TensorDesc> {
    common_float(call, {0});
    check_view(call, 0);
    const TensorDesc weight{DType::kF32, weight_shape(call.in[0].shape, call.attrs)};
    if (call.in.size() > 1) require_desc(call, 1, weight, "weight");
    if (call.in.size() > 2) require_desc(call, 2, weight, "bias");
    return {call.in[0]};
  };
  row.facts = norm_facts;
  row.gradient = norm_gradient;
  row.reference = norm_reference;
  for (const Form& f : groups ? group_forms() : layer_forms()) {
    for (size_t n = 1; n <= max_in; ++n) {
      if (n < max_in && f.shape[0] < 2) continue;
      OpCase c;
      c.attrs = {{form_key, groups ? f.groups : f.dims}, {"eps", 1e-2}};
      const TensorDesc weight{DType::kF32, weight_shape(f.shape, c.attrs)};
      c.in.assign(n, weight);
      c.in[0] = {DType::kF32, f.shape};
      c.low = -2;
      c.high = 2;
      c.note = "an eps that keeps rows of one or two elements away from a pole";
      row.cases.push_back(c);
    }
  }
  return row;
}

// A backward op; `num_with_x` inputs have the shape of x, the statistics follow, then the weight.
OpRow backward_row(const std::string& name, size_t min_in, size_t max_in) {
  OpRow row;
  row.name = name;
  row.min_in = min_in;
  row.max_in = max_in;
  row.half_storage = true;
  row.always_f32 = {2, 3};
  row.attrs = {{"dims", int64_t{1}}, {"groups", int64_t{1}}, {"rms", int64_t{0}}};
  const bool stats_only = name == "norm_stats";
  if (stats_only) row.attrs.push_back({"eps", 1e-5});
  row.facts = norm_facts;
  row.infer = [stats_only](const OpCall& call) -> std::vector<TensorDesc> {
    flag(call.attrs, "rms");
    const size_t x = stats_only ? 0 : 1;
    if (stats_only) {
      common_float(call);
    } else {
      common_float(call, {0, 1});
    }
    check_view(call, x);
    const Shape& shape = call.in[x].shape;
    const TensorDesc stats{DType::kF32, stats_shape(shape, call.attrs)};
    if (stats_only) return {stats};
    require_desc(call, 0, call.in[1], "output gradient");
    require_desc(call, 2, stats, "statistics");
    const TensorDesc weight{DType::kF32, weight_shape(shape, call.attrs)};
    if (call.row.name == "norm_grad_params") return {weight, weight};
    if (call.in.size() > 3) require_desc(call, 3, weight, "weight");
    return {call.in[1]};
  };
  for (const std::vector<Form>& forms : {layer_forms(), group_forms()}) {
    for (const Form& f : forms) {
      for (const int64_t rms : {0, 1}) {
        if (rms == 1 && f.dims == 0) continue;
        OpCase c;
        c.attrs = {{"dims", f.dims}, {"groups", f.groups}, {"rms", rms}};
        if (stats_only) c.attrs.set("eps", 1e-2);
        const TensorDesc stats{DType::kF32, stats_shape(f.shape, c.attrs)};
        const TensorDesc weight{DType::kF32, weight_shape(f.shape, c.attrs)};
        const std::vector<TensorDesc> all = {
            {DType::kF32, f.shape}, {DType::kF32, f.shape}, stats, weight};
        const size_t n = max_in == 4 && rms == 0 && f.shape[0] == 3 ? 3 : max_in;
        c.in.assign(all.begin(), all.begin() + static_cast<ptrdiff_t>(n));
        row.cases.push_back(c);
      }
    }
  }
  return row;
}

}  // namespace

void add_norm_rows(std::vector<OpRow>& rows) {
  OpRow layer = norm_row("layer_norm", 3, "dims");
  layer.doc = {"y = (x - mean) / sqrt(var + eps) * weight + bias over the last `dims` dimensions",
               "norm_grad_input and norm_grad_params with recomputed statistics",
               "Ba, Kiros, Hinton: Layer Normalization, 2016"};
  rows.push_back(std::move(layer));
  OpRow rms = norm_row("rms_norm", 2, "dims");
  rms.doc = {"y = x / sqrt(mean(x^2) + eps) * weight over the last `dims` dimensions",
             "norm_grad_input and norm_grad_params with recomputed statistics",
             "Zhang, Sennrich: Root Mean Square Layer Normalization, NeurIPS 2019"};
  rows.push_back(std::move(rms));
  OpRow group = norm_row("group_norm", 3, "groups");
  group.doc = {"y = (x - mean) / sqrt(var + eps) * weight[c] + bias[c] over groups of channels",
               "norm_grad_input and norm_grad_params with recomputed statistics",
               "Wu, He: Group Normalization, ECCV 2018"};
  rows.push_back(std::move(group));

  OpRow stats = backward_row("norm_stats", 1, 1);
  stats.reference = stats_reference;
  stats.doc = {"mean (0 if rms) and 1 / sqrt(var + eps) of every normalised row", "", ""};
  rows.push_back(std::move(stats));
  OpRow input = backward_row("norm_grad_input", 3, 4);
  input.reference = grad_input_reference;
  input.doc = {
      "h = dy w, v = (x - mean) rstd, dx = rstd (h - mean(h) - v mean(h v)); no mean(h) if rms", "",
      ""};
  rows.push_back(std::move(input));
  OpRow params = backward_row("norm_grad_params", 3, 3);
  params.reference = grad_params_reference;
  params.doc = {"dweight = sum dy (x - mean) rstd, dbias = sum dy, over all rows and positions", "",
                ""};
  rows.push_back(std::move(params));
}

}  // namespace netcl
