// Tracer: walks a model's configuration through its layers and records their ops.
//
// It checks each layer's keys against the layer's own specification, names the slots after their
// place in the model ("layers.0.weight"), and prefixes every error with the key's path. The
// training and the evaluation graph are traced from the same configuration and share the slots.
#ifndef NETCL_CORE_NN_TRACER_H_
#define NETCL_CORE_NN_TRACER_H_

#include <functional>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "core/autograd/backward.h"
#include "core/nn/layer_type.h"
#include "core/ops/recorder.h"

namespace netcl {

// A trained parameter, or a statistic that training changes without a gradient, as a layer declared
// it.
struct Slot {
  std::string name;
  TensorDesc desc;
  uint32_t init = 0;  // NETCL_INIT_*
  double a = 0, b = 0;
  bool statistic = false;
  uint32_t merge = 0;  // NETCL_MERGE_*: how the replicas' values of a statistic become one
};

// The next value of a statistic, as the training graph computes it.
struct SlotUpdate {
  std::string slot;
  ValueId next;
};

// The nodes that a layer recorded, those of the layers in it included.
struct TracedLayer {
  NodeRange nodes;
  std::string name;  // "model.layers[2] (conv2d)"
};

struct TraceOptions {
  bool training = true;
  // Gives a path of the configuration ("model.layers[2].out") its place ("digits.json:12"), or "".
  std::function<std::string(const std::string& path)> locate;
};

class Tracer {
 public:
  // `slot_value` returns the value that stands for a slot in this recorder; `random_state` that of
  // the step's random state. `slots` collects the declared slots, or is checked against when a
  // second graph is traced.
  Tracer(Recorder& recorder, LayerProvider& layers, std::vector<Slot>& slots,
         std::function<ValueId(const Slot&)> slot_value, std::function<ValueId()> random_state,
         TraceOptions options);

  // Traces a list of layers, one after the other. Errors: kUsage, prefixed with file:line and path.
  ValueId sequence(const nlohmann::ordered_json& layers, const std::string& path, ValueId x);

  // ---- services for layers (through the plugin boundary) ----
  Recorder& recorder() { return recorder_; }
  bool training() const { return options_.training; }
  // `slot.name` is the layer's own name for it.
  ValueId slot(Slot slot);
  // Assigns the next value of a statistic. Errors: kPlugin for a value that stands for none, one
  // assigned before, or another shape. In evaluation nothing is kept.
  void update_slot(ValueId statistic, ValueId next);
  std::pair<ValueId, int64_t> random_stream();
  std::vector<ValueId> nested(int64_t handle, uint32_t index, const std::vector<ValueId>& in);
  // Traces a layer of another type as the part `name` of the one being traced. `config` holds its
  // keys, "type" included; no nested layers.
  std::vector<ValueId> sublayer(const std::string& name, const nlohmann::ordered_json& config,
                                const std::vector<ValueId>& in);

  // Says that the ops recorded between `in` and `out` are what the fused op `name` computes;
  // returns the values to go on with. See Recorder::fused. Errors: kPlugin.
  std::vector<ValueId> fused(const std::string& name, const std::vector<ValueId>& in,
                             const Attrs& attrs, const std::vector<ValueId>& out) {
    return recorder_.fused(name, in, attrs, out);
  }

  const std::vector<SlotUpdate>& updates() const { return updates_; }
  // The nodes of layers with "recompute": true, outermost ones only.
  const std::vector<NodeRange>& recompute() const { return recompute_; }
  // Every layer that was traced, inner ones before those that hold them.
  const std::vector<TracedLayer>& traced() const { return traced_; }

 private:
  struct NestedList {
    const nlohmann::ordered_json* layers;
    std::string path;
  };
  std::vector<ValueId> layer(const nlohmann::ordered_json& config, const std::string& path,
                             const std::vector<ValueId>& in);
  LayerArgs check_args(const LayerType& type, const nlohmann::ordered_json& config,
                       const std::string& path);
  bool wants_recompute(const nlohmann::ordered_json& config, const std::string& path) const;
  void mark_recompute(NodeRange range);
  [[noreturn]] void bad(const std::string& path, const std::string& message) const;

  Recorder& recorder_;
  LayerProvider& layers_;
  std::vector<Slot>& slots_;
  std::function<ValueId(const Slot&)> slot_value_;
  std::function<ValueId()> random_state_;
  TraceOptions options_;
  std::vector<NestedList> lists_;
  std::string path_;                    // of the layer being traced
  std::map<ValueId, Slot> statistics_;  // by the value that stands for them
  std::vector<SlotUpdate> updates_;
  std::vector<NodeRange> recompute_;
  std::vector<TracedLayer> traced_;
  int64_t next_stream_ = 0;
};

}  // namespace netcl

#endif  // NETCL_CORE_NN_TRACER_H_
