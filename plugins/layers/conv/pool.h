// Pooling layers: max_pool1d, max_pool2d, avg_pool1d, avg_pool2d, their adaptive forms and
// global_avg_pool.
#ifndef NETCL_PLUGINS_LAYERS_CONV_POOL_H_
#define NETCL_PLUGINS_LAYERS_CONV_POOL_H_

#include <vector>

#include "core/abi/netcl_plugin.hpp"

namespace netcl {
namespace conv {

std::vector<plugin::LayerType> pool_layers();

}  // namespace conv
}  // namespace netcl

#endif  // NETCL_PLUGINS_LAYERS_CONV_POOL_H_
