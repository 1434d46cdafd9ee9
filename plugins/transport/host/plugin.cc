// Entry of the shared object; see host_transport.h.
#include "plugins/transport/host/host_transport.h"

NETCL_PLUGIN(netcl::host_transport::HostTransport)
