// The "data" section of a training configuration. Threads: values.
#ifndef NETCL_APPS_NETCL_APP_DATA_SECTION_H_
#define NETCL_APPS_NETCL_APP_DATA_SECTION_H_

#include <cstdint>
#include <filesystem>
#include <vector>

#include "apps/netcl_app/formats/data_config.h"
#include "core/base/json_doc.h"

namespace netcl::app {

// `folder`: what relative paths refer to; `seed`: the run's; `input`: the model's, which synthetic
// data takes for its samples. Errors: kUsage with place and path.
DataConfig parse_data(const ConfigView& view, const std::filesystem::path& folder, uint64_t seed,
                      const std::vector<int64_t>& input);

// All values with their defaults and absolute paths; parses again to the same.
Json resolved_data(const DataConfig& data);

}  // namespace netcl::app

#endif  // NETCL_APPS_NETCL_APP_DATA_SECTION_H_
