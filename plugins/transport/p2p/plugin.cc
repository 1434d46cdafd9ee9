// Entry of the shared object; see p2p_transport.h.
#include "plugins/transport/p2p/p2p_transport.h"

NETCL_PLUGIN(netcl::p2p_transport::P2pTransport)
