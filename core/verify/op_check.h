// OpCheck: one op with concrete inputs and what its double-precision reference makes of them, to
// hold the recipes of kernel sets against. Tests of the op table, `plugins verify` and tuning all
// judge a kernel here.
//
// A recipe runs on memory that begins as poison and lies between guard bands, so reading what was
// never written, writing beyond the end and changing an input are seen, too.
// Threads: those of the queue.
#ifndef NETCL_CORE_VERIFY_OP_CHECK_H_
#define NETCL_CORE_VERIFY_OP_CHECK_H_

#include <cstdint>
#include <string>
#include <vector>

#include "core/cl/recipe.h"
#include "core/ops/kernel_provider.h"
#include "core/ops/op.h"
#include "core/tensor/queue.h"
#include "core/verify/guarded_buffer.h"

namespace netcl {

// What is wrong with a recipe.
struct OpFinding {
  enum class Kind { kResult, kOutOfBounds, kInputModified };
  Kind kind;
  std::string text;  // "output 0: element 17: got 2.5, wanted 2.25"
};

struct OpVerdict {
  std::vector<OpFinding> findings;  // none: it is right
  double worst = 0;                 // the greatest error, as a part of the tolerance

  bool right() const { return findings.empty(); }
  std::string text() const;  // all findings, separated by "; "
};

// Compares element by element: |got - want| <= tolerance * (|want| + scale), integers exactly, NaN
// with NaN. Returns the first difference in words, or "". *worst grows to the greatest error found,
// as a part of the tolerance.
std::string first_difference(const HostTensor& got, const HostTensor& want, const HostTensor& scale,
                             double tolerance, double* worst);

class OpCheck {
 public:
  // Makes the inputs from `seed` and computes the reference. `row` outlives the object. Errors:
  // kUsage if the case does not fit the op.
  OpCheck(const OpRow& row, OpCase op_case, uint64_t seed);
  // The same, but what `right` computes on the queue stands for the reference, which would take too
  // long: results may differ by 1e-4 of the largest element. Errors: kUsage, kDevice.
  OpCheck(const OpRow& row, OpCase op_case, uint64_t seed, Queue& queue, const Recipe& right);
  OpCheck(const OpCheck&) = delete;
  OpCheck(OpCheck&&) = default;

  KernelQuestion question() const { return {row_, case_.in, out_descs_, attrs_}; }
  const OpRow& row() const { return row_; }
  const OpCase& op_case() const { return case_; }
  const std::vector<HostTensor>& in() const { return in_; }
  const std::vector<HostTensor>& out() const { return out_; }  // the reference's
  const std::vector<TensorDesc>& out_descs() const { return out_descs_; }
  size_t num_elements() const;  // of inputs and outputs

  // Greatest relative error of a right result of that type: the case's own, or more where results
  // are stored in 16 bits.
  double tolerance(DType dtype) const;
  // The type with the coarsest rounding among inputs and outputs.
  DType widest_rounding() const;

  // Runs the recipe and judges it; where the op may overwrite an input, a second time in place.
  // Errors: kDevice.
  OpVerdict judge(Queue& queue, const Recipe& recipe) const;

 private:
  struct Memory {
    std::vector<GuardedBuffer> in, out, scratch;
  };
  Memory memory_for(Queue& queue, const Recipe& recipe) const;
  // What the recipe computes, unjudged.
  std::vector<HostTensor> results_of(Queue& queue, const Recipe& recipe) const;
  void judge_once(Queue& queue, const Recipe& recipe, bool in_place, OpVerdict* verdict) const;
  std::vector<HostTensor> evaluate(const std::vector<HostTensor>& inputs, const Attrs& attrs) const;
  std::vector<HostTensor> scale_of_sums() const;

  const OpRow& row_;
  OpCase case_;
  Attrs attrs_;
  std::vector<TensorDesc> out_descs_;
  std::vector<HostTensor> in_, out_, scale_;
};

}  // namespace netcl

#endif  // NETCL_CORE_VERIFY_OP_CHECK_H_
