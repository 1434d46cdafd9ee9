// Samples made from a seed, for trying out models and devices without files. Threads: any.
#ifndef NETCL_APPS_NETCL_APP_FORMATS_SYNTHETIC_H_
#define NETCL_APPS_NETCL_APP_FORMATS_SYNTHETIC_H_

#include "apps/netcl_app/formats/data_config.h"
#include "apps/netcl_app/formats/samples.h"

namespace netcl::app {

// Class i % classes for sample i. Blobs: a centre for each class, every value of it from -1 to 1,
// and around it a bell of width 1/2. Noise: the bell alone. The same seed gives the same samples on
// every machine.
Samples make_synthetic(const SyntheticConfig& config);

}  // namespace netcl::app

#endif  // NETCL_APPS_NETCL_APP_FORMATS_SYNTHETIC_H_
