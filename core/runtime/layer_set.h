// The layer types that plugins offer, found by name through their manifests.
#ifndef NETCL_CORE_RUNTIME_LAYER_SET_H_
#define NETCL_CORE_RUNTIME_LAYER_SET_H_

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "core/nn/layer_type.h"
#include "core/runtime/plugin_host.h"

namespace netcl {

class LayerSet : public LayerProvider {
 public:
  explicit LayerSet(PluginHost& plugins) : plugins_(plugins) {}
  // Opens the plugin that offers the type, at its first use.
  const LayerType& find(const std::string& name) override;
  // The types of one plugin, sorted by name; opens it.
  std::vector<const LayerType*> types_of(const std::string& plugin_id);

 private:
  std::vector<std::string> open(const std::string& plugin_id);

  PluginHost& plugins_;
  std::map<std::string, std::unique_ptr<LayerType>> types_;
};

}  // namespace netcl

#endif  // NETCL_CORE_RUNTIME_LAYER_SET_H_
