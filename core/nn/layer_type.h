// What nn needs from above: layer types by name. core/runtime implements them with layer plugins.
#ifndef NETCL_CORE_NN_LAYER_TYPE_H_
#define NETCL_CORE_NN_LAYER_TYPE_H_

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "core/ops/attrs.h"
#include "core/ops/recorder.h"

namespace netcl {

class Tracer;

// One key of a layer's configuration.
struct LayerAttr {
  std::string key;
  uint32_t kind = 0;               // NETCL_ATTR_*
  std::optional<Attrs::Item> def;  // nullopt: required (or, for layers, an empty list)
  bool required = false;
  double min = 0, max = 0;  // both 0: no limits
  std::vector<std::string> choices;
  std::string doc;
};

// Checked arguments of one layer.
struct LayerArgs {
  struct Nested {
    int64_t handle;  // for Tracer::nested
    uint32_t count;
  };
  Attrs values;
  std::vector<std::pair<std::string, Nested>> nested;
};

class LayerType {
 public:
  virtual ~LayerType() = default;
  virtual const std::string& name() const = 0;
  virtual std::string doc() const { return {}; }  // a line that says what it does
  virtual const std::vector<LayerAttr>& attrs() const = 0;
  virtual size_t n_in() const = 0;
  virtual size_t n_out() const = 0;
  // Records the layer's ops and declares its slots through the tracer. Errors: kUsage, kPlugin.
  virtual std::vector<ValueId> trace(Tracer& tracer, const LayerArgs& args,
                                     const std::vector<ValueId>& in) const = 0;
};

class LayerProvider {
 public:
  virtual ~LayerProvider() = default;
  // Errors: kUsage with the nearest names if no plugin offers the type; kPlugin if two do.
  virtual const LayerType& find(const std::string& name) = 0;
};

}  // namespace netcl

#endif  // NETCL_CORE_NN_LAYER_TYPE_H_
