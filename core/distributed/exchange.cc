#include "core/distributed/exchange.h"

#include <algorithm>
#include <limits>
#include <string_view>

#include "core/base/clock.h"

namespace netcl {

namespace {

// Passes add up in `send`, so nothing of it is ready before the last one: one bucket.
BucketSizes sizes_for(const Replica& replica, const BucketSizes& sizes) {
  constexpr int64_t kAll = std::numeric_limits<int64_t>::max();
  return replica.accumulates() ? BucketSizes{kAll, kAll} : sizes;
}

}  // namespace

Exchange::Exchange(Replica& replica, Group group, const ExchangeOptions& options)
    : replica_(replica), group_(group) {
  replica_.mark_gradients({});
  if (!options.micro_shards.empty()) {
    micro_ = std::make_unique<MicroShards>(replica, group, options.micro_shards);
    return;
  }
  if (group_.communicator == nullptr) return;
  const StepGraphs& graphs = replica_.graphs();
  buckets_ = gradient_buckets(graphs.gradients, sizes_for(replica_, options.buckets));
  if (replica_.shares_update()) {
    const FloatRange mine = replica_.state_range();
    shares_.resize(group_.n_ranks);
    group_.bootstrap->exchange(&mine, sizeof(mine), shares_.data());
  }
  overlaps_ = buckets_.size() > 1;
  if (!overlaps_) return;
  std::vector<std::vector<std::string>> marks;
  for (const GradientBucket& bucket : buckets_) marks.push_back(bucket.tensors);
  replica_.mark_gradients(marks);
}

void Exchange::begin(int64_t step, int64_t rows) {
  step_ = step;
  begin_seconds_ = now_seconds();
  last_ = before_last_ = {};
  if (micro_) micro_->begin(rows);
}

void Exchange::pass(size_t index, int64_t rows, const StepRandom& random) {
  if (micro_) return micro_->pass(index, rows, random);
  CompiledGraph::Reached reached;
  if (overlaps_) reached = [this](size_t bucket) { post(bucket); };
  replica_.forward_backward(rows, random, reached);
  if (replica_.accumulates()) replica_.accumulate(index == 0);
}

void Exchange::post(size_t index) {
  const GradientBucket& bucket = buckets_[index];
  const bool overlapped = index + 1 < buckets_.size();  // backward goes on
  ready_ = replica_.marker();
  before_last_ = last_;
  if (!shares_.empty()) {
    last_ = post_sharded(bucket, ready_(), overlapped);
    return;
  }
  note(NETCL_ALL_REDUCE, bucket.range.count, bucket.name);
  last_ = group_.communicator->all_reduce(
      {*group_.bucket, static_cast<uint64_t>(bucket.range.first),
       static_cast<uint64_t>(bucket.range.count), DType::kF32, ready_(), bucket.name, overlapped},
      ReduceOp::kSum);
}

// The sums at the beginning of the first bucket are for all; of the gradients each rank needs those
// of its share.
Ticket Exchange::post_sharded(const GradientBucket& bucket, void* ready, bool overlapped) {
  const int64_t sums = replica_.graphs().sums_floats;
  FloatRange range = bucket.range;
  Ticket ticket = last_;
  if (range.first == 0) {
    note(NETCL_ALL_REDUCE, sums, "sums");
    ticket = group_.communicator->all_reduce(
        {*group_.bucket, 0, static_cast<uint64_t>(sums), DType::kF32, ready, "sums", overlapped},
        ReduceOp::kSum);
    range = {sums, range.count - sums};
  }
  if (range.count <= 0) return ticket;
  note(NETCL_REDUCE_SCATTER, range.count, bucket.name);
  return group_.communicator->reduce_scatter(
      {*group_.bucket, static_cast<uint64_t>(range.first), static_cast<uint64_t>(range.count),
       DType::kF32, ready, bucket.name, overlapped},
      ReduceOp::kSum, counts_within(range, sums, shares_));
}

double Exchange::finish(double lr) {
  double busy = 0;
  if (group_.communicator != nullptr) {
    if (micro_) {
      ready_ = replica_.marker();
    } else if (!overlaps_) {
      post(0);
    }
    // A trace is to see when each bucket was done; a wait for the last covers all.
    if (replica_.queue().recording() && before_last_.value > 0)
      group_.communicator->wait(before_last_);
    with_cl_errors("waiting for a step", [&] { ready_.wait(); });
    busy = now_seconds() - begin_seconds_;
    if (micro_) note(NETCL_ALL_GATHER, micro_->num_floats(), "micro-shards");
    if (!micro_) group_.communicator->wait(last_);
  }
  if (micro_) micro_->add_up(ready_);
  replica_.update(step_, lr);
  if (!shares_.empty()) {
    replica_.put_parameters();
    gather("parameters");
    replica_.take_parameters();
  }
  return busy;
}

void Exchange::gather(const char* name) {
  const StepGraphs& graphs = replica_.graphs();
  const int64_t floats = graphs.parameters.num_floats();
  ready_ = replica_.marker();
  note(NETCL_ALL_GATHER, floats, name);
  std::vector<uint64_t> counts;
  for (const FloatRange& share : shares_) counts.push_back(static_cast<uint64_t>(share.count));
  group_.communicator->wait(
      group_.communicator->all_gather({*group_.bucket, static_cast<uint64_t>(graphs.sums_floats),
                                       static_cast<uint64_t>(floats), DType::kF32, ready_(), name},
                                      counts));
}

void Exchange::gather_states() {
  if (shares_.empty()) return;
  const std::vector<std::string>& states = replica_.graphs().plan.states;
  for (size_t i = 0; i < states.size(); ++i) {
    replica_.put_state(i);
    gather(states[i].c_str());
    replica_.take_state(i, group_.rank == 0);
  }
}

void Exchange::note(uint32_t op, int64_t count, const std::string& name) const {
  CollectiveNote note;
  note.sequence = static_cast<uint64_t>(step_);
  note.op = op;
  note.dtype = static_cast<uint32_t>(DType::kF32);
  note.count = static_cast<uint64_t>(count);
  std::string_view(name).copy(note.name, sizeof(note.name) - 1);
  group_.bootstrap->segment().set_collective(group_.rank, note);
}

}  // namespace netcl
