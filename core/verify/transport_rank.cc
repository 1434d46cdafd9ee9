#include "core/verify/transport_rank.h"

#include <cstring>
#include <utility>

namespace netcl {

TransportStatus status_of(const std::function<void()>& body) {
  try {
    body();
  } catch (const TransportStatus& s) {
    return s;
  }
  return {NETCL_OK, "no error"};
}

TransportRank::TransportRank(TransportAccess access, const netcl_group_spec& spec,
                             cl::CommandQueue queue)
    : access_(std::move(access)),
      rank_(spec.rank),
      n_ranks_(spec.n_ranks),
      queue_(std::move(queue)) {
  call([&](netcl_call* c) { return api().open(self(), c, &spec, &group_); });
}

TransportRank::~TransportRank() {
  if (group_ != nullptr) api().close(self(), group_);
}

void TransportRank::call(const std::function<netcl_rc(netcl_call*)>& body) const {
  const CallResult result = access_.call(body);
  if (result.rc != NETCL_OK) throw TransportStatus(result.rc, result.text);
}

netcl_bucket TransportRank::bucket(uint64_t bytes) {
  netcl_bucket out{};
  out.size = sizeof(out);
  call([&](netcl_call* c) { return api().bucket_new(self(), c, group_, bytes, &out); });
  return out;
}

void TransportRank::free(netcl_bucket& bucket) { api().bucket_free(self(), group_, &bucket); }

uint64_t TransportRank::post(const netcl_coll& collective) {
  uint64_t ticket = 0;
  call([&](netcl_call* c) { return api().post(self(), c, group_, &collective, &ticket); });
  return ticket;
}

void TransportRank::wait(uint64_t ticket) {
  call([&](netcl_call* c) { return api().wait(self(), c, group_, ticket); });
}

void TransportRank::abort(const std::string& reason) {
  api().abort(self(), group_, {reason.data(), reason.size()});
}

netcl_coll TransportRank::all_reduce(const netcl_bucket& bucket, uint64_t offset_bytes,
                                     uint64_t count, uint32_t dtype, uint32_t op,
                                     const char* name) {
  netcl_coll c{};
  c.size = sizeof(c);
  c.kind = NETCL_ALL_REDUCE;
  c.dtype = dtype;
  c.redop = op;
  c.offset_bytes = offset_bytes;
  c.count = count;
  c.bucket = &bucket;
  c.name = {name, std::strlen(name)};
  return c;
}

netcl_coll TransportRank::barrier(const char* name) {
  netcl_coll c{};
  c.size = sizeof(c);
  c.kind = NETCL_BARRIER;
  c.name = {name, std::strlen(name)};
  return c;
}

cl_event TransportRank::write(const netcl_bucket& bucket, uint64_t offset, const void* data,
                              uint64_t bytes) {
  if (bytes == 0) return nullptr;
  return with_cl_errors("writing what a collective is given", [&] {
    cl::Event event;
    queue_.enqueueWriteBuffer(cl::Buffer(static_cast<cl_mem>(bucket.send), true), CL_FALSE, offset,
                              bytes, data, nullptr, &event);
    queue_.flush();
    ::clRetainEvent(event());
    return event();
  });
}

void TransportRank::read(const netcl_bucket& bucket, uint64_t offset, void* data, uint64_t bytes) {
  if (bytes == 0) return;
  with_cl_errors("reading what a collective yields", [&] {
    queue_.enqueueReadBuffer(cl::Buffer(static_cast<cl_mem>(bucket.recv), true), CL_TRUE, offset,
                             bytes, data);
  });
}

}  // namespace netcl
