// The checks of a transport: groups of ranks, each a child process (or, where the transport needs
// one OpenCL context, all on threads of one), watched from here: what they say, how they end, and
// that they end at all.
// Threads: one.
#ifndef NETCL_APPS_NETCL_APP_VERIFY_GROUPS_H_
#define NETCL_APPS_NETCL_APP_VERIFY_GROUPS_H_

#include "apps/netcl_app/verify/run_units.h"

namespace netcl::app::verify {

// Runs the transport's checks that the plan has. `setup` has a device.
void run_groups(const Setup& setup, const Manifest& manifest, const Plan& plan, Report& report);

}  // namespace netcl::app::verify

#endif  // NETCL_APPS_NETCL_APP_VERIFY_GROUPS_H_
