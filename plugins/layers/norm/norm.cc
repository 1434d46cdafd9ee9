// Layers that normalise.
#include "plugins/layers/norm/batch_norm.h"
#include "plugins/layers/norm/row_norms.h"

namespace {

class Norm : public netcl::plugin::LayerFamily {
 public:
  explicit Norm(const netcl_host* host) : LayerFamily(host) {
    add(netcl::norm::batch_norm_type());
    for (netcl::plugin::LayerType& type : netcl::norm::row_norm_types()) add(std::move(type));
  }
  std::string_view id() const override { return "norm"; }
  std::string_view version() const override { return "1.0.0"; }
};

}  // namespace

NETCL_PLUGIN(Norm)
