#include "plugins/layers/models/models.h"

namespace {

class Models : public netcl::plugin::LayerFamily {
 public:
  explicit Models(const netcl_host* host) : LayerFamily(host) {
    for (auto& type : netcl::models::convolutional_models()) add(std::move(type));
    for (auto& type : netcl::models::transformer_models()) add(std::move(type));
  }
  std::string_view id() const override { return "models"; }
  std::string_view version() const override { return "1.0.0"; }
};

}  // namespace

NETCL_PLUGIN(Models)
