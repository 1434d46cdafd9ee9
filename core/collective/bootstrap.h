// The set-up channel between the ranks of a group: small exchanges and shared memory.
//
// It is what transports reach as boot_exchange, boot_shared and boot_status. Exchanges are
// collective: every rank makes the same calls in the same order. Several Bootstraps of one rank may
// follow each other on one segment (a group is closed and another opened).
//
// Ownership: a Bootstrap owns the shared memory it mapped and unmaps it when it is destroyed; the
// pages go back to the system when the last rank has let go.
// Threads: exchange and shared_memory: one thread of the rank at a time; status: any.
#ifndef NETCL_CORE_COLLECTIVE_BOOTSTRAP_H_
#define NETCL_CORE_COLLECTIVE_BOOTSTRAP_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/collective/segment.h"

namespace netcl {

class Bootstrap {
 public:
  // Units: timeout_ns, the longest wait for a peer in one exchange.
  Bootstrap(std::shared_ptr<Segment> segment, uint32_t rank, uint64_t timeout_ns);
  Bootstrap(const Bootstrap&) = delete;
  Bootstrap& operator=(const Bootstrap&) = delete;
  ~Bootstrap();

  uint32_t rank() const { return rank_; }
  uint32_t n_ranks() const { return segment_->n_ranks(); }
  Segment& segment() const { return *segment_; }

  // Gives `bytes` (at most kExchangeBytes) of `mine` to every rank; `all` receives n_ranks times
  // `bytes`, in rank order.
  // Errors: kTraining when the group is aborted (with the reason) or ranks are late (named);
  // kInternal when ranks ask for different sizes.
  void exchange(const void* mine, size_t bytes, void* all);

  // Zeroed, page-aligned memory that all ranks see. Collective.
  // Errors: as exchange, and kTraining on every rank when memory is short.
  void* shared_memory(uint64_t bytes);

  // The reason, once the group is aborted. Counts as progress of this rank: who asks waits for
  // peers, and lives.
  std::optional<std::string> status() const {
    segment_->tick(rank_);
    return segment_->aborted();
  }

 private:
  struct Piece {
    SharedRegion region;
    uint32_t entry;
  };
  // What every rank says about an allocation.
  struct Offer {
    uint64_t bytes, offset;
    uint32_t entry;
    int32_t error;
  };
  std::vector<uint32_t> late(uint64_t round) const;
  void wait_for_round(uint64_t round);
  Offer allocate(uint64_t bytes);
  void drop(uint32_t entry) const;

  std::shared_ptr<Segment> segment_;
  uint32_t rank_;
  uint64_t timeout_ns_;
  std::vector<Piece> pieces_;
};

}  // namespace netcl

#endif  // NETCL_CORE_COLLECTIVE_BOOTSTRAP_H_
