// Evaluator: the sums of a whole data set over all ranks, each sample once.
#ifndef NETCL_CORE_DISTRIBUTED_EVALUATOR_H_
#define NETCL_CORE_DISTRIBUTED_EVALUATOR_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "core/cl/pinned.h"
#include "core/data/batches.h"
#include "core/data/dataset.h"
#include "core/data/prefetcher.h"
#include "core/distributed/group.h"
#include "core/distributed/replica.h"
#include "core/distributed/sums.h"

namespace netcl {

class Evaluator {
 public:
  struct Hooks {
    std::function<void(bool first)> pass;  // before every pass; `first`: of the first evaluation
    std::function<bool()> stop_requested;
  };

  // `pass_rows`: the most samples of one pass.
  Evaluator(Replica& replica, Group group, int64_t pass_rows, Hooks hooks);

  // Evaluates this rank's part `mine` of the data, staged through `memory`, and adds up over the
  // ranks; nothing if a stop was requested on any of them. Collective.
  std::optional<Sums> run(const Dataset& data, IndexRange mine, const BatchSlot& memory);
  // The same with the same bits on any number of ranks: passes are blocks of the data that do not
  // depend on the ranks, each rank takes its part of them by `weights`, and their sums are added in
  // the order of the blocks.
  std::optional<Sums> run_in_order(const Dataset& data, const std::vector<int64_t>& weights,
                                   const BatchSlot& memory);

 private:
  Sums empty_sums() const;
  bool evaluate_rows(const Dataset& data, IndexRange rows, const BatchSlot& memory, Sums& total);
  std::optional<Sums> add_over_ranks(const Sums& mine, bool stopped);
  std::vector<double> add_values(const std::vector<double>& mine);

  Replica& replica_;
  const Group group_;
  const int64_t pass_rows_;
  const Hooks hooks_;
  std::unique_ptr<PinnedBuffer> eval_sums_;
  double* shared_sums_ = nullptr;  // n_ranks rows, for more sums than an exchange carries
  int64_t evaluations_ = 0;
};

}  // namespace netcl

#endif  // NETCL_CORE_DISTRIBUTED_EVALUATOR_H_
