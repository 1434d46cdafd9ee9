#include "core/ops/elementwise.h"

#include <algorithm>

#include "core/base/error.h"
#include "core/ops/reference/iterate.h"

namespace netcl {

namespace {

bool holds(const std::vector<TensorDesc>& in, DType dtype);

// The type that an operation between these inputs yields: floats win over integers, f32 over 16-bit
// floats, i64 over the shorter integers, which give i32.
DType promoted(const std::vector<TensorDesc>& in) {
  const bool f16 = holds(in, DType::kF16), bf16 = holds(in, DType::kBF16);
  if (holds(in, DType::kF32) || (f16 && bf16)) return DType::kF32;
  if (f16) return DType::kF16;
  if (bf16) return DType::kBF16;
  return holds(in, DType::kI64) ? DType::kI64 : DType::kI32;
}

TensorDesc infer_elementwise(const OpCall& call, ElementwiseType type) {
  Shape shape = call.in[0].shape;
  for (size_t i = 1; i < call.in.size(); ++i) {
    shape = broadcast_shapes(shape, call.in[i].shape, "inputs");
  }
  if (type == ElementwiseType::kCompare) return {DType::kBool, shape};
  const DType dtype = promoted(call.in);
  NETCL_CHECK(type != ElementwiseType::kFloat || is_float(dtype), ErrorCode::kUsage,
              "needs a float input; cast the integers with cast(dtype=f32)");
  return {dtype, shape};
}

bool holds_float(const std::vector<TensorDesc>& in) {
  return std::any_of(in.begin(), in.end(), [](const TensorDesc& d) { return is_float(d.dtype); });
}

bool holds(const std::vector<TensorDesc>& in, DType dtype) {
  return std::any_of(in.begin(), in.end(), [=](const TensorDesc& d) { return d.dtype == dtype; });
}

// Output dimensions with the strides of all inputs, neighbours of equal pattern merged.
struct Pattern {
  std::vector<int64_t> dims;
  std::vector<std::vector<int64_t>> strides;  // per input, as long as dims
};

Pattern collapse(const std::vector<std::vector<int64_t>>& full, const Shape& out) {
  Pattern p;
  p.strides.resize(full.size());
  for (size_t d = 0; d < out.rank(); ++d) {
    if (out[d] == 1) continue;
    bool merge = !p.dims.empty();
    for (size_t i = 0; i < full.size() && merge; ++i) {
      merge = p.strides[i].back() == full[i][d] * out[d];
    }
    if (merge) {
      p.dims.back() *= out[d];
    } else {
      p.dims.push_back(out[d]);
    }
    for (size_t i = 0; i < full.size(); ++i) {
      if (merge) {
        p.strides[i].back() = full[i][d];
      } else {
        p.strides[i].push_back(full[i][d]);
      }
    }
  }
  return p;
}

std::vector<int64_t> right_aligned(const std::vector<int64_t>& values, int64_t fill) {
  std::vector<int64_t> out(NETCL_MAX_RANK, fill);
  std::copy(values.begin(), values.end(), out.end() - static_cast<int64_t>(values.size()));
  return out;
}

std::vector<double> parameter_values(const OpCall& call) {
  std::vector<double> p(2, 0.0);
  for (size_t i = 0; i < call.row.parameters.size(); ++i) {
    p[i] = call.attrs.number(call.row.parameters[i]);
  }
  return p;
}

}  // namespace

std::vector<int64_t> broadcast_strides(const OpCall& call, const Shape& out, size_t input) {
  const Shape& shape = call.in[input].shape;
  std::vector<int64_t> strides(out.rank(), 0);
  int64_t stride = 1;
  for (size_t i = 0; i < shape.rank(); ++i) {
    const int64_t dim = shape[shape.rank() - 1 - i];
    if (dim != 1) strides[out.rank() - 1 - i] = stride;
    stride *= dim;
  }
  return strides;
}

void access_facts(const Shape& out, const std::vector<std::vector<int64_t>>& strides, bool whole,
                  size_t most, Attrs& facts) {
  const Pattern pattern = collapse(strides, out);
  bool dense = whole && pattern.dims.size() <= 1;
  for (const std::vector<int64_t>& s : pattern.strides) dense = dense && (s.empty() || s[0] == 1);
  facts.set("mode", std::string(dense ? "dense" : "strided"));
  facts.set("inner", pattern.dims.empty() ? int64_t{1} : pattern.dims.back());
  facts.set("dims", right_aligned(pattern.dims, 1));
  for (size_t i = 0; i < most; ++i) {
    const std::vector<int64_t> own =
        i < pattern.strides.size() ? pattern.strides[i] : std::vector<int64_t>{};
    facts.set("strides" + std::to_string(i), right_aligned(own, 0));
    const int64_t step = own.empty() ? 0 : own.back();
    facts.set("step" + std::to_string(i), step == 0 || step == 1 ? step : int64_t{2});
  }
}

void elementwise_facts(const OpCall& call, const StrideRule& strides, Attrs& facts) {
  const TensorDesc out = call.row.infer(call)[0];
  const std::vector<double> p = parameter_values(call);
  const char* integer = holds(call.in, DType::kI64) ? "long" : "int";
  facts.set("expr", call.row.expression);
  facts.set("ctype", std::string(holds_float(call.in) ? "float" : integer));
  facts.set("p0", p[0]);
  facts.set("p1", p[1]);
  facts.set("n", out.shape.num_elements());
  std::vector<std::vector<int64_t>> full;
  bool whole = true;
  for (size_t i = 0; i < call.in.size(); ++i) {
    full.push_back(strides(call, out.shape, i));
    whole = whole && call.in[i].shape.num_elements() == out.shape.num_elements();
  }
  access_facts(out.shape, full, whole, 3, facts);
}

void elementwise_reference(const OpCall& call, const StrideRule& strides,
                           double (*eval)(const double* x, const double* p),
                           const std::vector<const HostTensor*>& in, std::vector<HostTensor>& out) {
  const std::vector<double> p = parameter_values(call);
  std::vector<std::vector<int64_t>> in_strides;
  for (size_t i = 0; i < in.size(); ++i) in_strides.push_back(strides(call, out[0].desc.shape, i));
  double x[3] = {0, 0, 0};
  for_each_strided(out[0].desc.shape, in_strides, [&](int64_t e, const std::vector<int64_t>& at) {
    for (size_t i = 0; i < in.size(); ++i) x[i] = in[i]->data[static_cast<size_t>(at[i])];
    out[0].data[static_cast<size_t>(e)] = eval(x, p.data());
  });
}

OpRow elementwise_row(ElementwiseSpec spec) {
  OpRow row;
  row.name = std::move(spec.name);
  row.family = "elementwise";
  row.half_storage = true;
  row.min_in = row.max_in = spec.num_in;
  row.expression = std::move(spec.expression);
  for (const AttrRule& rule : spec.attrs) row.parameters.push_back(rule.key);
  row.attrs = std::move(spec.attrs);
  row.infer = [type = spec.type](const OpCall& call) -> std::vector<TensorDesc> {
    return {infer_elementwise(call, type)};
  };
  row.facts = [](const OpCall& call, Attrs& facts) {
    elementwise_facts(call, broadcast_strides, facts);
  };
  row.gradient = std::move(spec.gradient);
  row.reference = [eval = spec.eval](const OpCall& call, const std::vector<const HostTensor*>& in,
                                     std::vector<HostTensor>& out) {
    elementwise_reference(call, broadcast_strides, eval, in, out);
  };
  row.cases = std::move(spec.cases);
  return row;
}

namespace {

OpCase make_case(const std::vector<Shape>& shapes, double low, double high, const Attrs& attrs,
                 const std::string& note) {
  OpCase c;
  for (const Shape& shape : shapes) c.in.push_back({DType::kF32, shape});
  c.attrs = attrs;
  c.low = low;
  c.high = high;
  c.note = note;
  return c;
}

}  // namespace

std::vector<OpCase> unary_cases(double low, double high, const std::string& note,
                                const Attrs& attrs) {
  std::vector<OpCase> out;
  for (const Shape& shape : {Shape{1}, Shape{}, Shape{7}, Shape{3, 5}, Shape{0, 3}, Shape{1031}}) {
    out.push_back(make_case({shape}, low, high, attrs, note));
  }
  return out;
}

std::vector<OpCase> pair_cases(double low, double high, const std::string& note,
                               const Attrs& attrs) {
  std::vector<OpCase> out;
  for (const Shape& shape : {Shape{1}, Shape{7}, Shape{3, 5}, Shape{0, 3}, Shape{1031}}) {
    out.push_back(make_case({shape, shape}, low, high, attrs, note));
  }
  return out;
}

std::vector<OpCase> binary_cases(double low, double high, const std::string& note) {
  const std::vector<std::pair<Shape, Shape>> shapes = {
      {{1}, {1}},         {{}, {2, 3}},
      {{7}, {7}},         {{13, 17}, {17}},
      {{5, 1}, {1, 3}},   {{3, 1, 5}, {4, 1}},
      {{17}, {2, 3, 17}}, {{2, 3, 4, 5}, {3, 1, 5}},
      {{0, 3}, {3}},      {{1}, {0}},
      {{1031}, {1031}},   {{1, 1, 1, 1, 2, 1, 3, 1}, {2, 1, 5}}};
  std::vector<OpCase> out;
  for (const auto& [a, b] : shapes) out.push_back(make_case({a, b}, low, high, {}, note));
  return out;
}

}  // namespace netcl
