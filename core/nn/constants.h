// Values that a graph needs and that no op makes: lists of numbers that the configuration gives.
// A graph names each as an external; whoever runs it writes the bytes once. Threads: values.
#ifndef NETCL_CORE_NN_CONSTANTS_H_
#define NETCL_CORE_NN_CONSTANTS_H_

#include <string>
#include <vector>

#include "core/graph/graph.h"

namespace netcl {

class Constants {
 public:
  struct Entry {
    std::string name;
    TensorDesc desc;
    std::vector<char> bytes;
  };

  // The value in `graph`; the graphs of a step share the entry of a name.
  ValueId in_graph(Graph& graph, const std::string& name, const std::vector<float>& values,
                   Shape shape);
  ValueId in_graph(Graph& graph, const std::string& name, const std::vector<int32_t>& values,
                   Shape shape);

  const std::vector<Entry>& entries() const { return entries_; }

 private:
  ValueId add(Graph& graph, const std::string& name, const TensorDesc& desc, const void* bytes);

  std::vector<Entry> entries_;
};

}  // namespace netcl

#endif  // NETCL_CORE_NN_CONSTANTS_H_
