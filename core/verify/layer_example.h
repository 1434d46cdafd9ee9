// A layer with keys and an input that it takes: what checks of layers are made with.
//
// What a layer takes is not written down anywhere, so it is found by trying: the defaults, small
// values for the keys that have none, and inputs of usual forms (features, sequences, pictures,
// tokens). An author can say it instead, in verify.json beside the manifest:
//   {"layers": [{"type": "vendor.type", "input": [3, 32], "input_dtype": "f32", "rate": 0.5}]}
// Threads: those of the layers' provider.
#ifndef NETCL_CORE_VERIFY_LAYER_EXAMPLE_H_
#define NETCL_CORE_VERIFY_LAYER_EXAMPLE_H_

#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "core/graph/graph.h"
#include "core/nn/tracer.h"

namespace netcl {

struct LayerExample {
  nlohmann::ordered_json config;  // "type" and keys
  TensorDesc sample;              // one sample of the input, without the batch
  int64_t int_high = 2;           // integers of the input are below it

  std::string text() const;  // {"type":"linear","out":4} of f32[7]
};

// A graph of core ops alone: a fused op is the ops that were recorded for it.
class PlainGraph : public Graph {
 protected:
  bool keeps_fused() const override { return false; }
};

// A layer as a step would hold it: ops with a symbolic batch size.
struct TracedExample {
  PlainGraph graph;
  std::vector<Slot> slots;
  std::map<std::string, ValueId> slot_values;  // by name
  std::vector<ValueId> in, out;
  std::optional<ValueId> random;  // the step's random state, if it is asked for
};

// Errors: those of the layer.
TracedExample trace_example(const LayerExample& example, LayerProvider& layers, bool training);

// The first example that the layer takes, then others: further inputs with the same keys, and other
// values of each key in turn. Errors: kPlugin, with the layer's last words, if it takes none.
std::vector<LayerExample> find_examples(const LayerType& type, LayerProvider& layers);

// Those that verify.json of the directory gives for the type; none without the file. Errors:
// kUsage, naming the place in the file.
std::vector<LayerExample> given_examples(const std::string& directory, const std::string& type);

}  // namespace netcl

#endif  // NETCL_CORE_VERIFY_LAYER_EXAMPLE_H_
