// What a data set must hold for a model, asked before anything is started: a label that is no
// output's number would be read beyond the end of an array on the device.
#ifndef NETCL_APPS_NETCL_APP_DATA_CHECKS_H_
#define NETCL_APPS_NETCL_APP_DATA_CHECKS_H_

#include "apps/netcl_app/config.h"
#include "apps/netcl_app/formats/load.h"
#include "core/nn/step_graphs.h"

namespace netcl::app {

// Labels, tokens and targets of both splits. Errors: kData, naming file and row.
void check_data(const TrainConfig& config, const LoadedData& data, const StepGraphs& graphs);

}  // namespace netcl::app

#endif  // NETCL_APPS_NETCL_APP_DATA_CHECKS_H_
