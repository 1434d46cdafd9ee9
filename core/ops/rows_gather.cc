// Rows that pick elements by index tensors: gather and scatter_add, index_select, embedding and
// their gradients, one_hot. An index outside of its range yields not-a-number (0 for integers), so
// that a broken data set is seen; in the gradients it contributes nothing.
#include <algorithm>
#include <limits>
#include <tuple>

#include "core/base/error.h"
#include "core/ops/checks.h"
#include "core/ops/gradients.h"
#include "core/ops/reduce.h"
#include "core/ops/rows.h"

namespace netcl {

namespace {

using Ints = std::vector<int64_t>;

void require_indices(const OpCall& call, size_t i) {
  NETCL_CHECK(call.in[i].dtype == DType::kI32, ErrorCode::kUsage, "the indices must be i32, are ",
              call.in[i].str(), "; cast them with cast(dtype=i32)");
}

// The axis counted from the front, of input 0.
int64_t axis_of(const OpCall& call) {
  const size_t rank = call.in[0].shape.rank();
  NETCL_CHECK(rank > 0, ErrorCode::kUsage, "needs a tensor with an axis");
  return normal_axes({call.attrs.integer("axis")}, rank)[0];
}

int64_t fixed_axis_of(const OpCall& call) {
  const int64_t axis = axis_of(call);
  NETCL_CHECK(call.in[0].shape[static_cast<size_t>(axis)] >= 0, ErrorCode::kUsage, "axis ", axis,
              " of ", call.in[0].shape.str(), " depends on the batch size; choose another");
  return axis;
}

double missing(DType dtype) {
  return is_float(dtype) ? std::numeric_limits<double>::quiet_NaN() : 0.0;
}

// The value of input `i` at `at`, as an index; -1 if outside of [0, rows).
int64_t index_at(const HostTensor& indices, int64_t at, int64_t rows) {
  const auto index = static_cast<int64_t>(indices.data[static_cast<size_t>(at)]);
  return index >= 0 && index < rows ? index : -1;
}

void four_facts(Attrs& facts, int64_t outer, int64_t rows, int64_t count, int64_t inner) {
  facts.set("outer", outer);
  facts.set("rows", rows);
  facts.set("count", count);
  facts.set("inner", inner);
}

// ---- gather and scatter_add: one index an element ----

// Input 0 seen as [outer, reduce, inner] around the axis, input 1 with another length along it.
void check_gather(const OpCall& call) {
  require_indices(call, 1);
  const auto axis = static_cast<size_t>(fixed_axis_of(call));
  const Shape &x = call.in[0].shape, &index = call.in[1].shape;
  Shape want = x;
  if (index.rank() == x.rank()) want[axis] = index[axis];
  NETCL_CHECK(index == want && index[axis] >= 0, ErrorCode::kUsage, "the indices ", index.str(),
              " must have the shape of x, ", x.str(), ", but for axis ", axis);
}

OpRow gather_row() {
  OpRow row;
  row.name = "gather";
  row.min_in = row.max_in = 2;
  row.attrs = {{"axis", std::nullopt}};
  row.half_storage = true;
  row.infer = [](const OpCall& call) -> std::vector<TensorDesc> {
    check_gather(call);
    return {{call.in[0].dtype, call.in[1].shape}};
  };
  row.facts = [](const OpCall& call, Attrs& facts) {
    const int64_t axis = axis_of(call);
    const ReduceSpan x = span_of(call.in[0].shape, {axis});
    four_facts(facts, x.outer, x.reduce, call.in[1].shape[static_cast<size_t>(axis)], x.inner);
  };
  row.gradient = [](const GradCall& c) -> Grads {
    const Shape x = c.in_desc(0).shape;
    const int64_t attr = c.node.attrs.integer("axis");
    const int64_t axis = attr < 0 ? attr + static_cast<int64_t>(x.rank()) : attr;
    return {c.recorder.call("scatter_add", {dy0(c), c.node.in[1]},
                            {{"axis", axis}, {"size", x[static_cast<size_t>(axis)]}}),
            std::nullopt};
  };
  row.reference = [](const OpCall& call, const std::vector<const HostTensor*>& in,
                     std::vector<HostTensor>& out) {
    const int64_t axis = axis_of(call);
    const ReduceSpan x = span_of(call.in[0].shape, {axis});
    const int64_t count = call.in[1].shape[static_cast<size_t>(axis)];
    for (int64_t e = 0; e < x.outer * count * x.inner; ++e) {
      const int64_t o = e / (count * x.inner), i = e % x.inner;
      const int64_t index = index_at(*in[1], e, x.reduce);
      out[0].data[static_cast<size_t>(e)] =
          index < 0 ? missing(call.in[0].dtype)
                    : in[0]->data[static_cast<size_t>((o * x.reduce + index) * x.inner + i)];
    }
  };
  row.doc = {"y[o,c,i] = x[o,index[o,c,i],i]", "dx = scatter_add(dy, index)", ""};
  const auto add = [&row](DType dtype, const Shape& x, const Shape& index, int64_t axis) {
    OpCase c;
    c.in = {{dtype, x}, {DType::kI32, index}};
    c.int_high = {100,
                  x[static_cast<size_t>(axis < 0 ? axis + static_cast<int64_t>(x.rank()) : axis)]};
    c.attrs = {{"axis", axis}};
    row.cases.push_back(std::move(c));
  };
  add(DType::kF32, {1}, {1}, 0);
  add(DType::kF32, {7}, {13}, 0);
  add(DType::kF32, {13, 17}, {13, 1}, 1);
  add(DType::kF32, {13, 17}, {29, 17}, 0);
  add(DType::kF32, {2, 5, 3}, {2, 7, 3}, -2);
  add(DType::kF32, {0, 5}, {0, 3}, 1);
  add(DType::kF32, {3, 5}, {3, 0}, 1);
  add(DType::kI32, {3, 5}, {3, 7}, 1);
  return row;
}

OpRow scatter_add_row() {
  OpRow row;
  row.name = "scatter_add";
  row.min_in = row.max_in = 2;
  row.attrs = {{"axis", std::nullopt}, {"size", std::nullopt}};
  row.half_storage = true;
  row.infer = [](const OpCall& call) -> std::vector<TensorDesc> {
    const DType dtype = common_float(call, {0});
    require_indices(call, 1);
    NETCL_CHECK(call.in[1].shape == call.in[0].shape, ErrorCode::kUsage, "the indices ",
                call.in[1].shape.str(), " must have the shape of x, ", call.in[0].shape.str());
    Shape shape = call.in[0].shape;
    const auto axis = static_cast<size_t>(fixed_axis_of(call));
    shape[axis] = integer_in(call.attrs, "size", 0, 0x7fffffff);
    return {{dtype, shape}};
  };
  row.facts = [](const OpCall& call, Attrs& facts) {
    const ReduceSpan x = span_of(call.in[0].shape, {axis_of(call)});
    four_facts(facts, x.outer, call.attrs.integer("size"), x.reduce, x.inner);
  };
  row.gradient = [](const GradCall& c) -> Grads {
    return {
        c.recorder.call("gather", {dy0(c), c.node.in[1]}, {{"axis", c.node.attrs.integer("axis")}}),
        std::nullopt};
  };
  row.reference = [](const OpCall& call, const std::vector<const HostTensor*>& in,
                     std::vector<HostTensor>& out) {
    const ReduceSpan x = span_of(call.in[0].shape, {axis_of(call)});
    const int64_t size = call.attrs.integer("size");
    std::fill(out[0].data.begin(), out[0].data.end(), 0.0);
    for (int64_t e = 0; e < x.outer * x.reduce * x.inner; ++e) {
      const int64_t o = e / (x.reduce * x.inner), i = e % x.inner;
      const int64_t index = index_at(*in[1], e, size);
      if (index < 0) continue;
      out[0].data[static_cast<size_t>((o * size + index) * x.inner + i)] +=
          in[0]->data[static_cast<size_t>(e)];
    }
  };
  row.doc = {"y[o,r,i] = sum of x[o,c,i] over the c with index[o,c,i] = r",
             "dx = gather(dy, index)", ""};
  const auto add = [&row](const Shape& x, int64_t axis, int64_t size) {
    OpCase c;
    c.in = {{DType::kF32, x}, {DType::kI32, x}};
    c.int_high = {0, size};
    c.attrs = {{"axis", axis}, {"size", size}};
    row.cases.push_back(std::move(c));
  };
  add({1}, 0, 1);
  add({13}, 0, 7);
  add({13, 1}, 1, 17);
  add({29, 17}, 0, 13);
  add({2, 7, 3}, -2, 5);
  add({0, 3}, 1, 5);
  add({3, 0}, 1, 5);
  return row;
}

// ---- index_select and embedding: one index a row ----

// x seen as [outer, rows, inner]; `count` indices.
struct Rows {
  int64_t outer, rows, count, inner;
};

void take_reference(const Rows& r, const HostTensor& x, const HostTensor& indices, HostTensor& y) {
  for (int64_t e = 0; e < r.outer * r.count * r.inner; ++e) {
    const int64_t i = e % r.inner, c = e / r.inner % r.count, o = e / r.inner / r.count;
    const int64_t index = index_at(indices, c, r.rows);
    y.data[static_cast<size_t>(e)] =
        index < 0 ? missing(x.desc.dtype)
                  : x.data[static_cast<size_t>((o * r.rows + index) * r.inner + i)];
  }
}

void take_grad_reference(const Rows& r, const HostTensor& dy, const HostTensor& indices,
                         HostTensor& dx) {
  std::fill(dx.data.begin(), dx.data.end(), 0.0);
  for (int64_t e = 0; e < r.outer * r.count * r.inner; ++e) {
    const int64_t i = e % r.inner, c = e / r.inner % r.count, o = e / r.inner / r.count;
    const int64_t index = index_at(indices, c, r.rows);
    if (index < 0) continue;
    dx.data[static_cast<size_t>((o * r.rows + index) * r.inner + i)] +=
        dy.data[static_cast<size_t>(e)];
  }
}

// `call` of index_select: x and indices [count]. Of its gradient: dy and the indices.
Rows select_rows(const OpCall& call, bool gradient) {
  const ReduceSpan x = span_of(call.in[0].shape, {axis_of(call)});
  const int64_t rows = gradient ? call.attrs.integer("size") : x.reduce;
  return {x.outer, rows, call.in[1].shape[0], x.inner};
}

OpRow index_select_row(bool gradient) {
  OpRow row;
  row.name = gradient ? "index_select_grad" : "index_select";
  row.min_in = row.max_in = 2;
  row.attrs = {{"axis", std::nullopt}};
  if (gradient) row.attrs.push_back({"size", std::nullopt});
  row.half_storage = true;
  row.infer = [gradient](const OpCall& call) -> std::vector<TensorDesc> {
    require_indices(call, 1);
    require_rank(call, 1, 1, "a list of indices [K]");
    const auto axis = static_cast<size_t>(fixed_axis_of(call));
    Shape shape = call.in[0].shape;
    NETCL_CHECK(call.in[1].shape[0] >= 0, ErrorCode::kUsage,
                "the number of indices depends on the batch size: ", call.in[1].shape.str());
    NETCL_CHECK(!gradient || call.in[1].shape[0] == shape[axis], ErrorCode::kUsage, "there are ",
                call.in[1].shape[0], " indices for ", shape[axis], " elements along axis ", axis);
    shape[axis] = gradient ? integer_in(call.attrs, "size", 0, 0x7fffffff) : call.in[1].shape[0];
    return {{call.in[0].dtype, shape}};
  };
  row.facts = [gradient](const OpCall& call, Attrs& facts) {
    const Rows r = select_rows(call, gradient);
    four_facts(facts, r.outer, r.rows, r.count, r.inner);
  };
  if (gradient) {
    row.gradient = [](const GradCall& c) -> Grads {
      return {c.recorder.call("index_select", {dy0(c), c.node.in[1]},
                              {{"axis", c.node.attrs.integer("axis")}}),
              std::nullopt};
    };
  } else {
    row.gradient = [](const GradCall& c) -> Grads {
      const Shape x = c.in_desc(0).shape;
      const int64_t attr = c.node.attrs.integer("axis");
      const int64_t axis = attr < 0 ? attr + static_cast<int64_t>(x.rank()) : attr;
      return {c.recorder.call("index_select_grad", {dy0(c), c.node.in[1]},
                              {{"axis", axis}, {"size", x[static_cast<size_t>(axis)]}}),
              std::nullopt};
    };
  }
  row.reference = [gradient](const OpCall& call, const std::vector<const HostTensor*>& in,
                             std::vector<HostTensor>& out) {
    const Rows r = select_rows(call, gradient);
    (gradient ? take_grad_reference : take_reference)(r, *in[0], *in[1], out[0]);
  };
  row.doc = gradient ? OpDoc{"dx[o,r,i] = sum of dy[o,c,i] over the c with index[c] = r",
                             "ddy = index_select(ddx, index)", ""}
                     : OpDoc{"y[o,c,i] = x[o,index[c],i]", "dx = index_select_grad(dy, index)", ""};
  const std::vector<std::tuple<Shape, int64_t, int64_t>> cases = {
      {{1}, 0, 1},        {{7}, 0, 13},   {{13, 17}, 1, 5}, {{13, 17}, 0, 29},
      {{2, 5, 3}, -2, 7}, {{0, 5}, 1, 3}, {{3, 5}, 1, 0}};
  for (const auto& [x, axis, count] : cases) {
    const auto d = static_cast<size_t>(axis < 0 ? axis + static_cast<int64_t>(x.rank()) : axis);
    OpCase c;
    Shape picked = x;
    picked[d] = count;
    c.in = {{DType::kF32, gradient ? picked : x}, {DType::kI32, {count}}};
    c.int_high = {0, x[d]};
    c.attrs = {{"axis", axis}};
    if (gradient) c.attrs.set("size", x[d]);
    row.cases.push_back(std::move(c));
  }
  return row;
}

// Number of indices; a symbolic shape is never asked.
Rows embedding_rows(const Shape& indices, int64_t vocabulary, int64_t features) {
  return {1, vocabulary, indices.num_elements(), features};
}

std::vector<OpCase> embedding_cases(bool gradient) {
  const std::vector<std::tuple<Shape, int64_t, int64_t>> shapes = {
      {{1}, 1, 1},    {{7}, 5, 3},    {{2, 13}, 17, 20}, {{}, 3, 5},
      {{0, 3}, 5, 2}, {{131}, 3, 65}, {{3}, 5, 0}};
  std::vector<OpCase> out;
  for (const auto& [index, vocabulary, features] : shapes) {
    OpCase c;
    Ints dims = index.dims();
    dims.push_back(features);
    c.in = {{DType::kI32, index},
            {DType::kF32, gradient ? Shape(dims) : Shape{vocabulary, features}}};
    c.int_high = {vocabulary, 0};
    if (gradient) c.attrs = {{"vocabulary", vocabulary}};
    out.push_back(std::move(c));
  }
  return out;
}

OpRow embedding_row() {
  OpRow row;
  row.name = "embedding";
  row.min_in = row.max_in = 2;
  row.half_storage = true;
  row.infer = [](const OpCall& call) -> std::vector<TensorDesc> {
    require_indices(call, 0);
    require_rank(call, 1, 2, "a table [V,D]");
    const DType dtype = common_float(call, {1});
    Ints dims = call.in[0].shape.dims();
    dims.push_back(call.in[1].shape[1]);
    return {{dtype, Shape(std::move(dims))}};
  };
  row.facts = [](const OpCall& call, Attrs& facts) {
    const Shape& table = call.in[1].shape;
    const Rows r = embedding_rows(call.in[0].shape, table[0], table[1]);
    four_facts(facts, r.outer, r.rows, r.count, r.inner);
  };
  row.gradient = [](const GradCall& c) -> Grads {
    return {std::nullopt, c.recorder.call("embedding_grad", {c.node.in[0], dy0(c)},
                                          {{"vocabulary", c.in_desc(1).shape[0]}})};
  };
  row.reference = [](const OpCall& call, const std::vector<const HostTensor*>& in,
                     std::vector<HostTensor>& out) {
    const Shape& table = call.in[1].shape;
    take_reference(embedding_rows(call.in[0].shape, table[0], table[1]), *in[1], *in[0], out[0]);
  };
  row.doc = {"y[..,d] = weight[index[..],d]", "dweight = embedding_grad(index, dy)", ""};
  row.cases = embedding_cases(false);
  return row;
}

OpRow embedding_grad_row() {
  OpRow row;
  row.name = "embedding_grad";
  row.min_in = row.max_in = 2;
  row.attrs = {{"vocabulary", std::nullopt}};
  row.half_storage = true;
  row.infer = [](const OpCall& call) -> std::vector<TensorDesc> {
    require_indices(call, 0);
    const DType dtype = common_float(call, {1});
    const Shape& dy = call.in[1].shape;
    NETCL_CHECK(
        dy.rank() == call.in[0].shape.rank() + 1 &&
            std::equal(dy.dims().begin(), dy.dims().end() - 1, call.in[0].shape.dims().begin()),
        ErrorCode::kUsage, "dy ", dy.str(), " must be the indices' shape, ", call.in[0].shape.str(),
        ", and one dimension more");
    return {{dtype, {integer_in(call.attrs, "vocabulary", 0, 0x7fffffff), dy[dy.rank() - 1]}}};
  };
  const auto rows_of = [](const OpCall& call) {
    const Shape& dy = call.in[1].shape;
    return embedding_rows(call.in[0].shape, call.attrs.integer("vocabulary"), dy[dy.rank() - 1]);
  };
  row.facts = [rows_of](const OpCall& call, Attrs& facts) {
    const Rows r = rows_of(call);
    four_facts(facts, r.outer, r.rows, r.count, r.inner);
  };
  row.gradient = [](const GradCall& c) -> Grads {
    return {std::nullopt, c.recorder.call("embedding", {c.node.in[0], dy0(c)})};
  };
  row.reference = [rows_of](const OpCall& call, const std::vector<const HostTensor*>& in,
                            std::vector<HostTensor>& out) {
    take_grad_reference(rows_of(call), *in[1], *in[0], out[0]);
  };
  row.doc = {"dweight[v,d] = sum of dy[..,d] where index[..] = v",
             "ddy = embedding(index, ddweight)", ""};
  row.cases = embedding_cases(true);
  return row;
}

OpRow one_hot_row() {
  OpRow row;
  row.name = "one_hot";
  row.attrs = {{"classes", std::nullopt}, {"dtype", std::string("f32")}};
  row.infer = [](const OpCall& call) -> std::vector<TensorDesc> {
    require_indices(call, 0);
    const DType dtype = dtype_named(call.attrs.text("dtype"));
    NETCL_CHECK(is_float(dtype), ErrorCode::kUsage, "dtype must be f32, f16 or bf16, is ",
                dtype_name(dtype));
    Ints dims = call.in[0].shape.dims();
    dims.push_back(integer_in(call.attrs, "classes", 0, 0x7fffffff));
    return {{dtype, Shape(std::move(dims))}};
  };
  row.facts = [](const OpCall& call, Attrs& facts) {
    facts.set("n", call.in[0].shape.num_elements() * call.attrs.integer("classes"));
  };
  row.reference = [](const OpCall& call, const std::vector<const HostTensor*>& in,
                     std::vector<HostTensor>& out) {
    const int64_t classes = call.attrs.integer("classes");
    for (size_t e = 0; e < out[0].data.size(); ++e) {
      const auto at = static_cast<int64_t>(e);
      const int64_t index = index_at(*in[0], at / classes, classes);
      out[0].data[e] = index < 0 ? missing(DType::kF32) : index == at % classes ? 1.0 : 0.0;
    }
  };
  row.doc = {"y[..,c] = 1 if index[..] = c, else 0", "", ""};
  for (const char* dtype : {"f32", "f16", "bf16"}) {
    for (const auto& [shape, classes] : std::vector<std::pair<Shape, int64_t>>{
             {{1}, 1}, {{}, 3}, {{13}, 7}, {{3, 5}, 17}, {{0, 3}, 5}, {{3}, 0}}) {
      OpCase c;
      c.in = {{DType::kI32, shape}};
      c.int_high = {std::max<int64_t>(classes, 1)};
      c.attrs = {{"classes", classes}, {"dtype", std::string(dtype)}};
      row.cases.push_back(std::move(c));
    }
  }
  return row;
}

}  // namespace

void add_gather_rows(std::vector<OpRow>& rows) {
  rows.push_back(gather_row());
  rows.push_back(scatter_add_row());
  rows.push_back(index_select_row(false));
  rows.push_back(index_select_row(true));
  rows.push_back(embedding_row());
  rows.push_back(embedding_grad_row());
  rows.push_back(one_hot_row());
}

}  // namespace netcl
