#include "core/collective/communicator.h"

#include <algorithm>
#include <utility>

namespace netcl {

namespace {

netcl_coll collective(uint32_t kind, std::string_view name) {
  netcl_coll c{};
  c.size = sizeof(c);
  c.kind = kind;
  c.name = {name.data(), name.size()};
  return c;
}

netcl_coll with_data(netcl_coll c, const netcl_bucket& bucket, uint64_t offset, uint64_t count,
                     DType dtype, void* ready) {
  c.dtype = static_cast<uint32_t>(dtype);
  c.offset_bytes = offset * size_of(dtype);
  c.count = count;
  c.bucket = &bucket;
  c.ready = ready;
  return c;
}

}  // namespace

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

Ticket Communicator::post(const netcl_coll& c) {
  Ticket ticket;
  check(access_, "post", [&](netcl_call* call) {
    return access_.api->post(access_.self, call, group_, &c, &ticket.value);
  });
  posted_ = ticket.value;
  return ticket;
}

Ticket Communicator::all_reduce(const netcl_bucket& bucket, uint64_t offset, uint64_t count,
                                DType dtype, ReduceOp op, void* ready, std::string_view name) {
  netcl_coll c = with_data(collective(NETCL_ALL_REDUCE, name), bucket, offset, count, dtype, ready);
  c.redop = static_cast<uint32_t>(op);
  return post(c);
}

Ticket Communicator::broadcast(const netcl_bucket& bucket, uint64_t offset, uint64_t count,
                               DType dtype, uint32_t root, void* ready, std::string_view name) {
  netcl_coll c = with_data(collective(NETCL_BROADCAST, name), bucket, offset, count, dtype, ready);
  c.root = root;
  return post(c);
}

void Communicator::wait(Ticket ticket) {
  check(access_, "wait", [&](netcl_call* call) {
    return access_.api->wait(access_.self, call, group_, ticket.value);
  });
  waited_ = std::max(waited_, ticket.value);
}

void Communicator::barrier(std::string_view name) { wait(post(collective(NETCL_BARRIER, name))); }

void Communicator::abort(std::string_view reason) {
  access_.api->abort(access_.self, group_, {reason.data(), reason.size()});
}

}  // namespace netcl
