// Processors of a worker that shares its device with others.
#ifndef NETCL_APPS_NETCL_APP_OWN_CORES_H_
#define NETCL_APPS_NETCL_APP_OWN_CORES_H_

#include "apps/netcl_app/job.h"

namespace netcl::app {

// Workers that share a CPU device each keep to their own cores: [i C / n, (i + 1) C / n), at least
// one. Before the first OpenCL call, since drivers start their threads then.
void keep_to_own_cores(const Job& job);

}  // namespace netcl::app

#endif  // NETCL_APPS_NETCL_APP_OWN_CORES_H_
