// GradientBuckets: the flat gradients of the replicas of one process, and their sum.
//
// A replica's kernels write `send`, its update reads `recv`. A replica that is alone has one buffer
// for both and needs no group. Threads: one at a time.
#ifndef NETCL_CORE_DISTRIBUTED_GRADIENT_BUCKETS_H_
#define NETCL_CORE_DISTRIBUTED_GRADIENT_BUCKETS_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string_view>
#include <vector>

#include "core/distributed/queue_group.h"

namespace netcl {

// What a replica's gradients are: checked so that a step out of order is an error and no wrong
// result.
class GradientState {
 public:
  void clear() { state_ = State::kNone; }
  void computed() { state_ = State::kOwn; }
  void reduced() { state_ = State::kReduced; }
  bool none() const { return state_ == State::kNone; }

  // Before a backward, a synchronisation, and an update. Errors: kUsage, naming the replica.
  void expect_room(size_t replica, bool accumulates) const;
  void expect_computed(size_t replica) const;
  void expect_reduced(size_t replica) const;

 private:
  enum class State { kNone, kOwn, kReduced };
  State state_ = State::kNone;
};

class GradientBuckets {
 public:
  // `group`: null for one queue. Errors: kDevice, kTraining if memory is short.
  GradientBuckets(QueueGroup* group, std::vector<std::shared_ptr<Queue>> queues,
                  int64_t num_floats);

  size_t size() const { return queues_.size(); }
  const cl::Buffer& send(size_t replica) const { return send_[replica]; }
  const cl::Buffer& recv(size_t replica) const { return recv_[replica]; }

  // recv = sum of all `send`, behind what the queues hold; all are started before one is waited
  // for. Returns when the sums are there for what is enqueued next. Errors: kTraining, kDevice.
  void all_reduce(std::string_view name);
  // recv = the root's send, of floats [offset, offset + count).
  void broadcast(int64_t offset, int64_t count, uint32_t root, std::string_view name);

 private:
  using Post = std::function<Ticket(Communicator&, const Span&)>;
  void run(int64_t offset, int64_t count, std::string_view name, const Post& post);

  QueueGroup* group_;
  std::vector<std::shared_ptr<Queue>> queues_;
  int64_t num_floats_;
  Buckets buckets_;
  std::vector<cl::Buffer> send_, recv_;
};

}  // namespace netcl

#endif  // NETCL_CORE_DISTRIBUTED_GRADIENT_BUCKETS_H_
