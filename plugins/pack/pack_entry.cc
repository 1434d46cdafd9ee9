// The one compiled object behind every kernel set that is pure data: a copy of it lies in each
// set's directory and serves what it finds there.
#include "core/abi/netcl_plugin.hpp"
#include "plugins/pack/pack_plugin.h"

NETCL_PLUGIN(netcl::pack::PackPlugin)
