#include "core/distributed/statistics_merge.h"

#include <algorithm>
#include <numeric>
#include <vector>

#include "core/distributed/divergence.h"

namespace netcl {

bool merge_statistics(Replica& replica, const Group& group, double samples) {
  const StepGraphs& graphs = replica.graphs();
  const bool equal = std::all_of(graphs.statistics.begin(), graphs.statistics.end(),
                                 [](const Slot& slot) { return slot.merge == NETCL_MERGE_NONE; });
  if (group.sums == nullptr || equal) return false;
  std::vector<double> weights(group.n_ranks);
  group.bootstrap->exchange(&samples, sizeof(double), weights.data());
  const double total = std::accumulate(weights.begin(), weights.end(), 0.0);
  if (total == 0) return true;
  std::vector<float> arena = replica.read_statistics();
  for (const Slot& slot : graphs.statistics) {
    const double factor = slot.merge == NETCL_MERGE_WEIGHTED_MEAN ? weights[group.rank] / total
                          : group.rank == 0                       ? 1.0
                                                                  : 0.0;
    const ArenaLayout::Entry& entry = graphs.statistic_values.find(slot.name);
    const auto begin = arena.begin() + entry.offset;
    std::transform(begin, begin + entry.desc.shape.num_elements(), begin,
                   [factor](float x) { return factor > 0 ? static_cast<float>(factor * x) : 0; });
  }
  replica.write_statistics(group.sums->add_up(arena, "statistics"));
  return true;
}

void check_statistics(Replica& replica, int64_t step) {
  const StepGraphs& graphs = replica.graphs();
  const std::string bad =
      first_bad_tensor(graphs.statistics, graphs.statistic_values, "", replica.read_statistics());
  NETCL_CHECK(bad.empty(), ErrorCode::kTraining, "the statistic ", bad, " is no number after step ",
              step, ": its layer computed it from too few samples, or training diverged");
}

}  // namespace netcl
