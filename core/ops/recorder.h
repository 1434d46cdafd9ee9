// Recorder: how ops are written down. One interface for everything that can hold a computation: the
// eager tape (runs each op as it is recorded), the traced graph (runs nothing yet), and the
// double-precision host (the reference). Gradient rules, losses, optimisers and layers speak only
// to a Recorder, so each is written once.
#ifndef NETCL_CORE_OPS_RECORDER_H_
#define NETCL_CORE_OPS_RECORDER_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/ops/attrs.h"
#include "core/tensor/shape.h"

namespace netcl {

struct OpRow;

// A value inside one Recorder.
using ValueId = uint32_t;

struct Node {
  const OpRow* op = nullptr;
  std::vector<ValueId> in, out;
  Attrs attrs;  // complete: defaults filled in
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

  // Mixed precision for what is recorded from now on: `low` (f16 or bf16) turns it on, nullopt off.
  // Float inputs are cast as each row's OpRow::autocast says.
  void set_autocast(std::optional<DType> low) { autocast_ = low; }

  const TensorDesc& desc(ValueId value) const { return descs_[value]; }
  size_t num_values() const { return descs_.size(); }
  const std::vector<Node>& nodes() const { return nodes_; }

 protected:
  // Adds a value that no op produces (an input, a parameter).
  ValueId add_value(TensorDesc desc);
  // Called after the node and its outputs were added; an eager recorder runs it here.
  virtual void recorded(const Node& node) = 0;

  std::vector<Node> nodes_;
  std::vector<TensorDesc> descs_;

 private:
  std::vector<ValueId> autocast(const OpRow& row, std::vector<ValueId> in);

  std::optional<DType> autocast_;
};

}  // namespace netcl

#endif  // NETCL_CORE_OPS_RECORDER_H_
