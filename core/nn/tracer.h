// Tracer: walks a model's configuration through its layers and records their ops.
//
// It checks each layer's keys against the layer's own specification, names the slots after their
// place in the model ("layers.0.weight"), and prefixes every error with the key's path. The
// training and the evaluation graph are traced from the same configuration and share the slots.
#ifndef NETCL_CORE_NN_TRACER_H_
#define NETCL_CORE_NN_TRACER_H_

#include <functional>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "core/nn/layer_type.h"
#include "core/ops/recorder.h"

namespace netcl {

// A trained parameter as a layer declared it.
struct Slot {
  std::string name;
  TensorDesc desc;
  uint32_t init = 0;  // NETCL_INIT_*
  double a = 0, b = 0;
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
  ValueId slot(const std::string& name, const TensorDesc& desc, uint32_t init, double a, double b);
  std::pair<ValueId, int64_t> random_stream();
  std::vector<ValueId> nested(int64_t handle, uint32_t index, const std::vector<ValueId>& in);

 private:
  struct NestedList {
    const nlohmann::ordered_json* layers;
    std::string path;
  };
  std::vector<ValueId> layer(const nlohmann::ordered_json& config, const std::string& path,
                             const std::vector<ValueId>& in);
  LayerArgs check_args(const LayerType& type, const nlohmann::ordered_json& config,
                       const std::string& path);
  [[noreturn]] void bad(const std::string& path, const std::string& message) const;

  Recorder& recorder_;
  LayerProvider& layers_;
  std::vector<Slot>& slots_;
  std::function<ValueId(const Slot&)> slot_value_;
  std::function<ValueId()> random_state_;
  TraceOptions options_;
  std::vector<NestedList> lists_;
  std::string path_;  // of the layer being traced
  int64_t next_stream_ = 0;
};

}  // namespace netcl

#endif  // NETCL_CORE_NN_TRACER_H_
