// QueueGroup: queues of one process that reduce and exchange with each other, a rank each.
//
// It is what worker processes have among them, within one process and served by one thread: the
// transport's collectives are started for every rank before any is waited for. What the ranks must
// do at the same time (opening the group, making buckets) runs on threads of its own for the while.
// Ownership: has the segment, the communicators and their buckets; the Runtime outlives it.
// Threads: one at a time.
#ifndef NETCL_CORE_DISTRIBUTED_QUEUE_GROUP_H_
#define NETCL_CORE_DISTRIBUTED_QUEUE_GROUP_H_

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/collective/bootstrap.h"
#include "core/collective/communicator.h"
#include "core/runtime/rank_link.h"
#include "core/runtime/runtime.h"
#include "core/tensor/tensor.h"

namespace netcl {

struct GroupOptions {
  std::string transport = "auto";  // by name; auto: the one of highest priority
  uint64_t timeout_ms = 300000;    // longest wait for another rank
};

// A bucket for every rank.
using Buckets = std::vector<const netcl_bucket*>;

// Runs `body` for each rank on a thread of its own; returns when all have ended. Throws what the
// first rank that failed threw, after `on_failure` was told why.
void on_threads(uint32_t n_ranks, const std::function<void(uint32_t)>& body,
                const std::function<void(const std::string&)>& on_failure);

class QueueGroup {
 public:
  // Errors: kUsage for no queues or a queue given twice; kPlugin if there is no such transport, or
  // it declines the group.
  QueueGroup(Runtime& runtime, std::vector<std::shared_ptr<Queue>> queues,
             const GroupOptions& options = {});
  QueueGroup(const QueueGroup&) = delete;
  QueueGroup& operator=(const QueueGroup&) = delete;
  ~QueueGroup();

  uint32_t size() const { return static_cast<uint32_t>(queues_.size()); }
  const std::shared_ptr<Queue>& queue(uint32_t rank) const { return queues_[rank]; }
  const std::string& transport() const;
  // Collectives on it must be started for every rank, in the same order, before one is waited for.
  Communicator& communicator(uint32_t rank);

  // The channel on which the ranks exchange small things; all of them at once, so on_ranks.
  Bootstrap& bootstrap(uint32_t rank);

  // Memory for collectives that lives as long as the group. Errors: kTraining if memory is short.
  Buckets new_buckets(uint64_t bytes);
  // Runs `body` for each rank on its own thread: for work in the middle of which ranks wait for
  // each other. An error stops the group and is thrown.
  void on_ranks(const std::function<void(uint32_t)>& body);

  // ---- what core/distributed/collectives.h is made of ----
  // What one rank gives and gets; offsets count elements of the collective.
  struct Transfer {
    std::optional<Tensor> in = {}, out = {};
    uint64_t in_offset = 0, out_offset = 0;
  };
  struct Collective {
    std::string name;
    DType dtype = DType::kF32;
    uint64_t count = 0;
    std::vector<Transfer> ranks;
    std::function<Ticket(Communicator&, uint32_t rank, const Span&)> post;
  };
  // Starts it on every rank behind what its queue holds; returns its number.
  uint64_t start(const Collective& what);
  // Waits for it and those before it; enqueues the copies of their results. An error (of any
  // collective of the group) is kept and thrown by every later call.
  void finish(uint64_t number);

 private:
  struct Pending {
    uint64_t number = 0, bytes = 0;
    Buckets buckets;
    std::vector<Ticket> tickets;
    std::vector<cl::Event> ready;
    Collective what;
  };
  void open(Runtime& runtime, const GroupOptions& options);
  Buckets take_buckets(uint64_t bytes);
  void give(uint32_t rank, Pending& pending);
  void get(uint32_t rank, const Pending& pending);
  void stop(const std::string& reason);

  std::vector<std::shared_ptr<Queue>> queues_;
  std::string transport_;
  std::shared_ptr<Segment> segment_;
  std::vector<netcl_member> members_;
  std::vector<std::unique_ptr<RankLink>> ranks_;
  std::map<uint64_t, std::vector<Buckets>> free_;  // by size
  std::deque<Pending> pending_;
  uint64_t last_number_ = 0;
  std::optional<Error> error_;
};

}  // namespace netcl

#endif  // NETCL_CORE_DISTRIBUTED_QUEUE_GROUP_H_
