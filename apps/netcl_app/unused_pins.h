// Pins of kernels for ops that a step does not hold.
#ifndef NETCL_APPS_NETCL_APP_UNUSED_PINS_H_
#define NETCL_APPS_NETCL_APP_UNUSED_PINS_H_

#include <map>
#include <string>

#include "core/cl/device.h"
#include "core/runtime/kernel_choice.h"

namespace netcl::app {

// Nobody has planned by these pins: each variant must plan one of its op's cases at least, so that
// a misspelt one is no silent nothing. `kernels` has chosen all kernels of the step.
// Errors: kPlugin, naming the variants that there are.
void check_unused_pins(const std::map<std::string, KernelPin>& pins, const KernelChoice& kernels,
                       PluginHost& plugins, Device& device);

}  // namespace netcl::app

#endif  // NETCL_APPS_NETCL_APP_UNUSED_PINS_H_
