// What a run says at its end about the devices it had.
#ifndef NETCL_CORE_DISTRIBUTED_SHARD_ACCOUNT_H_
#define NETCL_CORE_DISTRIBUTED_SHARD_ACCOUNT_H_

#include <string>
#include <vector>

namespace netcl {

struct ShardAccount {
  struct Rank {
    std::string name;
    double solo_samples_per_second = 0;  // of whole batches alone, by its fit; 0: not measured
    bool left_out = false;      // it has no rows, or left, because a step is shorter without it
    double change_without = 0;  // of the speed of all, if it had no rows: -0.3 is 30 % slower
  };
  std::vector<Rank> ranks;
  double all_samples_per_second = 0;  // the median of the last full steps; 0: not measured
  double exposed = 0;  // part of a step after the last gradient was ready: sums and waiting

  double sum_samples_per_second() const {
    double sum = 0;
    for (const Rank& rank : ranks) sum += rank.solo_samples_per_second;
    return sum;
  }
};

}  // namespace netcl

#endif  // NETCL_CORE_DISTRIBUTED_SHARD_ACCOUNT_H_
