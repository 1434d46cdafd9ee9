// Processors of a worker that shares its device with others.
#ifndef NETCL_APPS_NETCL_APP_OWN_CORES_H_
#define NETCL_APPS_NETCL_APP_OWN_CORES_H_

#include "apps/netcl_app/job.h"

namespace netcl::app {

// Workers that share a CPU device each keep to their own cores: an even part of those that this
// process may use, at least one, or as many as the selector says. Before the first OpenCL call,
// since drivers start their threads then. Errors: kUsage, if the selector names more than there
// are.
void keep_to_own_cores(const Job& job);

}  // namespace netcl::app

#endif  // NETCL_APPS_NETCL_APP_OWN_CORES_H_
