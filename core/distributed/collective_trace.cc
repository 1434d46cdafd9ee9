#include "core/distributed/collective_trace.h"

#include "core/abi/netcl_names.hpp"
#include "core/base/error.h"
#include "core/tensor/shape.h"

namespace netcl {

namespace {

// A wait that returns within this time has not seen the moment of completion.
constexpr uint64_t kAtOnceNs = 20'000;

}  // namespace

CollectiveTrace::CollectiveTrace(Communicator& communicator, Trace& trace)
    : communicator_(communicator), trace_(trace) {
  communicator_.observe(this);
}

CollectiveTrace::~CollectiveTrace() { communicator_.observe(nullptr); }

void CollectiveTrace::posted(Ticket ticket, const netcl_coll& collective) {
  if (!trace_.recording()) return;
  const uint64_t element =
      collective.kind == NETCL_BARRIER ? 0 : size_of(static_cast<DType>(collective.dtype));
  in_flight_[ticket.value] = {
      str_cat(plugin::collective_name(collective.kind), " ",
              std::string_view(collective.name.ptr, collective.name.len)),
      Trace::now_ns(), collective.count * element, number_++,
      cl::Event(static_cast<cl_event>(collective.ready), /*retainObject=*/true)};
}

void CollectiveTrace::waiting(Ticket) { wait_begin_ns_ = Trace::now_ns(); }

void CollectiveTrace::waited(Ticket ticket) {
  const auto found = in_flight_.find(ticket.value);
  if (found == in_flight_.end()) return;
  const uint64_t now = Trace::now_ns();
  const bool late = now - wait_begin_ns_ < kAtOnceNs;
  const InFlight in_flight = std::move(found->second);
  in_flight_.erase(found);
  if (!trace_.recording()) return;
  TraceRecord record{
      TraceTrack::kTransport, in_flight.name, "collective", 0, in_flight.posted_ns, now, {}};
  record.numbers = {{"bytes", in_flight.bytes},
                    {"number", in_flight.number},
                    {"posted_ns", in_flight.posted_ns},
                    {"late", late ? 1 : 0}};
  trace_.span_after(std::move(record), in_flight.ready);
  trace_.span(TraceTrack::kHost, "wait for " + in_flight.name, "wait", wait_begin_ns_, now);
}

}  // namespace netcl
