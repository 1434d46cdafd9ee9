#include "core/ops/fused.h"

#include <algorithm>
#include <map>
#include <set>

#include "core/base/error.h"

namespace netcl {

namespace {

constexpr const char* kGradient = ".grad";

bool ends_with(const std::string& text, const std::string& end) {
  return text.size() >= end.size() && text.compare(text.size() - end.size(), end.size(), end) == 0;
}

void check_name(const std::string& name) {
  const size_t dot = name.find('.');
  NETCL_CHECK(dot != std::string::npos && dot > 0 && dot + 1 < name.size(), ErrorCode::kPlugin,
              "fused: the op is called \"", name,
              "\"; names of fused ops are \"vendor.op\", so that they never meet those of the op "
              "table");
  NETCL_CHECK(!ends_with(name, kGradient), ErrorCode::kPlugin, "fused: the op is called \"", name,
              "\"; names that end in ", kGradient, " are those of gradients");
}

void check_values(const Recorder& recorder, const std::string& name, const char* what,
                  const std::vector<ValueId>& values) {
  for (size_t i = 0; i < values.size(); ++i) {
    NETCL_CHECK(values[i] < recorder.num_values(), ErrorCode::kPlugin, "fused ", name, ": ", what,
                " ", i, " is value ", values[i], ", which does not exist in this graph");
    const auto first = std::find(values.begin(), values.end(), values[i]);
    NETCL_CHECK(first - values.begin() == static_cast<std::ptrdiff_t>(i), ErrorCode::kPlugin,
                "fused ", name, ": ", what, " ", i, " is ", what, " ", first - values.begin(),
                " again; list every value once");
  }
}

bool is_random(const OpRow& op) {
  return std::any_of(op.attrs.begin(), op.attrs.end(),
                     [](const AttrRule& rule) { return rule.key == "stream"; });
}

void check_op(const std::string& name, const OpRow& op) {
  NETCL_CHECK(!op.collective, ErrorCode::kPlugin, "fused ", name, ": ", op.name,
              " lies between its inputs and outputs; a sum over the workers cannot be part of a "
              "kernel, so end the fused op before it and begin another after it");
  NETCL_CHECK(!is_random(op), ErrorCode::kPlugin, "fused ", name, ": ", op.name,
              " lies between its inputs and outputs; random numbers depend on the step and on the "
              "place in the batch, which kernels are not told, so leave it outside");
}

// Indices of the nodes between the inputs and the outputs, in their order.
std::vector<size_t> between(const Recorder& recorder, const std::string& name,
                            const std::vector<ValueId>& in, const std::vector<ValueId>& out) {
  std::set<ValueId> inputs(in.begin(), in.end()), wanted, unused = inputs;
  for (size_t i = 0; i < out.size(); ++i) {
    NETCL_CHECK(inputs.count(out[i]) == 0, ErrorCode::kPlugin, "fused ", name, ": output ", i,
                " is one of its inputs; use the input itself");
    wanted.insert(out[i]);
  }
  std::vector<size_t> nodes;
  for (size_t i = recorder.nodes().size(); i-- > 0;) {
    const Node& node = recorder.nodes()[i];
    bool makes = false;
    for (const ValueId v : node.out) makes = wanted.erase(v) > 0 || makes;
    if (!makes) continue;
    check_op(name, *node.op);
    nodes.push_back(i);
    for (const ValueId v : node.in) {
      if (inputs.count(v) == 0) wanted.insert(v);
      unused.erase(v);
    }
  }
  NETCL_CHECK(wanted.empty(), ErrorCode::kPlugin, "fused ", name, ": ",
              recorder.describe(*wanted.begin()), ", ", recorder.desc(*wanted.begin()).str(),
              ", enters the ops between its inputs and outputs and is no input; list it. "
              "Parameters and statistics, also those declared in between, are inputs");
  for (size_t i = 0; i < in.size(); ++i) {
    NETCL_CHECK(unused.count(in[i]) == 0, ErrorCode::kPlugin, "fused ", name, ": input ", i, ", ",
                recorder.desc(in[i]).str(), ", is read by none of the ops between; leave it out");
  }
  std::reverse(nodes.begin(), nodes.end());
  return nodes;
}

}  // namespace

std::string gradient_name(const std::string& op) { return op + kGradient; }

std::shared_ptr<const FusedOp> cut_out(const Recorder& recorder, const std::string& name,
                                       const std::vector<ValueId>& in,
                                       const std::vector<ValueId>& out) {
  check_name(name);
  NETCL_CHECK(!out.empty(), ErrorCode::kPlugin, "fused ", name, ": it has no output");
  check_values(recorder, name, "input", in);
  check_values(recorder, name, "output", out);
  auto op = std::make_shared<FusedOp>();
  op->row.name = name;
  op->row.min_in = op->row.max_in = in.size();
  std::map<ValueId, ValueId> inside;  // values of the recorder in the body
  for (const ValueId v : in) inside[v] = op->body.input(recorder.desc(v));
  for (const size_t i : between(recorder, name, in, out)) {
    const Node& node = recorder.nodes()[i];
    std::vector<ValueId> operands;
    for (const ValueId v : node.in) operands.push_back(inside.at(v));
    const std::vector<ValueId> made = op->body.repeat(node, operands);
    // An op can make an output of this one and an input as well, which stays the input.
    for (size_t k = 0; k < made.size(); ++k) inside.emplace(node.out[k], made[k]);
  }
  for (const ValueId v : out) {
    op->out.push_back(inside.at(v));
    op->out_descs.push_back(recorder.desc(v));
  }
  return op;
}

}  // namespace netcl
