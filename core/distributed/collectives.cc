#include "core/distributed/collectives.h"

#include <numeric>

#include "core/base/error.h"

namespace netcl {

namespace {

uint64_t elements(const Tensor& tensor) {
  return static_cast<uint64_t>(tensor.shape().num_elements());
}

// Checks of the tensors of one collective, and the facts about them that posting needs.
class Arguments {
 public:
  Arguments(QueueGroup& group, const char* name) : group_(group), name_(name) {}

  // One tensor a rank, on its queue, of the type of all others.
  void tensors(const Tensors& tensors, const char* what) {
    NETCL_CHECK(tensors.size() == group_.size(), ErrorCode::kUsage, name_, ": ", tensors.size(),
                " ", what, " for a group of ", group_.size(), " queues; give one a queue");
    for (uint32_t r = 0; r < group_.size(); ++r) tensor(tensors[r], r, what);
  }
  void tensor(const Tensor& tensor, uint32_t rank, const char* what) {
    NETCL_CHECK(tensor.queue() == group_.queue(rank), ErrorCode::kUsage, name_, ": ", what,
                " of rank ", rank, ", ", tensor.desc().str(), ", is not on the group's queue ",
                rank);
    if (!dtype_) dtype_ = tensor.desc().dtype;
    NETCL_CHECK(tensor.desc().dtype == *dtype_, ErrorCode::kUsage, name_, ": ", what, " of rank ",
                rank, " is ", tensor.desc().str(), ", others are ", dtype_name(*dtype_),
                "; all must have one data type");
  }
  // All as large as the first.
  void equal(const Tensors& tensors, uint64_t count, const char* what) {
    for (uint32_t r = 0; r < group_.size(); ++r) {
      NETCL_CHECK(elements(tensors[r]) == count, ErrorCode::kUsage, name_, ": ", what, " of rank ",
                  r, " is ", tensors[r].desc().str(), "; expected ", count, " elements");
    }
  }
  // The sizes of the parts, which add up to `count`.
  std::vector<uint64_t> parts(const Tensors& parts, uint64_t count) {
    std::vector<uint64_t> out;
    for (const Tensor& part : parts) out.push_back(elements(part));
    const uint64_t sum = std::accumulate(out.begin(), out.end(), uint64_t{0});
    NETCL_CHECK(sum == count, ErrorCode::kUsage, name_, ": the parts have ", sum,
                " elements together, the whole has ", count);
    return out;
  }
  void root(uint32_t root) {
    NETCL_CHECK(root < group_.size(), ErrorCode::kUsage, name_, ": root ", root, " of a group of ",
                group_.size(), " queues");
  }
  void weights(const std::vector<double>& weights, ReduceOp op) {
    NETCL_CHECK(weights.empty() || (op == ReduceOp::kMean && weights.size() == group_.size()),
                ErrorCode::kUsage, name_, ": ", weights.size(), " weights for a group of ",
                group_.size(), " queues; a mean takes one a rank, other reductions take none");
  }
  QueueGroup::Collective collective(uint64_t count) const {
    QueueGroup::Collective out;
    out.name = name_;
    out.dtype = *dtype_;
    out.count = count;
    out.ranks.resize(group_.size());
    return out;
  }

 private:
  QueueGroup& group_;
  const char* name_;
  std::optional<DType> dtype_;
};

double weight_of(const std::vector<double>& weights, uint32_t rank) {
  return weights.empty() ? 1 : weights[rank];
}

// Where each part begins.
std::vector<uint64_t> offsets(const std::vector<uint64_t>& counts) {
  std::vector<uint64_t> out(counts.size(), 0);
  std::partial_sum(counts.begin(), counts.end() - 1, out.begin() + 1);
  return out;
}

}  // namespace

void CollectiveHandle::wait() {
  group_->finish(number_);
  if (!synchronize_) return;
  std::vector<std::shared_ptr<Queue>> queues;
  for (uint32_t r = 0; r < group_->size(); ++r) queues.push_back(group_->queue(r));
  wait_all(queues);
}

CollectiveHandle all_reduce(QueueGroup& group, const Tensors& in, const Tensors& out, ReduceOp op,
                            const std::vector<double>& weights) {
  Arguments check(group, "all_reduce");
  check.tensors(in, "input");
  check.tensors(out, "output");
  check.equal(in, elements(in[0]), "input");
  check.equal(out, elements(in[0]), "output");
  check.weights(weights, op);
  QueueGroup::Collective what = check.collective(elements(in[0]));
  for (uint32_t r = 0; r < group.size(); ++r) what.ranks[r] = {in[r], out[r]};
  what.post = [op, weights](Communicator& c, uint32_t r, const Span& span) {
    return c.all_reduce(span, op, weight_of(weights, r));
  };
  return {group, group.start(what)};
}

CollectiveHandle all_reduce(QueueGroup& group, const Tensors& tensors, ReduceOp op,
                            const std::vector<double>& weights) {
  return all_reduce(group, tensors, tensors, op, weights);
}

CollectiveHandle broadcast(QueueGroup& group, const Tensors& tensors, uint32_t root) {
  Arguments check(group, "broadcast");
  check.tensors(tensors, "tensor");
  check.root(root);
  check.equal(tensors, elements(tensors[root]), "tensor");
  QueueGroup::Collective what = check.collective(elements(tensors[root]));
  for (uint32_t r = 0; r < group.size(); ++r) what.ranks[r].out = tensors[r];
  what.ranks[root].in = tensors[root];
  what.post = [root](Communicator& c, uint32_t, const Span& span) {
    return c.broadcast(span, root);
  };
  return {group, group.start(what)};
}

CollectiveHandle scatter(QueueGroup& group, const Tensor& whole, const Tensors& parts,
                         uint32_t root) {
  Arguments check(group, "scatter");
  check.root(root);
  check.tensor(whole, root, "the whole");
  check.tensors(parts, "part");
  const std::vector<uint64_t> counts = check.parts(parts, elements(whole));
  QueueGroup::Collective what = check.collective(elements(whole));
  const std::vector<uint64_t> first = offsets(counts);
  for (uint32_t r = 0; r < group.size(); ++r) what.ranks[r] = {{}, parts[r], 0, first[r]};
  what.ranks[root].in = whole;
  what.post = [root, counts](Communicator& c, uint32_t, const Span& span) {
    return c.scatter(span, root, counts);
  };
  return {group, group.start(what)};
}

CollectiveHandle gather(QueueGroup& group, const Tensors& parts, const Tensor& whole,
                        uint32_t root) {
  Arguments check(group, "gather");
  check.root(root);
  check.tensor(whole, root, "the whole");
  check.tensors(parts, "part");
  const std::vector<uint64_t> counts = check.parts(parts, elements(whole));
  QueueGroup::Collective what = check.collective(elements(whole));
  const std::vector<uint64_t> first = offsets(counts);
  for (uint32_t r = 0; r < group.size(); ++r) what.ranks[r] = {parts[r], {}, first[r], 0};
  what.ranks[root].out = whole;
  what.post = [root, counts](Communicator& c, uint32_t, const Span& span) {
    return c.gather(span, root, counts);
  };
  return {group, group.start(what)};
}

CollectiveHandle all_gather(QueueGroup& group, const Tensors& parts, const Tensors& whole) {
  Arguments check(group, "all_gather");
  check.tensors(parts, "part");
  check.tensors(whole, "result");
  check.equal(whole, elements(whole[0]), "result");
  const std::vector<uint64_t> counts = check.parts(parts, elements(whole[0]));
  QueueGroup::Collective what = check.collective(elements(whole[0]));
  const std::vector<uint64_t> first = offsets(counts);
  for (uint32_t r = 0; r < group.size(); ++r) what.ranks[r] = {parts[r], whole[r], first[r], 0};
  what.post = [counts](Communicator& c, uint32_t, const Span& span) {
    return c.all_gather(span, counts);
  };
  return {group, group.start(what)};
}

CollectiveHandle reduce_scatter(QueueGroup& group, const Tensors& whole, const Tensors& parts,
                                ReduceOp op, const std::vector<double>& weights) {
  Arguments check(group, "reduce_scatter");
  check.tensors(whole, "input");
  check.tensors(parts, "part");
  check.equal(whole, elements(whole[0]), "input");
  check.weights(weights, op);
  const std::vector<uint64_t> counts = check.parts(parts, elements(whole[0]));
  QueueGroup::Collective what = check.collective(elements(whole[0]));
  const std::vector<uint64_t> first = offsets(counts);
  for (uint32_t r = 0; r < group.size(); ++r) what.ranks[r] = {whole[r], parts[r], 0, first[r]};
  what.post = [op, weights, counts](Communicator& c, uint32_t r, const Span& span) {
    return c.reduce_scatter(span, op, counts, weight_of(weights, r));
  };
  return {group, group.start(what)};
}

CollectiveHandle barrier(QueueGroup& group) {
  QueueGroup::Collective what;
  what.name = "barrier";
  what.ranks.resize(group.size());
  what.post = [](Communicator& c, uint32_t, const Span& span) {
    return c.start_barrier(span.name);
  };
  return {group, group.start(what), true};
}

}  // namespace netcl
