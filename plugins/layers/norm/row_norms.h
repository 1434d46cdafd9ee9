// The layers layer_norm, rms_norm and group_norm, which normalise each sample by itself.
#ifndef NETCL_PLUGINS_LAYERS_NORM_ROW_NORMS_H_
#define NETCL_PLUGINS_LAYERS_NORM_ROW_NORMS_H_

#include <vector>

#include "core/abi/netcl_plugin.hpp"

namespace netcl {
namespace norm {

std::vector<plugin::LayerType> row_norm_types();

}  // namespace norm
}  // namespace netcl

#endif  // NETCL_PLUGINS_LAYERS_NORM_ROW_NORMS_H_
