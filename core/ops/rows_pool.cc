// Rows of the pools: maximum and average over windows that slide by a stride (max_pool2d,
// avg_pool2d) or that divide the input evenly (adaptive_...), and their backward ops.
#include <algorithm>
#include <cmath>
#include <limits>

#include "core/base/error.h"
#include "core/ops/checks.h"
#include "core/ops/gradients.h"
#include "core/ops/rows.h"
#include "core/ops/window.h"

namespace netcl {

namespace {

using Ints = std::vector<int64_t>;

struct Range {
  int64_t begin, end, size;  // inside of the input; size counts padding too
};

// One dimension of a pool: `in` elements become `out`.
struct PoolAxis {
  bool adaptive;
  int64_t in, out;
  Slide slide;

  Range window(int64_t p) const {
    if (adaptive) {
      const int64_t begin = p * in / out, end = ((p + 1) * in + out - 1) / out;
      return {begin, end, end - begin};
    }
    const int64_t begin = slide.begin(p), end = begin + slide.kernel;
    return {std::max<int64_t>(begin, 0), std::min(end, in),
            std::min(end, in + slide.padding) - begin};
  }
};

struct PoolSizes {
  int64_t planes;  // N C, or a symbolic multiple
  PoolAxis height, width;
};

bool is_adaptive(const OpRow& row) { return row.name.rfind("adaptive_", 0) == 0; }
bool is_max(const OpRow& row) { return row.name.find("max_pool") != std::string::npos; }

Slide slide_of(const Attrs& attrs, size_t d) {
  const Pair kernel = pair_of(attrs, "kernel", 1);
  const Pair padding = pair_of(attrs, "padding", 0, {0, 0});
  NETCL_CHECK(2 * padding[d] <= kernel[d], ErrorCode::kUsage, "padding ", padding[d],
              " is more than half of the kernel ", kernel[d], ": a window would see nothing");
  return {kernel[d], pair_of(attrs, "stride", 1, kernel)[d], padding[d], 1};
}

// `image`: the pool's input [N,C,H,W], read from input 0 or, backward, from the attribute `input`.
PoolSizes sizes_for(const OpRow& row, const Attrs& attrs, const Shape& image) {
  PoolSizes s{image[0] * image[1], {}, {}};
  for (size_t d = 0; d < 2; ++d) {
    PoolAxis& axis = d == 0 ? s.height : s.width;
    axis = {is_adaptive(row), image[2 + d], 0, {1, 1, 0, 1}};
    if (axis.adaptive) {
      axis.out = pair_of(attrs, "output", 1)[d];
    } else {
      axis.slide = slide_of(attrs, d);
      axis.out = axis.slide.positions(axis.in, flag(attrs, "ceil_mode"));
    }
  }
  if (!s.height.adaptive) require_fit(s.height.slide, s.width.slide, image);
  return s;
}

PoolSizes pool_sizes(const OpCall& call) {
  require_image(call, 0);
  common_float(call, {0});
  return sizes_for(call.row, call.attrs, call.in[0].shape);
}

// Inputs of the backward ops: dy and, for maxima, the index.
PoolSizes grad_sizes(const OpCall& call) {
  require_image(call, 0);
  common_float(call, {0});
  const Pair input = pair_of(call.attrs, "input", 1);
  const Shape& dy = call.in[0].shape;
  const PoolSizes s = sizes_for(call.row, call.attrs, {dy[0], dy[1], input[0], input[1]});
  NETCL_CHECK((dy == Shape{dy[0], dy[1], s.height.out, s.width.out}), ErrorCode::kUsage,
              "dy must be ", (Shape{dy[0], dy[1], s.height.out, s.width.out}.str()), ", is ",
              dy.str());
  if (is_max(call.row)) require_desc(call, 1, {DType::kI32, dy}, "index");
  return s;
}

void pool_facts(const PoolSizes& s, Attrs& facts) {
  const std::pair<const char*, int64_t> items[] = {{"planes", s.planes},
                                                   {"H", s.height.in},
                                                   {"W", s.width.in},
                                                   {"OH", s.height.out},
                                                   {"OW", s.width.out}};
  for (const auto& [key, value] : items) facts.set(key, value);
  facts.set("sizes8", Ints{s.planes, s.height.in, s.width.in, s.height.out, s.width.out, 0, 0, 0});
  const Slide &h = s.height.slide, &w = s.width.slide;
  if (!s.height.adaptive) {
    facts.set("KH", h.kernel), facts.set("KW", w.kernel);
    facts.set("SH", h.stride), facts.set("SW", w.stride);
    facts.set("PH", h.padding), facts.set("PW", w.padding);
  }
  facts.set("window8", Ints{h.kernel, w.kernel, h.stride, w.stride, h.padding, w.padding, 0, 0});
}

// Calls visit(output element, first element of its plane, rows, columns) for every window.
template <typename Visit>
void for_each_window(const PoolSizes& s, Visit&& visit) {
  size_t out = 0;
  for (int64_t plane = 0; plane < s.planes; ++plane) {
    const auto first = static_cast<size_t>(plane * s.height.in * s.width.in);
    for (int64_t i = 0; i < s.height.out; ++i) {
      for (int64_t j = 0; j < s.width.out; ++j)
        visit(out++, first, s.height.window(i), s.width.window(j));
    }
  }
}

double divisor(const OpCall& call, const Range& rows, const Range& columns) {
  const bool padding = !is_adaptive(call.row) && flag(call.attrs, "count_include_pad");
  return static_cast<double>(padding ? rows.size * columns.size
                                     : (rows.end - rows.begin) * (columns.end - columns.begin));
}

void max_reference(const OpCall& call, const std::vector<const HostTensor*>& in,
                   std::vector<HostTensor>& out) {
  const PoolSizes s = pool_sizes(call);
  for_each_window(s, [&](size_t at, size_t first, const Range& rows, const Range& columns) {
    double best = -std::numeric_limits<double>::infinity();
    int64_t where = rows.begin * s.width.in + columns.begin;
    for (int64_t h = rows.begin; h < rows.end; ++h) {
      for (int64_t w = columns.begin; w < columns.end; ++w) {
        const int64_t e = h * s.width.in + w;
        const double v = in[0]->data[first + static_cast<size_t>(e)];
        if (!(v > best || std::isnan(v))) continue;
        best = v;
        where = e;
      }
    }
    out[0].data[at] = best;
    out[1].data[at] = static_cast<double>(where);
  });
}

void max_grad_reference(const OpCall& call, const std::vector<const HostTensor*>& in,
                        std::vector<HostTensor>& out) {
  const PoolSizes s = grad_sizes(call);
  std::vector<double>& dx = out[0].data;
  std::fill(dx.begin(), dx.end(), 0);
  for_each_window(s, [&](size_t at, size_t first, const Range& rows, const Range& columns) {
    const auto e = static_cast<int64_t>(in[1]->data[at]);  // outside of its window: no element
    const int64_t h = e / s.width.in, w = e % s.width.in;
    if (h >= rows.begin && h < rows.end && w >= columns.begin && w < columns.end)
      dx[first + static_cast<size_t>(e)] += in[0]->data[at];
  });
}

// Forward, y = mean of the window; backward, every element of the window gets its share.
template <bool kBackward>
void avg_reference(const OpCall& call, const std::vector<const HostTensor*>& in,
                   std::vector<HostTensor>& out) {
  const PoolSizes s = kBackward ? grad_sizes(call) : pool_sizes(call);
  const std::vector<double>& from = in[0]->data;
  std::vector<double>& to = out[0].data;
  std::fill(to.begin(), to.end(), 0);
  for_each_window(s, [&](size_t at, size_t first, const Range& rows, const Range& columns) {
    const double share = 1 / divisor(call, rows, columns);
    for (int64_t h = rows.begin; h < rows.end; ++h) {
      for (int64_t w = columns.begin; w < columns.end; ++w) {
        const size_t e = first + static_cast<size_t>(h * s.width.in + w);
        if (kBackward) {
          to[e] += from[at] * share;
        } else {
          to[at] += from[e] * share;
        }
      }
    }
  });
}

// The backward op's name is the row's with "_grad"; it takes dy and, for maxima, the index.
Grads pool_gradient(const GradCall& c) {
  if (!c.dy[0]) return {std::nullopt};
  const Shape x = c.in_desc(0).shape;
  Attrs attrs = c.node.attrs;
  attrs.set("input", Ints{x[2], x[3]});
  std::vector<ValueId> in = {dy0(c)};
  if (is_max(*c.node.op)) in.push_back(c.node.out[1]);
  return {c.recorder.call(c.node.op->name + "_grad", in, attrs)};
}

// The average's backward op is linear: its gradient is the average.
Grads avg_grad_gradient(const GradCall& c) {
  Attrs attrs;
  for (const auto& [key, item] : c.node.attrs.items()) {
    if (key != "input") attrs.set(key, item);
  }
  const std::string& name = c.node.op->name;
  return {c.recorder.call(name.substr(0, name.size() - 5), {dy0(c)}, attrs)};
}

struct Case {
  Shape x;
  Ints kernel, stride, padding;
  int64_t ceil_mode;
  Ints output;  // of the adaptive form
};

std::vector<OpCase> cases_of(const OpRow& row, bool backward) {
  const std::vector<Case> list = {{{1, 1, 1, 1}, {1, 1}, {1, 1}, {0, 0}, 0, {1, 1}},
                                  {{2, 3, 8, 6}, {2, 2}, {}, {0, 0}, 0, {4, 3}},
                                  {{0, 3, 4, 4}, {2, 2}, {2, 2}, {0, 0}, 0, {2, 2}},
                                  {{1, 2, 7, 11}, {3, 3}, {2, 2}, {1, 1}, 0, {3, 5}},
                                  {{2, 1, 13, 9}, {3, 2}, {2, 3}, {1, 0}, 1, {13, 2}},
                                  {{1, 5, 6, 7}, {4, 3}, {1, 1}, {2, 1}, 0, {5, 10}},
                                  {{1, 1, 31, 37}, {5, 7}, {3, 4}, {2, 3}, 1, {1, 1}},
                                  {{2, 3, 16, 20}, {3, 3}, {2, 2}, {1, 1}, 0, {4, 4}},
                                  {{2, 2, 10, 22}, {2, 2}, {2, 2}, {0, 0}, 0, {5, 11}},
                                  {{1, 2, 9, 40}, {3, 3}, {1, 1}, {1, 1}, 0, {3, 7}}};
  std::vector<OpCase> out;
  for (const Case& k : list) {
    OpCase c;
    if (is_adaptive(row)) {
      c.attrs = {{"output", k.output}};
    } else {
      c.attrs = {{"kernel", k.kernel},
                 {"stride", k.stride},
                 {"padding", k.padding},
                 {"ceil_mode", k.ceil_mode}};
      if (!is_max(row)) c.attrs.set("count_include_pad", static_cast<int64_t>(out.size() % 2));
    }
    c.in = {{DType::kF32, k.x}};
    if (backward) {
      const PoolSizes s = sizes_for(row, c.attrs, k.x);
      const Shape y{k.x[0], k.x[1], s.height.out, s.width.out};
      c.in = {{DType::kF32, y}};
      c.attrs.set("input", Ints{k.x[2], k.x[3]});
      if (is_max(row)) {
        c.in.push_back({DType::kI32, y});
        std::vector<double> index;  // one element of each window, not always the same
        for_each_window(s, [&](size_t at, size_t, const Range& rows, const Range& columns) {
          const int64_t h = rows.begin + static_cast<int64_t>(at) % (rows.end - rows.begin);
          index.push_back(static_cast<double>(h * s.width.in + columns.end - 1));
        });
        c.fixed = {{1, index}};
      }
    }
    out.push_back(std::move(c));
  }
  return out;
}

OpRow pool_row(const std::string& name, bool backward) {
  OpRow row;
  row.name = name;
  row.half_storage = true;
  row.min_in = row.max_in = backward && is_max(row) ? 2 : 1;
  if (is_adaptive(row)) {
    row.attrs = {{"output", std::nullopt}};
  } else {
    row.attrs = {{"kernel", std::nullopt},
                 {"stride", Ints{}},  // empty: the kernel's
                 {"padding", Ints{0, 0}},
                 {"ceil_mode", int64_t{0}}};
    if (!is_max(row)) row.attrs.push_back({"count_include_pad", int64_t{1}});
  }
  if (backward) row.attrs.push_back({"input", std::nullopt});
  row.infer = [backward](const OpCall& call) -> std::vector<TensorDesc> {
    const PoolSizes s = backward ? grad_sizes(call) : pool_sizes(call);
    TensorDesc y = call.in[0];
    y.shape[2] = backward ? s.height.in : s.height.out;
    y.shape[3] = backward ? s.width.in : s.width.out;
    if (!is_max(call.row) || backward) return {y};
    return {y, {DType::kI32, y.shape}};
  };
  row.facts = [backward](const OpCall& call, Attrs& facts) {
    pool_facts(backward ? grad_sizes(call) : pool_sizes(call), facts);
  };
  if (!backward) row.gradient = pool_gradient;
  if (backward && !is_max(row)) row.gradient = avg_grad_gradient;
  row.reference = is_max(row) ? (backward ? max_grad_reference : max_reference)
                              : (backward ? avg_reference<true> : avg_reference<false>);
  const std::string over = is_adaptive(row) ? "rows floor(i H / OH) to ceil((i + 1) H / OH)"
                                            : "rows i stride - padding to + kernel";
  if (backward) {
    row.doc = {"dx: every element adds, in order, the shares of the windows that it lies in",
               is_max(row) ? "" : "the average itself", ""};
  } else {
    row.doc = {std::string(is_max(row) ? "maximum, and its index h W + w," : "mean") +
                   " over the window of " + over + ", columns likewise",
               "dx = " + name + "_grad(dy" + (is_max(row) ? ", index)" : ")"), ""};
  }
  row.cases = cases_of(row, backward);
  return row;
}

}  // namespace

void add_pool_rows(std::vector<OpRow>& rows) {
  for (const char* name :
       {"max_pool2d", "avg_pool2d", "adaptive_avg_pool2d", "adaptive_max_pool2d"}) {
    rows.push_back(pool_row(name, false));
    rows.push_back(pool_row(std::string(name) + "_grad", true));
  }
}

}  // namespace netcl
