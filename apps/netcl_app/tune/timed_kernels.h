// Kernels on memory of their own, to be timed in turn.
// Threads: those of the queue.
#ifndef NETCL_APPS_NETCL_APP_TUNE_TIMED_KERNELS_H_
#define NETCL_APPS_NETCL_APP_TUNE_TIMED_KERNELS_H_

#include <memory>
#include <string>
#include <vector>

#include "core/cl/recipe.h"
#include "core/ops/op.h"
#include "core/tensor/queue.h"

namespace netcl::app {

class TimedKernels {
 public:
  // Errors: kDevice.
  TimedKernels(std::shared_ptr<Queue> queue, const std::vector<HostTensor>& in,
               const std::vector<TensorDesc>& out);

  // A recipe with the arguments set, ready to run. Errors: kDevice.
  std::unique_ptr<Executable> bind(const Recipe& recipe);

  // Units: microseconds a run. How often to run, so that a sample takes about two milliseconds.
  int runs_a_sample(const Executable& kernel);
  double sample(const Executable& kernel, int runs);

 private:
  std::shared_ptr<Queue> queue_;
  std::vector<std::shared_ptr<Storage>> in_, out_;
  std::vector<std::shared_ptr<Storage>> scratch_;  // of all kernels that were bound
};

}  // namespace netcl::app

#endif  // NETCL_APPS_NETCL_APP_TUNE_TIMED_KERNELS_H_
