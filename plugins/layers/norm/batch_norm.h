// The batch_norm layer.
#ifndef NETCL_PLUGINS_LAYERS_NORM_BATCH_NORM_H_
#define NETCL_PLUGINS_LAYERS_NORM_BATCH_NORM_H_

#include "core/abi/netcl_plugin.hpp"

namespace netcl {
namespace norm {

plugin::LayerType batch_norm_type();

}  // namespace norm
}  // namespace netcl

#endif  // NETCL_PLUGINS_LAYERS_NORM_BATCH_NORM_H_
