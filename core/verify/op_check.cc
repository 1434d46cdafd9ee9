#include "core/verify/op_check.h"

#include <algorithm>
#include <cmath>
#include <set>

#include "core/base/text.h"
#include "core/ops/case_inputs.h"
#include "core/verify/guarded_buffer.h"
#include "core/verify/host_bytes.h"

namespace netcl {

namespace {

// |got - reference| <= kTolerance * (|reference| + scale). `scale` is 1, the size of the inputs,
// and for sums the sum of the terms' sizes. An f32 operation rounds to 6e-8; OpenCL allows exp, log
// and their like 3 to 5 units in the last place and pow 16 (2e-6), and expressions take a few of
// them. Sums of up to 1031 terms in any order stay below 1031 * 6e-8 of that scale, in practice far
// below.
constexpr double kTolerance = 5e-6;
// 16-bit results are computed in f32 and rounded once: half a unit in the last place, 2^-12 and
// 2^-9 (of the value; of 6e-8, the least f16 step, near 0).
constexpr double kF16Tolerance = 5e-4, kBF16Tolerance = 4e-3;

// Two kernels may add up in different orders.
constexpr double kTwoKernelsTolerance = 1e-4;

double storage_tolerance(DType dtype) {
  return dtype == DType::kF16 ? kF16Tolerance : dtype == DType::kBF16 ? kBF16Tolerance : 0;
}

uint8_t poison_of(const TensorDesc& desc) { return is_float(desc.dtype) ? 0xff : 0x7f; }

std::vector<cl::Buffer> buffers_of(const std::vector<GuardedBuffer>& guarded) {
  std::vector<cl::Buffer> out;
  for (const GuardedBuffer& b : guarded) out.push_back(b.buffer());
  return out;
}

}  // namespace

std::string OpVerdict::text() const {
  std::vector<std::string> texts;
  for (const OpFinding& finding : findings) texts.push_back(finding.text);
  return join(texts, "; ");
}

std::string first_difference(const HostTensor& got, const HostTensor& want, const HostTensor& scale,
                             double tolerance, double* worst) {
  if (got.data.size() != want.data.size())
    return str_cat("it has ", got.data.size(), " elements, not ", want.data.size());
  for (size_t i = 0; i < want.data.size(); ++i) {
    const double g = got.data[i], w = want.data[i];
    if (g == w || (std::isnan(g) && std::isnan(w))) continue;
    if (std::isinf(w)) return str_cat("element ", i, ": got ", g, ", wanted ", w);
    const double limit = is_float(want.desc.dtype) ? tolerance * (std::fabs(w) + scale.data[i]) : 0;
    const double error = std::fabs(g - w);
    if (!(error <= limit)) return str_cat("element ", i, ": got ", g, ", wanted ", w);
    *worst = std::max(*worst, error / limit);
  }
  return "";
}

OpCheck::OpCheck(const OpRow& row, OpCase op_case, uint64_t seed)
    : row_(row),
      case_(std::move(op_case)),
      attrs_(complete_attrs(row, case_.attrs)),
      out_descs_(row.infer({row, case_.in, attrs_})),
      in_(case_inputs(case_, seed)) {
  out_ = evaluate(in_, attrs_);
  scale_ = scale_of_sums();
}

OpCheck::OpCheck(const OpRow& row, OpCase op_case, uint64_t seed, Queue& queue, const Recipe& right)
    : row_(row),
      case_(std::move(op_case)),
      attrs_(complete_attrs(row, case_.attrs)),
      out_descs_(row.infer({row, case_.in, attrs_})),
      in_(case_inputs(case_, seed)) {
  out_ = scale_ = results_of(queue, right);
  for (HostTensor& t : scale_) {
    double largest = 0;
    for (const double x : t.data)
      largest = std::isfinite(x) ? std::max(largest, std::fabs(x)) : largest;
    std::fill(t.data.begin(), t.data.end(), largest);
  }
  case_.tolerance = kTwoKernelsTolerance;
}

std::vector<HostTensor> OpCheck::results_of(Queue& queue, const Recipe& recipe) const {
  Memory memory = memory_for(queue, recipe);
  Executable kernel(queue.device(), recipe);
  kernel.bind(buffers_of(memory.in), buffers_of(memory.out), buffers_of(memory.scratch));
  kernel.enqueue(queue.cl());
  queue.finish();
  std::vector<HostTensor> results;
  for (size_t i = 0; i < memory.out.size(); ++i)
    results.push_back(from_bytes(out_descs_[i], memory.out[i].read()));
  return results;
}

OpCheck::Memory OpCheck::memory_for(Queue& queue, const Recipe& recipe) const {
  Memory out;
  for (const HostTensor& t : in_) out.in.emplace_back(queue, to_bytes(t), poison_of(t.desc));
  for (const TensorDesc& d : out_descs_)
    out.out.emplace_back(queue, std::vector<uint8_t>(d.size_bytes(), poison_of(d)), poison_of(d));
  for (const uint64_t bytes : recipe.scratch_bytes)
    out.scratch.emplace_back(queue, std::vector<uint8_t>(bytes, 0xff), 0xff);
  return out;
}

size_t OpCheck::num_elements() const {
  size_t n = 0;
  for (const auto* list : {&in_, &out_})
    for (const HostTensor& t : *list) n += t.data.size();
  return n;
}

double OpCheck::tolerance(DType dtype) const {
  return std::max(storage_tolerance(dtype), case_.tolerance > 0 ? case_.tolerance : kTolerance);
}

DType OpCheck::widest_rounding() const {
  DType out = DType::kF32;
  for (const auto* list : {&case_.in, &out_descs_}) {
    for (const TensorDesc& d : *list) {
      if (storage_tolerance(d.dtype) > storage_tolerance(out)) out = d.dtype;
    }
  }
  return out;
}

std::vector<HostTensor> OpCheck::evaluate(const std::vector<HostTensor>& inputs,
                                          const Attrs& attrs) const {
  std::vector<const HostTensor*> pointers;
  for (const HostTensor& t : inputs) pointers.push_back(&t);
  std::vector<HostTensor> result;
  for (const TensorDesc& d : out_descs_)
    result.push_back({d, std::vector<double>(static_cast<size_t>(d.shape.num_elements()))});
  row_.reference({row_, case_.in, attrs}, pointers, result);
  return result;
}

// The size of the sums behind every element.
std::vector<HostTensor> OpCheck::scale_of_sums() const {
  std::vector<HostTensor> sizes = in_, result = out_;
  const bool sum = row_.name == "matmul" || row_.name == "sum" || row_.name == "mean";
  if (sum) {  // the same sums over the terms' sizes
    for (HostTensor& t : sizes)
      for (double& x : t.data) x = std::fabs(x);
    Attrs linear = attrs_;
    if (row_.name == "matmul") linear.set("activation", std::string("none"));
    return evaluate(sizes, linear);
  }
  for (HostTensor& t : result) std::fill(t.data.begin(), t.data.end(), 1.0);
  if (row_.name == "log_softmax_grad") {  // dy - exp(y) * sum(dy)
    for (double& x : sizes[0].data) x = std::fabs(x);
    result = evaluate(sizes, attrs_);
    for (size_t i = 0; i < sizes[0].data.size(); ++i)
      result[0].data[i] = std::fabs(result[0].data[i]) + 2 * sizes[0].data[i];
  }
  return result;
}

OpVerdict OpCheck::judge(Queue& queue, const Recipe& recipe) const {
  OpVerdict out;
  judge_once(queue, recipe, false, &out);
  const auto& aliases = row_.aliases;
  if (std::any_of(aliases.begin(), aliases.end(), [](int a) { return a >= 0; }))
    judge_once(queue, recipe, true, &out);
  return out;
}

// `in_place`: outputs lie where the row says that they may, in the inputs.
void OpCheck::judge_once(Queue& queue, const Recipe& recipe, bool in_place,
                         OpVerdict* verdict) const {
  auto [in, out, scratch] = memory_for(queue, recipe);
  std::set<size_t> overwritten;
  std::vector<GuardedBuffer*> results;
  std::vector<cl::Buffer> out_buffers;
  for (size_t i = 0; i < out.size(); ++i) {
    const bool shared = in_place && i < row_.aliases.size() && row_.aliases[i] >= 0;
    const size_t at = shared ? static_cast<size_t>(row_.aliases[i]) : 0;
    results.push_back(shared ? &in[at] : &out[i]);
    if (shared) overwritten.insert(at);
    out_buffers.push_back(results.back()->buffer());
  }
  Executable kernel(queue.device(), recipe);
  kernel.bind(buffers_of(in), out_buffers, buffers_of(scratch));
  kernel.enqueue(queue.cl());
  queue.finish();

  const std::string place = in_place ? " (in place)" : "";
  const auto found = [&](OpFinding::Kind kind, const std::string& text) {
    verdict->findings.push_back({kind, text + place});
  };
  for (size_t i = 0; i < results.size(); ++i) {
    const std::string difference =
        first_difference(from_bytes(out_descs_[i], results[i]->read()), out_[i], scale_[i],
                         tolerance(out_descs_[i].dtype), &verdict->worst);
    if (!difference.empty())
      found(OpFinding::Kind::kResult, str_cat("output ", i, ": ", difference));
    if (!results[i]->intact())
      found(OpFinding::Kind::kOutOfBounds, str_cat("written beyond output ", i));
  }
  for (size_t i = 0; i < in.size(); ++i) {
    if (overwritten.count(i) == 0 && !in[i].unchanged())
      found(OpFinding::Kind::kInputModified, str_cat("input ", i, " was written"));
  }
  for (size_t i = 0; i < scratch.size(); ++i) {
    if (!scratch[i].intact())
      found(OpFinding::Kind::kOutOfBounds, str_cat("written beyond scratch buffer ", i));
  }
}

}  // namespace netcl
