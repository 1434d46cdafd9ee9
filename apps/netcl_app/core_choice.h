// How many cores of a CPU device a step uses. A driver wakes all its threads for every launch,
// whatever there is to do: the steps of a small model are faster on some of many cores.
#ifndef NETCL_APPS_NETCL_APP_CORE_CHOICE_H_
#define NETCL_APPS_NETCL_APP_CORE_CHOICE_H_

#include <CLI/CLI.hpp>
#include <cstdint>
#include <string>
#include <vector>

#include "apps/netcl_app/config.h"
#include "core/distributed/selectors.h"
#include "core/graph/step_work.h"
#include "core/nn/step_graphs.h"

namespace netcl::app {

// Of a pass and the update of one of `n_workers`.
StepWork work_of_step(const StepGraphs& graphs, const TrainConfig& config, size_t n_workers);

// The number of cores, 1 or more, with which a step of this work is estimated to be shortest: the
// work's seconds, divided by the cores, and for every launch the time that it takes to wake each of
// them. The constants were measured with PoCL 5.0 on 16 cores (core_choice.cc).
int64_t useful_cores(const StepWork& work);

// --cores: "auto", "all" or a number.
void add_cores(CLI::App& command, std::string& wish);
// Most cores for each CPU device that is not divided; 0: all. Errors: kUsage.
int64_t most_cores(const std::string& wish, const StepWork& work);
// "cpu:0 works on 3 of its 16 cores: ...", of each place that this leaves cores of; or "".
std::string core_note(const std::vector<WorkerPlace>& places, int64_t most_cores);

}  // namespace netcl::app

#endif  // NETCL_APPS_NETCL_APP_CORE_CHOICE_H_
