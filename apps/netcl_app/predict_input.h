// The samples that predict is given: features without labels. Threads: any.
#ifndef NETCL_APPS_NETCL_APP_PREDICT_INPUT_H_
#define NETCL_APPS_NETCL_APP_PREDICT_INPUT_H_

#include <string>

#include "apps/netcl_app/formats/data_config.h"
#include "core/data/dataset.h"

namespace netcl::app {

// Reads .csv, .tsv, .npy and IDX files (.gz too), by the name's ending and, without a known one, by
// the format of the training data. A table may hold the label's column, which is left out. Features
// are scaled as in training. `elements`: values of one sample; `dtype`: what the model takes.
// Errors: kData, naming file and row; also for samples of another size.
Dataset read_features(const std::string& path, const DataConfig& config, int64_t elements,
                      DType dtype);

}  // namespace netcl::app

#endif  // NETCL_APPS_NETCL_APP_PREDICT_INPUT_H_
