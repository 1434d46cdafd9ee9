// Which ops the step compiler leaves as they are, so that kernels which somebody brought or asked
// for are used.
#ifndef NETCL_CORE_RUNTIME_OWN_KERNELS_H_
#define NETCL_CORE_RUNTIME_OWN_KERNELS_H_

#include <map>
#include <set>
#include <string>
#include <vector>

#include "core/runtime/kernel_choice.h"

namespace netcl {

// Ops that are pinned, and those for which one of `devices` has a kernel set that is asked before
// every set there that serves what a pass would make of them (kernel_rank.h): a set with tanh that
// somebody adds is used, although netcl's own could compute tanh and its neighbours at once. The
// same for all workers of a run, whatever their devices. Threads: any.
std::set<std::string> ops_with_own_kernels(const PluginHost& plugins,
                                           const std::vector<DeviceInfo>& devices,
                                           const std::map<std::string, KernelPin>& pins);

}  // namespace netcl

#endif  // NETCL_CORE_RUNTIME_OWN_KERNELS_H_
