// Whether a variant of a kernel set computes its op: on the shape that is wanted, an odd one and
// one of ones, beside the double-precision reference. Where that would take too long for the wanted
// shape, beside kernels that count as right.
// Threads: those of the queue.
#ifndef NETCL_CORE_VERIFY_VARIANT_CHECK_H_
#define NETCL_CORE_VERIFY_VARIANT_CHECK_H_

#include <memory>
#include <string>
#include <vector>

#include "core/runtime/record_check.h"
#include "core/verify/op_check.h"

namespace netcl {

// The checks of one question, made once for any number of variants.
class VariantCheck {
 public:
  // Errors: kUsage for an op whose inputs cannot be random values; kDevice, kPlugin.
  VariantCheck(std::shared_ptr<Queue> queue, const KernelQuestion& question,
               const RecordCheck::Planner& usual);

  // As RecordCheck::wrong.
  std::string wrong(const RecordCheck::Planner& tuned) const;
  // "reference: 512x512 512x512, 79x79 79x79, 1x1 1x1": what is checked, and beside what.
  const std::string& text() const { return text_; }
  // The inputs of the wanted shape.
  const OpCheck& target() const { return checks_.front(); }

 private:
  void add(const OpRow& row, const std::vector<TensorDesc>& in, const Attrs& attrs,
           const RecordCheck::Planner& usual);

  std::shared_ptr<Queue> queue_;
  std::vector<OpCheck> checks_;  // the wanted shape's first
  std::string text_;
};

// For KernelChoice: makes the checks of each question anew, on a queue of its own.
std::shared_ptr<RecordCheck> variant_record_check();

}  // namespace netcl

#endif  // NETCL_CORE_VERIFY_VARIANT_CHECK_H_
