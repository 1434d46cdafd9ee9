// The tuned records and the checks that a command's choice of kernels uses.
#ifndef NETCL_APPS_NETCL_APP_TUNED_SETUP_H_
#define NETCL_APPS_NETCL_APP_TUNED_SETUP_H_

#include <vector>

#include "core/base/json_doc.h"
#include "core/base/log.h"
#include "core/runtime/kernel_choice.h"
#include "core/runtime/tuned_options.h"

namespace netcl::app {

// For KernelChoice: these files, the user's verdicts, and checks by core/verify.
TunedOptions tuned_options(std::vector<TunedFile> files, Logger log);

// What was asked of the choice so far: {"op", "dtypes", "shapes", "attributes", "nodes"} each, the
// last how often it was asked. `netcl-app tune --from-run` reads it.
Json questions_json(const KernelChoice& kernels);

Json to_json(const std::vector<TunedFile>& files);
std::vector<TunedFile> tuned_files_from_json(const Json& json);

}  // namespace netcl::app

#endif  // NETCL_APPS_NETCL_APP_TUNED_SETUP_H_
