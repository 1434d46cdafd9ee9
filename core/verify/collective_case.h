// One collective of a check: its data on every rank, what must come of it, and running it.
// Threads: CollectiveCase: any; ExpectedResults: any.
#ifndef NETCL_CORE_VERIFY_COLLECTIVE_CASE_H_
#define NETCL_CORE_VERIFY_COLLECTIVE_CASE_H_

#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <vector>

#include "core/abi/netcl_plugin.h"
#include "core/verify/transport_rank.h"

namespace netcl {

// A hash of x whose bits look random (splitmix64).
uint64_t mixed(uint64_t x);

struct CollectiveCase {
  uint32_t kind = NETCL_ALL_REDUCE, dtype = NETCL_F32, op = NETCL_SUM;
  uint64_t count = 0, offset = 0;  // elements
  uint64_t seed = 1;

  bool reduces() const { return kind == NETCL_ALL_REDUCE || kind == NETCL_REDUCE_SCATTER; }
  bool has_parts() const {
    return kind != NETCL_ALL_REDUCE && kind != NETCL_BROADCAST && kind != NETCL_BARRIER;
  }
  uint32_t root(uint32_t n) const { return static_cast<uint32_t>(seed % n); }
  // "kind 1 dtype 2 ...", for messages.
  std::string text() const;
  // Even seeds give no counts, which means equal ones; odd ones anything, also nothing.
  std::vector<uint64_t> parts(uint32_t n) const;
  double weight(uint32_t rank) const;
  // Any bits for integers; for floats values whose sums round, and those that arithmetic trips
  // over. A rank of weight 0 has nothing but NaN.
  uint64_t element(uint32_t rank, uint64_t i) const;
  std::vector<char> contribution(uint32_t rank) const;
  // The whole range; a rank gets its part of it.
  std::vector<char> result(uint32_t n) const;
};

// Every combination of kind, type and reduction, with no elements.
std::vector<CollectiveCase> collective_combinations();

// The cases of a matrix for `n_ranks`: every combination with every count, of which three ranks
// meet all and others an even choice. They fit in a bucket of `kMatrixBucketBytes`.
constexpr uint64_t kMatrixBucketBytes = 100 * 1024;
std::vector<CollectiveCase> collective_matrix(uint32_t n_ranks,
                                              const std::vector<uint64_t>& counts);

// Computes each case's result once for all ranks of a process.
class ExpectedResults {
 public:
  std::vector<char> of(const CollectiveCase& c, uint32_t n);

 private:
  std::mutex mutex_;
  std::map<uint64_t, std::vector<char>> results_;  // by seed
};

// Keeps a thread busy for a number of rounds that depends on nothing but its arguments.
void spin(uint64_t rounds);

// Runs the case on this rank (all ranks do) and compares the result bit by bit, and the bytes
// around the range with what they were. Returns the first difference in words, or "". Errors:
// TransportStatus, kDevice.
std::string check_collective(TransportRank& rank, const netcl_bucket& bucket,
                             const CollectiveCase& c, ExpectedResults& expected);

}  // namespace netcl

#endif  // NETCL_CORE_VERIFY_COLLECTIVE_CASE_H_
