#include "core/distributed/gradient_buckets.h"

namespace netcl {

void GradientState::expect_room(size_t replica, bool accumulates) const {
  if (state_ == State::kNone || (accumulates && state_ == State::kOwn)) return;
  fail(ErrorCode::kUsage, "replica ", replica, " has gradients already",
       state_ == State::kOwn
           ? "; call zero_grad, or prepare the replicas with accumulate to add them up"
           : ", synchronised ones; call zero_grad before the next backward");
}

void GradientState::expect_computed(size_t replica) const {
  if (state_ == State::kOwn) return;
  fail(ErrorCode::kUsage, "sync_grads: replica ", replica,
       state_ == State::kNone ? " has no gradients; each needs a forward_backward, if only of a "
                                "shard without rows"
                              : " has synchronised gradients already");
}

void GradientState::expect_reduced(size_t replica) const {
  if (state_ == State::kReduced) return;
  fail(ErrorCode::kUsage, "replica ", replica, ": step ",
       state_ == State::kNone ? "without gradients; call forward_backward and sync_grads first"
                              : "with gradients of its own shard alone; call sync_grads first");
}

GradientBuckets::GradientBuckets(QueueGroup* group, std::vector<std::shared_ptr<Queue>> queues,
                                 int64_t num_floats)
    : group_(group), queues_(std::move(queues)), num_floats_(num_floats) {
  const size_t bytes = static_cast<size_t>(num_floats_) * sizeof(float);
  if (group_ == nullptr) {
    NETCL_CHECK(queues_.size() == 1, ErrorCode::kInternal, queues_.size(), " queues and no group");
    send_.push_back(queues_[0]->device().make_buffer(bytes, "the gradients"));
    recv_ = send_;
    return;
  }
  buckets_ = group_->new_buckets(bytes);
  for (const netcl_bucket* bucket : buckets_) {
    send_.emplace_back(static_cast<cl_mem>(bucket->send), true);
    recv_.emplace_back(static_cast<cl_mem>(bucket->recv), true);
  }
}

void GradientBuckets::run(int64_t offset, int64_t count, std::string_view name, const Post& post) {
  if (group_ == nullptr) return;
  std::vector<cl::Event> ready(size());
  for (size_t r = 0; r < size(); ++r) {
    with_cl_errors("marking the queue", [&] {
      queues_[r]->cl().enqueueMarkerWithWaitList(nullptr, &ready[r]);
      queues_[r]->cl().flush();
    });
  }
  std::vector<Ticket> tickets;
  for (uint32_t r = 0; r < size(); ++r) {
    const Span span{*buckets_[r],
                    static_cast<uint64_t>(offset),
                    static_cast<uint64_t>(count),
                    DType::kF32,
                    ready[r](),
                    name};
    tickets.push_back(post(group_->communicator(r), span));
  }
  for (uint32_t r = 0; r < size(); ++r) group_->communicator(r).wait(tickets[r]);
}

void GradientBuckets::all_reduce(std::string_view name) {
  run(0, num_floats_, name, [](Communicator& communicator, const Span& span) {
    return communicator.all_reduce(span, ReduceOp::kSum);
  });
}

void GradientBuckets::broadcast(int64_t offset, int64_t count, uint32_t root,
                                std::string_view name) {
  run(offset, count, name, [root](Communicator& communicator, const Span& span) {
    return communicator.broadcast(span, root);
  });
}

}  // namespace netcl
