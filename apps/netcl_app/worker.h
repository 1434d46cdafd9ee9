// The worker: one process for one device. It opens its own OpenCL driver only, trains its shard of
// every batch, and tells the supervisor what happens in JSON lines on its status descriptor.
//
// Messages ("type"): ready, step, epoch, note, done, error.
#ifndef NETCL_APPS_NETCL_APP_WORKER_H_
#define NETCL_APPS_NETCL_APP_WORKER_H_

namespace netcl::app {

// Entry of the hidden command `worker`; returns the exit code.
int worker_main();

}  // namespace netcl::app

#endif  // NETCL_APPS_NETCL_APP_WORKER_H_
