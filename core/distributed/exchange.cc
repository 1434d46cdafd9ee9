#include "core/distributed/exchange.h"

#include <string_view>

#include "core/collective/futex.h"

namespace netcl {

namespace {

double now_seconds() { return static_cast<double>(monotonic_ns()) * 1e-9; }

}  // namespace

void Exchange::begin(int64_t step) {
  step_ = step;
  begin_seconds_ = now_seconds();
}

double Exchange::finish(double lr) {
  double busy = 0;
  if (group_.communicator != nullptr) {
    const cl::Event ready = replica_.marker();
    note_collective("gradients");
    const auto count = static_cast<uint64_t>(replica_.graphs().gradients.num_floats());
    const Ticket ticket = group_.communicator->all_reduce(
        {*group_.bucket, 0, count, DType::kF32, ready(), "gradients"}, ReduceOp::kSum);
    with_cl_errors("waiting for a step", [&] { ready.wait(); });
    busy = now_seconds() - begin_seconds_;
    group_.communicator->wait(ticket);
  }
  replica_.update(step_, lr);
  return busy;
}

void Exchange::note_collective(const char* name) const {
  CollectiveNote note;
  note.sequence = static_cast<uint64_t>(step_);
  note.op = NETCL_ALL_REDUCE;
  note.dtype = static_cast<uint32_t>(DType::kF32);
  note.count = static_cast<uint64_t>(replica_.graphs().gradients.num_floats());
  std::string_view(name).copy(note.name, sizeof(note.name) - 1);
  group_.bootstrap->segment().set_collective(group_.rank, note);
}

}  // namespace netcl
