// Recorder: how ops are written down. One interface for everything that can hold a computation: the
// eager tape (runs each op as it is recorded), the traced graph (runs nothing yet), and the
// double-precision host (the reference). Gradient rules, losses, optimisers and layers speak only
// to a Recorder, so each is written once.
#ifndef NETCL_CORE_OPS_RECORDER_H_
#define NETCL_CORE_OPS_RECORDER_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/ops/attrs.h"
#include "core/tensor/shape.h"

namespace netcl {

struct FusedOp;
struct OpRow;

// A value inside one Recorder.
using ValueId = uint32_t;

struct Node {
  const OpRow* op = nullptr;
  std::vector<ValueId> in, out;
  Attrs attrs;                                     // complete: defaults filled in
  std::shared_ptr<const FusedOp> fused = nullptr;  // of a fused op, whose row `op` then is
};

class Recorder {
 public:
  virtual ~Recorder() = default;

  // Records one op: completes and checks the attributes, infers the outputs' descriptions.
  // Errors: kUsage for an unknown op, wrong number of inputs, attributes or shapes; the message
  // names the op and the shapes.
  std::vector<ValueId> apply(const std::string& op, const std::vector<ValueId>& in,
                             Attrs attrs = {});
  // The same for an op with one output.
  ValueId call(const std::string& op, const std::vector<ValueId>& in, Attrs attrs = {});

  // Records a node again with other inputs of the same descriptions.
  std::vector<ValueId> repeat(const Node& node, const std::vector<ValueId>& in);

  // Says that `out`, which was recorded from `in` alone, is what the op `name` ("vendor.op")
  // computes, and returns the values to go on with: those of one node where the recorder chooses
  // kernels later, `out` itself where ops run as they are recorded. See core/ops/fused.h.
  // Errors: kPlugin.
  std::vector<ValueId> fused(const std::string& name, const std::vector<ValueId>& in,
                             const Attrs& attrs, const std::vector<ValueId>& out);
  // Records a fused op as one node. Errors: kInternal for a recorder that runs ops as they come.
  std::vector<ValueId> apply(std::shared_ptr<const FusedOp> op, const std::vector<ValueId>& in,
                             const Attrs& attrs);

  // Mixed precision for what is recorded from now on: `low` (f16 or bf16) turns it on, nullopt off.
  // Float inputs are cast as each row's OpRow::autocast says.
  void set_autocast(std::optional<DType> low) { autocast_ = low; }

  const TensorDesc& desc(ValueId value) const { return descs_[value]; }
  size_t num_values() const { return descs_.size(); }
  const std::vector<Node>& nodes() const { return nodes_; }
  // The value in words, for messages.
  virtual std::string describe(ValueId value) const;

 protected:
  // Adds a value that no op produces (an input, a parameter).
  ValueId add_value(TensorDesc desc);
  // Called after the node and its outputs were added; an eager recorder runs it here.
  virtual void recorded(const Node& node) = 0;
  // Whether fused ops are kept as nodes, to be given kernels later.
  virtual bool keeps_fused() const { return false; }

  std::vector<Node> nodes_;
  std::vector<TensorDesc> descs_;

 private:
  std::vector<ValueId> autocast(const OpRow& row, std::vector<ValueId> in);

  std::optional<DType> autocast_;
};

}  // namespace netcl

#endif  // NETCL_CORE_OPS_RECORDER_H_
