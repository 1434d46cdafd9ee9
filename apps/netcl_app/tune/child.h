// The child of `netcl-app tune`: opens the device, compiles, checks and times candidates as it is
// told. A candidate that takes the process down takes nothing else with it.
#ifndef NETCL_APPS_NETCL_APP_TUNE_CHILD_H_
#define NETCL_APPS_NETCL_APP_TUNE_CHILD_H_

namespace netcl::app {

// Answers requests (messages.h) until there are no more; returns the exit code. `parent`: pid of
// the tuner, with which it ends.
int tune_child_main(int parent);

}  // namespace netcl::app

#endif  // NETCL_APPS_NETCL_APP_TUNE_CHILD_H_
