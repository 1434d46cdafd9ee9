#include "core/collective/communicator.h"

#include <algorithm>
#include <numeric>
#include <utility>

namespace netcl {

std::vector<uint64_t> even_parts(uint64_t count, uint32_t n) {
  std::vector<uint64_t> out(n, count / n);
  for (uint64_t i = 0; i < count % n; ++i) ++out[i];
  return out;
}

ErrorCode transport_error_code(netcl_rc rc) {
  switch (rc) {
    case NETCL_E_STATE:
    case NETCL_E_TIMEOUT:
    case NETCL_E_PEER:
    case NETCL_E_NOMEM:
    case NETCL_E_CANCELLED:
      return ErrorCode::kTraining;
    case NETCL_E_DEVICE:
      return ErrorCode::kDevice;
    default:
      return ErrorCode::kPlugin;
  }
}

void Communicator::check(const TransportAccess& access, const char* what,
                         const std::function<netcl_rc(netcl_call*)>& body) {
  const CallResult result = access.call(body);
  if (result.rc == NETCL_OK) return;
  const std::string reason =
      result.text.empty() ? str_cat("status ", result.rc, " without a reason") : result.text;
  fail(transport_error_code(result.rc), "transport ", access.name, ": ", what, ": ", reason);
}

std::string Communicator::accepts(const TransportAccess& access, const netcl_group_spec& spec) {
  NETCL_CHECK(NETCL_HAS(access.api, accept), ErrorCode::kPlugin, "transport ", access.name,
              " has no function accept");
  const CallResult result =
      access.call([&](netcl_call* call) { return access.api->accept(access.self, call, &spec); });
  if (result.rc == NETCL_DECLINE) {
    return result.text.empty() ? "it gives no reason" : result.text;
  }
  check(access, "accept", [&](netcl_call*) { return result.rc; });
  return "";
}

Communicator::Communicator(TransportAccess access, const netcl_group_spec& spec)
    : access_(std::move(access)), rank_(spec.rank), n_ranks_(spec.n_ranks) {
  const netcl_transport_api* api = access_.api;
  NETCL_CHECK(NETCL_HAS(api, open) && NETCL_HAS(api, bucket_new) && NETCL_HAS(api, bucket_free) &&
                  NETCL_HAS(api, post) && NETCL_HAS(api, wait) && NETCL_HAS(api, abort) &&
                  NETCL_HAS(api, close),
              ErrorCode::kPlugin, "transport ", access_.name, " lacks functions of ",
              NETCL_TRANSPORT_INTERFACE);
  check(access_, "open",
        [&](netcl_call* call) { return api->open(access_.self, call, &spec, &group_); });
}

Communicator::~Communicator() {
  // Without this, freeing a bucket would wait for peers that may never come.
  if (posted_ > waited_) abort("the rank left with collectives in flight");
  for (const auto& bucket : buckets_) access_.api->bucket_free(access_.self, group_, bucket.get());
  access_.api->close(access_.self, group_);
}

const netcl_bucket& Communicator::new_bucket(uint64_t bytes) {
  auto bucket = std::make_unique<netcl_bucket>();
  bucket->size = sizeof(netcl_bucket);
  check(access_, "bucket_new", [&](netcl_call* call) {
    return access_.api->bucket_new(access_.self, call, group_, bytes, bucket.get());
  });
  buckets_.push_back(std::move(bucket));
  const netcl_bucket& b = *buckets_.back();
  NETCL_CHECK(b.send != nullptr && b.recv != nullptr && b.bytes >= bytes, ErrorCode::kPlugin,
              "transport ", access_.name, ": bucket_new of ", bytes, " bytes returned a bucket of ",
              b.bytes, " bytes or without buffers");
  return b;
}

Ticket Communicator::post(uint32_t kind, const Span& span, uint32_t redop, uint32_t root,
                          const std::vector<uint64_t>& counts, double weight) {
  NETCL_CHECK(
      counts.empty() || (counts.size() == n_ranks_ &&
                         std::accumulate(counts.begin(), counts.end(), uint64_t{0}) == span.count),
      ErrorCode::kUsage, "collective \"", span.name, "\": the ranks' counts must be ", n_ranks_,
      " and add up to ", span.count);
  netcl_coll c{};
  c.size = sizeof(c);
  c.kind = kind;
  c.dtype = static_cast<uint32_t>(span.dtype);
  c.redop = redop;
  c.root = root;
  c.offset_bytes = span.offset * size_of(span.dtype);
  c.count = span.count;
  c.bucket = &span.bucket;
  c.ready = span.ready;
  c.name = {span.name.data(), span.name.size()};
  c.counts = counts.empty() ? nullptr : counts.data();
  c.weight = weight;
  if (span.overlapped) c.flags = NETCL_COLL_OVERLAPPED;
  return post(c);
}

Ticket Communicator::post(const netcl_coll& c) {
  Ticket ticket;
  check(access_, "post", [&](netcl_call* call) {
    return access_.api->post(access_.self, call, group_, &c, &ticket.value);
  });
  posted_ = ticket.value;
  if (observer_ != nullptr) {
    in_flight_.push_back(ticket.value);
    observer_->posted(ticket, c);
  }
  return ticket;
}

Ticket Communicator::all_reduce(const Span& span, ReduceOp op, double weight) {
  return post(NETCL_ALL_REDUCE, span, static_cast<uint32_t>(op), 0, {}, weight);
}
Ticket Communicator::reduce_scatter(const Span& span, ReduceOp op,
                                    const std::vector<uint64_t>& counts, double weight) {
  return post(NETCL_REDUCE_SCATTER, span, static_cast<uint32_t>(op), 0, counts, weight);
}
Ticket Communicator::all_gather(const Span& span, const std::vector<uint64_t>& counts) {
  return post(NETCL_ALL_GATHER, span, 0, 0, counts, 1);
}
Ticket Communicator::broadcast(const Span& span, uint32_t root) {
  return post(NETCL_BROADCAST, span, 0, root, {}, 1);
}
Ticket Communicator::scatter(const Span& span, uint32_t root, const std::vector<uint64_t>& counts) {
  return post(NETCL_SCATTER, span, 0, root, counts, 1);
}
Ticket Communicator::gather(const Span& span, uint32_t root, const std::vector<uint64_t>& counts) {
  return post(NETCL_GATHER, span, 0, root, counts, 1);
}

void Communicator::wait(Ticket ticket) {
  if (observer_ == nullptr) return wait_for(ticket);
  while (!in_flight_.empty() && in_flight_.front() <= ticket.value) {
    const Ticket next{in_flight_.front()};
    observer_->waiting(next);
    wait_for(next);
    in_flight_.pop_front();
    observer_->waited(next);
  }
  wait_for(ticket);
}

void Communicator::wait_for(Ticket ticket) {
  if (access_.waiting) access_.waiting();
  check(access_, "wait", [&](netcl_call* call) {
    return access_.api->wait(access_.self, call, group_, ticket.value);
  });
  waited_ = std::max(waited_, ticket.value);
}

Ticket Communicator::start_barrier(std::string_view name) {
  netcl_coll c{};
  c.size = sizeof(c);
  c.kind = NETCL_BARRIER;
  c.name = {name.data(), name.size()};
  return post(c);
}

void Communicator::abort(std::string_view reason) {
  access_.api->abort(access_.self, group_, {reason.data(), reason.size()});
}

}  // namespace netcl
