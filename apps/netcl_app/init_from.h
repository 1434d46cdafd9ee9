// Initial parameters from a safetensors file: for fine-tuning, and for comparisons with other
// frameworks.
#ifndef NETCL_APPS_NETCL_APP_INIT_FROM_H_
#define NETCL_APPS_NETCL_APP_INIT_FROM_H_

#include "apps/netcl_app/optim_config.h"
#include "core/distributed/replica.h"

namespace netcl::app {

// Checks that the file holds every parameter and statistic of the model with its shape and nothing
// else; with a pattern only those that match are asked for, and the rest of the file is ignored.
// The optimiser's state in a checkpoint is ignored always.
// Errors: kCheckpoint, listing what is missing, extra or of another shape.
void check_initial(const StepGraphs& graphs, const InitFrom& from);

// Writes the file's values over a replica's, and resets the optimiser's state.
// Errors: as check_initial; kDevice.
void load_initial(Replica& replica, const InitFrom& from);

}  // namespace netcl::app

#endif  // NETCL_APPS_NETCL_APP_INIT_FROM_H_
