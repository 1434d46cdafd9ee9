// Graph: a step written down with a symbolic batch size, before anything runs.
//
// Values that come from outside (inputs, parameters) are externals; values that must end up in a
// given place (gradients, sums) are outputs. Both are known by name: whoever runs the graph gives
// each name its memory. Passes (core/graph/passes.h) rewrite a finished graph.
#ifndef NETCL_CORE_GRAPH_GRAPH_H_
#define NETCL_CORE_GRAPH_GRAPH_H_

#include <map>
#include <set>
#include <string>
#include <vector>

#include "core/ops/op.h"
#include "core/ops/recorder.h"

namespace netcl {

class Graph : public Recorder {
 public:
  // A value from outside. Errors: kInternal for a name given twice.
  ValueId external(const std::string& name, TensorDesc desc);
  // Asks that `value` be written to the memory called `name`. Views, externals and values that are
  // outputs already are copied.
  void output(const std::string& name, ValueId value);

  struct Place {
    std::string name;
    ValueId value;
  };
  const std::vector<Place>& externals() const { return externals_; }
  const std::vector<Place>& outputs() const { return outputs_; }
  // True if the value was declared by external().
  bool is_external(ValueId value) const;
  // The value whose memory `value` shares through views.
  ValueId root(ValueId value) const;

  // Says which part of a model made a value ("model.layers[2] (conv2d)"); the first to say so wins.
  void set_origin(ValueId value, const std::string& part) { origins_.emplace(value, part); }
  // The value in words, for messages: "the output of conv2d in model.layers[2] (conv2d)".
  std::string describe(ValueId value) const override;
  // The part that made a value, or null.
  const std::string* origin(ValueId value) const;

  // For passes.
  std::vector<Node>& mutable_nodes() { return nodes_; }
  // A node of these inputs that is not recorded: a pass puts it where it belongs.
  Node detached(const std::string& op, const std::vector<ValueId>& in, Attrs attrs = {});
  // Which passes this graph, and what is made of it, goes without (names of core/graph/passes.h).
  void leave_out(std::set<std::string> passes) { left_out_ = std::move(passes); }
  const std::set<std::string>& left_out() const { return left_out_; }
  // Ops that passes do not make part of other ops, so that kernels for them are used.
  void keep_ops(std::set<std::string> ops) { kept_ops_ = std::move(ops); }
  const std::set<std::string>& kept_ops() const { return kept_ops_; }

  // One line a node, for tests and `--explain`: "v5 = matmul(v0, v1) transpose_b=1 : f32[B,10]".
  std::string str() const;

 protected:
  void recorded(const Node& node) override;
  bool keeps_fused() const override { return true; }

 private:
  std::vector<Place> externals_, outputs_;
  std::map<ValueId, ValueId> view_of_;
  std::map<ValueId, std::string> origins_;
  std::set<std::string> left_out_, kept_ops_;
};

}  // namespace netcl

#endif  // NETCL_CORE_GRAPH_GRAPH_H_
