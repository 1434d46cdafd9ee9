// Models by name: each is a layer made of other layers, whose parts carry the names that PyTorch
// users know ("layer1.0.conv1.weight"). They go into a configuration as {"type": "resnet18", ...}.
#ifndef NETCL_PLUGINS_LAYERS_MODELS_MODELS_H_
#define NETCL_PLUGINS_LAYERS_MODELS_MODELS_H_

#include <string>
#include <vector>

#include "core/abi/netcl_plugin.hpp"

namespace netcl {
namespace models {

std::vector<plugin::LayerType> convolutional_models();  // mlp, lenet5, resnet18/34/50
std::vector<plugin::LayerType> transformer_models();    // vit_tiny, gpt_mini

inline plugin::AttrSpec integer(const char* key, double def, double min, double max,
                                const char* doc) {
  return {key, NETCL_ATTR_INT, false, def, "", min, max, "", doc};
}
inline plugin::AttrSpec probability(const char* key, const char* doc) {
  return {key, NETCL_ATTR_FLOAT, false, 0, "", 0, 0.999999, "", doc};
}

// A batch of images [B,C,H,W]; images without channels, [B,H,W], get one.
inline plugin::Value images(const plugin::Trace& t, const char* model) {
  const plugin::Value x = t.input(0);
  std::vector<int64_t> shape = t.shape(x);
  if (shape.size() == 4) return x;
  if (shape.size() != 3) {
    throw plugin::Failure(NETCL_E_ARG, std::string(model) +
                                           " takes images [B,C,H,W] or [B,H,W], was given " +
                                           plugin::shape_text(shape));
  }
  shape.insert(shape.begin() + 1, 1);
  return t.op("reshape", {x}, {plugin::attr_dims("shape", shape)});
}

}  // namespace models
}  // namespace netcl

#endif  // NETCL_PLUGINS_LAYERS_MODELS_MODELS_H_
