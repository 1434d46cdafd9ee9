// Rows of what surrounds an optimiser's step: the gradient's norm, with which it is clipped, and
// the moving average of the parameters; and what all these rows share. Source:
// torch.nn.utils.clip_grad_norm_ documents the clipping followed here; Polyak & Juditsky,
// "Acceleration of stochastic approximation by averaging", 1992.
#include <algorithm>
#include <cmath>
#include <limits>

#include "core/base/error.h"
#include "core/ops/checks.h"
#include "core/ops/optim_blocks.h"
#include "core/ops/rows.h"

namespace netcl {

namespace optim_blocks {

void require_gradients(const OpCall& call, size_t grad, int64_t n) {
  const TensorDesc& desc = call.in[grad];
  const int64_t offset = call.attrs.integer("grad_offset");
  NETCL_CHECK(desc.dtype == DType::kF32 && desc.shape.rank() == 1 && offset >= 0 &&
                  desc.shape[0] >= n + offset,
              ErrorCode::kUsage, "the gradients must be f32 and hold ", n,
              " elements from grad_offset ", offset, " on, are ", desc.str());
}

std::vector<double> case_blocks(int64_t n) {
  std::vector<double> out;
  for (int64_t b = 0; b < num_blocks(n); ++b) {
    const int64_t slot = b / 2;
    out.push_back(entry(slot % 3 == 2 ? kFrozen : slot % 3, slot));
  }
  return out;
}

}  // namespace optim_blocks

namespace {

namespace ob = optim_blocks;

// The blocks say how many parameters there are; the last block may be cut short by the arena's end.
int64_t num_parameters(const OpCall& call) {
  return std::min(call.in[1].shape[0] * ob::kBlock,
                  call.in[0].shape[0] - call.attrs.integer("grad_offset"));
}

std::vector<TensorDesc> infer_norm(const OpCall& call) {
  NETCL_CHECK(call.in[0].shape.rank() == 1, ErrorCode::kUsage,
              "needs a flat arena of gradients [n], is ", call.in[0].str());
  NETCL_CHECK(call.in[1].dtype == DType::kI32 && call.in[1].shape.rank() == 1, ErrorCode::kUsage,
              "the table of blocks must be i32[blocks], is ", call.in[1].str());
  const int64_t n = num_parameters(call);
  ob::require_gradients(call, 0, n);
  require_desc(call, 1, {DType::kI32, Shape{ob::num_blocks(n)}}, "table of blocks");
  require_desc(call, 2, {DType::kF32, Shape{1}}, "divisor");
  const double max_norm = call.attrs.number("max_norm");
  NETCL_CHECK(max_norm >= 0 && std::isfinite(max_norm), ErrorCode::kUsage,
              "attribute \"max_norm\" must be at least 0, is ", max_norm);
  return {call.in[2], call.in[2]};
}

void norm_reference(const OpCall& call, const std::vector<const HostTensor*>& in,
                    std::vector<HostTensor>& out) {
  const double divisor = in[2]->data[0], max_norm = call.attrs.number("max_norm");
  const auto offset = static_cast<size_t>(call.attrs.integer("grad_offset"));
  const auto n = static_cast<size_t>(num_parameters(call));
  double sum = 0;
  for (size_t i = 0; i < n; ++i) {
    if (ob::group_of(*in[1], i) == ob::kFrozen) continue;
    const double g = ob::divided(in[0]->data[offset + i], divisor);
    sum += g * g;
  }
  const double norm = std::sqrt(sum), scale = (norm + 1e-6) / max_norm;
  out[0].data[0] = norm;
  out[1].data[0] = max_norm > 0 && !(scale <= 1) ? divisor * scale : divisor;
}

OpRow norm_row() {
  OpRow row;
  row.name = "grad_norm";
  row.min_in = row.max_in = 3;
  row.attrs = {{"grad_offset", int64_t{0}}, {"max_norm", 0.0}};
  row.infer = infer_norm;
  row.facts = [](const OpCall& call, Attrs& facts) { facts.set("n", num_parameters(call)); };
  row.reference = norm_reference;
  row.doc = {
      "norm = sqrt(sum (g / divisor)^2); clipped = divisor / min(1, max_norm / (norm + 1e-6))", "",
      "Pascanu, Mikolov & Bengio, ICML 2013"};
  for (const int64_t n : {1, 7, 0, 1031, 4096, 9001}) {
    for (const double max_norm : {0.0, 0.5, 1e6}) {
      for (const double divisor : {3.0, 0.0}) {
        OpCase c;
        c.in = {{DType::kF32, {n}}, {DType::kI32, {ob::num_blocks(n)}}, {DType::kF32, {1}}};
        c.fixed = {{1, ob::case_blocks(n)}, {2, {divisor}}};
        c.attrs = {{"max_norm", max_norm}};
        row.cases.push_back(c);
      }
    }
  }
  OpCase sums = row.cases.back();  // gradients behind other numbers
  sums.in[0].shape = Shape{9001 + 128};
  sums.fixed[1].second = {2};
  sums.attrs = {{"grad_offset", int64_t{128}}, {"max_norm", 0.25}};
  row.cases.push_back(sums);
  return row;
}

OpRow ema_row() {
  OpRow row;
  row.name = "ema_step";
  row.min_in = row.max_in = 3;
  row.attrs = {{"decay", std::nullopt}};
  row.infer = [](const OpCall& call) -> std::vector<TensorDesc> {
    NETCL_CHECK(call.in[0].dtype == DType::kF32 && call.in[0].shape.rank() == 1, ErrorCode::kUsage,
                "needs flat arenas f32[n], the average is ", call.in[0].str());
    require_desc(call, 1, call.in[0], "parameters");
    require_desc(call, 2, {DType::kF32, Shape{1}}, "divisor");
    const double decay = call.attrs.number("decay");
    NETCL_CHECK(decay >= 0 && decay < 1, ErrorCode::kUsage,
                "attribute \"decay\" must be at least 0 and below 1, is ", decay);
    return {call.in[0]};
  };
  row.facts = [](const OpCall& call, Attrs& facts) { facts.set("n", call.in[0].shape[0]); };
  row.reference = [](const OpCall& call, const std::vector<const HostTensor*>& in,
                     std::vector<HostTensor>& out) {
    const double rest = 1 - call.attrs.number("decay");
    const bool skipped = !std::isfinite(in[2]->data[0]);
    for (size_t i = 0; i < out[0].data.size(); ++i) {
      const double old = in[0]->data[i];
      out[0].data[i] = skipped ? old : old + (in[1]->data[i] - old) * rest;
    }
  };
  row.aliases = {0};
  row.doc = {"ema + (param - ema) (1 - decay)", "", "Polyak & Juditsky, 1992"};
  for (const int64_t n : {1, 7, 0, 1031, 4096}) {
    for (const double divisor : {3.0, std::numeric_limits<double>::quiet_NaN()}) {
      OpCase c;
      c.in = {{DType::kF32, {n}}, {DType::kF32, {n}}, {DType::kF32, {1}}};
      c.fixed = {{2, {divisor}}};
      c.attrs = {{"decay", 0.75}};
      row.cases.push_back(c);
    }
  }
  return row;
}

}  // namespace

void add_update_rows(std::vector<OpRow>& rows) {
  rows.push_back(norm_row());
  rows.push_back(ema_row());
}

}  // namespace netcl
