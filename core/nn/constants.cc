#include "core/nn/constants.h"

#include <utility>

namespace netcl {

ValueId Constants::add(Graph& graph, const std::string& name, const TensorDesc& desc,
                       const void* bytes) {
  for (const Graph::Place& place : graph.externals()) {
    if (place.name == name) return place.value;
  }
  bool known = false;
  for (const Entry& entry : entries_) known = known || entry.name == name;
  if (!known) {
    const char* begin = static_cast<const char*>(bytes);
    entries_.push_back({name, desc, {begin, begin + desc.size_bytes()}});
  }
  return graph.external(name, desc);
}

ValueId Constants::in_graph(Graph& graph, const std::string& name, const std::vector<float>& values,
                            Shape shape) {
  return add(graph, name, {DType::kF32, std::move(shape)}, values.data());
}

ValueId Constants::in_graph(Graph& graph, const std::string& name,
                            const std::vector<int32_t>& values, Shape shape) {
  return add(graph, name, {DType::kI32, std::move(shape)}, values.data());
}

}  // namespace netcl
