#include "core/graph/graph.h"

#include <algorithm>

#include "core/base/error.h"

namespace netcl {

ValueId Graph::external(const std::string& name, TensorDesc desc) {
  for (const Place& place : externals_) {
    NETCL_CHECK(place.name != name, ErrorCode::kInternal, "graph: external \"", name,
                "\" is given twice");
  }
  const ValueId value = add_value(std::move(desc));
  externals_.push_back({name, value});
  return value;
}

bool Graph::is_external(ValueId value) const {
  return std::any_of(externals_.begin(), externals_.end(),
                     [&](const Place& p) { return p.value == value; });
}

ValueId Graph::root(ValueId value) const {
  for (auto it = view_of_.find(value); it != view_of_.end(); it = view_of_.find(value))
    value = it->second;
  return value;
}

void Graph::output(const std::string& name, ValueId value) {
  const ValueId r = root(value);
  const bool taken = std::any_of(outputs_.begin(), outputs_.end(),
                                 [&](const Place& p) { return root(p.value) == r; });
  if (taken || is_external(r))
    value = call("broadcast_to", {value}, {{"shape", desc(value).shape}});
  outputs_.push_back({name, value});
}

void Graph::recorded(const Node& node) {
  if (node.op->view) view_of_[node.out[0]] = node.in[0];
}

Node Graph::detached(const std::string& op, const std::vector<ValueId>& in, Attrs attrs) {
  apply(op, in, std::move(attrs));
  Node out = std::move(nodes_.back());
  nodes_.pop_back();
  return out;
}

const std::string* Graph::origin(ValueId value) const {
  const auto found = origins_.find(value);
  return found == origins_.end() ? nullptr : &found->second;
}

std::string Graph::describe(ValueId value) const {
  for (const Place& place : externals_) {
    if (place.value == value) return place.name;
  }
  const auto made = std::find_if(nodes_.begin(), nodes_.end(), [&](const Node& node) {
    return std::find(node.out.begin(), node.out.end(), value) != node.out.end();
  });
  if (made == nodes_.end()) return str_cat("value ", value);
  const std::string text = "the output of " + made->op->name;
  if (const auto part = origins_.find(value); part != origins_.end())
    return text + " in " + part->second;
  // The backward part is recorded after the layers, from what they made.
  for (auto in = made->in.rbegin(); in != made->in.rend(); ++in) {
    const auto part = origins_.find(*in);
    if (part != origins_.end()) return text + ", which follows from " + part->second;
  }
  return text;
}

std::string Graph::str() const {
  const auto list = [](const std::vector<ValueId>& values) {
    std::string text;
    for (const ValueId v : values) text += (text.empty() ? "v" : ", v") + std::to_string(v);
    return text;
  };
  std::string out;
  for (const Place& place : externals_) {
    out +=
        str_cat("v", place.value, " = external ", place.name, " : ", desc(place.value).str(), "\n");
  }
  for (const Node& node : nodes_) {
    out += str_cat(list(node.out), " = ", node.op->name, "(", list(node.in), ")");
    if (!node.attrs.items().empty()) out += " " + node.attrs.str();
    out += " : " + desc(node.out[0]).str() + "\n";
  }
  for (const Place& place : outputs_)
    out += str_cat("output ", place.name, " = v", place.value, "\n");
  return out;
}

}  // namespace netcl
