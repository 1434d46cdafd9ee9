#include "core/distributed/queue_group.h"

#include <algorithm>
#include <atomic>
#include <exception>
#include <set>
#include <thread>

#include "core/runtime/transport.h"

namespace netcl {

namespace {

std::string words_of(const std::exception_ptr& error) {
  try {
    std::rethrow_exception(error);
  } catch (const std::exception& e) {
    return e.what();
  }
}

}  // namespace

void on_threads(uint32_t n_ranks, const std::function<void(uint32_t)>& body,
                const std::function<void(const std::string&)>& on_failure) {
  if (n_ranks == 1) return body(0);
  std::vector<std::exception_ptr> errors(n_ranks);
  std::atomic<int64_t> first{-1};
  const auto run = [&](uint32_t rank) {
    try {
      body(rank);
    } catch (...) {
      errors[rank] = std::current_exception();
      int64_t none = -1;
      if (first.compare_exchange_strong(none, rank)) on_failure(words_of(errors[rank]));
    }
  };
  std::vector<std::thread> threads;
  for (uint32_t r = 1; r < n_ranks; ++r) threads.emplace_back(run, r);
  run(0);
  for (std::thread& thread : threads) thread.join();
  if (first >= 0) std::rethrow_exception(errors[static_cast<size_t>(first.load())]);
}

QueueGroup::QueueGroup(Runtime& runtime, std::vector<std::shared_ptr<Queue>> queues,
                       const GroupOptions& options)
    : queues_(std::move(queues)) {
  NETCL_CHECK(!queues_.empty(), ErrorCode::kUsage,
              "a group needs at least one queue; ask DeviceManager::queues for some");
  const std::set<Queue*> distinct = [&] {
    std::set<Queue*> out;
    for (const auto& queue : queues_) out.insert(queue.get());
    return out;
  }();
  NETCL_CHECK(distinct.size() == queues_.size() && distinct.count(nullptr) == 0, ErrorCode::kUsage,
              "a group of ", queues_.size(), " queues, of which only ", distinct.size(),
              " are different; a rank has a queue of its own, such as those of \"cpu:0/2\"");
  open(runtime, options);
}

QueueGroup::~QueueGroup() = default;

const std::string& QueueGroup::transport() const { return transport_; }

Communicator& QueueGroup::communicator(uint32_t rank) { return ranks_[rank]->communicator(); }

Bootstrap& QueueGroup::bootstrap(uint32_t rank) { return ranks_[rank]->bootstrap(); }

void QueueGroup::open(Runtime& runtime, const GroupOptions& options) {
  transport_ = choose_transport(options.transport, runtime.plugins());
  const TransportAccess access = transport_access(runtime.plugins().load(transport_));
  const uint64_t timeout_ns = options.timeout_ms * 1'000'000;
  segment_ = Segment::create(size());
  std::map<cl_context, uint32_t> contexts;  // numbered as they come
  for (uint32_t r = 0; r < size(); ++r) {
    const auto next = static_cast<uint32_t>(contexts.size());
    const uint32_t context = contexts.emplace(queues_[r]->device().context()(), next).first->second;
    members_.push_back({r, 0, 0, context});
  }
  ranks_.resize(size());
  on_ranks([&](uint32_t r) {
    ranks_[r] = std::make_unique<RankLink>(segment_, access, queues_[r]->device(), r, members_,
                                           timeout_ns, "transport " + transport_);
  });
}

void QueueGroup::on_ranks(const std::function<void(uint32_t)>& body) {
  on_threads(size(), body, [this](const std::string& reason) { segment_->abort(reason); });
}

Buckets QueueGroup::new_buckets(uint64_t bytes) {
  Buckets out(size());
  on_ranks([&](uint32_t r) { out[r] = &communicator(r).new_bucket(bytes); });
  return out;
}

// Sizes are rounded up so that collectives of different sizes find each other's buckets.
Buckets QueueGroup::take_buckets(uint64_t bytes) {
  std::vector<Buckets>& idle = free_[bytes];
  if (idle.empty()) return new_buckets(bytes);
  Buckets out = std::move(idle.back());
  idle.pop_back();
  return out;
}

void QueueGroup::give(uint32_t rank, Pending& pending) {
  const Transfer& transfer = pending.what.ranks[rank];
  Queue& queue = *queues_[rank];
  pending.ready.push_back(with_cl_errors("handing a tensor to its group", [&] {
    if (transfer.in && transfer.in->desc().size_bytes() > 0) {
      const cl::Buffer send(static_cast<cl_mem>(pending.buckets[rank]->send), true);
      queue.cl().enqueueCopyBuffer(transfer.in->buffer(), send, 0,
                                   transfer.in_offset * size_of(pending.what.dtype),
                                   transfer.in->desc().size_bytes());
    }
    cl::Event event;
    queue.cl().enqueueMarkerWithWaitList(nullptr, &event);
    queue.cl().flush();
    return event;
  }));
  queue.enqueued(2, pending.ready.back());
}

void QueueGroup::get(uint32_t rank, const Pending& pending) {
  const std::optional<Tensor>& out = pending.what.ranks[rank].out;
  if (!out || out->desc().size_bytes() == 0) return;
  Queue& queue = *queues_[rank];
  const cl::Event done = with_cl_errors("taking a tensor from its group", [&] {
    const cl::Buffer recv(static_cast<cl_mem>(pending.buckets[rank]->recv), true);
    cl::Event event;
    queue.cl().enqueueCopyBuffer(recv, out->buffer(),
                                 pending.what.ranks[rank].out_offset * size_of(pending.what.dtype),
                                 0, out->desc().size_bytes(), nullptr, &event);
    queue.cl().flush();
    return event;
  });
  Tensor(*out).set_ready(done);
  queue.enqueued(1, done);
}

void QueueGroup::stop(const std::string& reason) { segment_->abort(reason); }

uint64_t QueueGroup::start(const Collective& what) {
  if (error_) throw *error_;
  uint64_t bytes = 64;
  while (bytes < what.count * size_of(what.dtype)) bytes *= 2;
  Pending pending;
  pending.bytes = bytes;
  pending.what = what;
  pending.buckets = take_buckets(bytes);
  for (uint32_t r = 0; r < size(); ++r) {
    try {
      give(r, pending);
      pending.tickets.push_back(what.post(
          communicator(r), r,
          {*pending.buckets[r], 0, what.count, what.dtype, pending.ready[r](), what.name}));
    } catch (const Error& e) {
      if (r == 0) {  // nothing was started: the group goes on
        free_[bytes].push_back(pending.buckets);
      } else {
        error_ = e;
        stop(e.message());
      }
      throw;
    }
  }
  pending.number = ++last_number_;
  pending_.push_back(std::move(pending));
  return last_number_;
}

void QueueGroup::finish(uint64_t number) {
  if (error_) throw *error_;
  while (!pending_.empty() && pending_.front().number <= number) {
    const Pending& pending = pending_.front();
    try {
      for (uint32_t r = 0; r < size(); ++r) communicator(r).wait(pending.tickets[r]);
      for (uint32_t r = 0; r < size(); ++r) get(r, pending);
    } catch (const Error& e) {
      error_ = e;
      stop(e.message());
      throw;
    }
    free_[pending.bytes].push_back(pending.buckets);
    pending_.pop_front();
  }
}

}  // namespace netcl
