#include "core/distributed/model.h"

#include <algorithm>

#include "core/base/error.h"

namespace netcl {

Model::Model(Runtime& runtime, std::vector<LayerSpec> layers, Shape input)
    : runtime_(&runtime), layers_(std::move(layers)), input_(std::move(input)) {
  NETCL_CHECK(!layers_.empty(), ErrorCode::kUsage, "a model needs at least one layer");
  for (const LayerSpec& layer : layers_) {
    runtime.layers().find(layer.config.at("type").get<std::string>());
  }
  if (input_.rank() > 0) return;
  const bool linear = layers_[0].in > 0 && layers_[0].config.at("type") == "linear";
  NETCL_CHECK(linear, ErrorCode::kUsage, "a model that begins with ",
              layers_[0].config.at("type").get<std::string>(),
              " does not say what a sample looks like; give its shape behind the layers, such as "
              "Shape{1, 28, 28}");
  input_ = Shape{layers_[0].in};
}

StepGraphs Model::trace(StepSpec spec) const {
  spec.input = input_;
  spec.layers = nlohmann::ordered_json::array();
  for (const LayerSpec& layer : layers_) spec.layers.push_back(layer.config);
  StepGraphs out = build_step_graphs(spec, runtime_->layers());
  check_inputs(out);
  return out;
}

// A layer takes whatever comes; what the program said it takes must be that.
void Model::check_inputs(const StepGraphs& graphs) const {
  for (size_t i = 0; i < layers_.size(); ++i) {
    const LayerSpec& layer = layers_[i];
    const std::string name = str_cat("layers.", i, ".weight");
    const auto slot = std::find_if(graphs.slots.begin(), graphs.slots.end(),
                                   [&](const Slot& s) { return s.name == name; });
    if (layer.in == 0 || slot == graphs.slots.end()) continue;
    const int64_t elements = slot->desc.shape.num_elements();
    NETCL_CHECK(elements == layer.weight_elements, ErrorCode::kUsage, "model.layers[", i, "] (",
                layer.config.at("type").get<std::string>(), "): takes ", layer.in,
                " inputs as it is written, but gets ", elements * layer.in / layer.weight_elements,
                "; make it as wide as what comes before it");
  }
}

}  // namespace netcl
