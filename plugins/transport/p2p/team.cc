#include "plugins/transport/p2p/team.h"

#include <chrono>
#include <utility>

#include "core/abi/netcl_names.hpp"
#include "core/abi/netcl_plugin.hpp"
#include "plugins/transport/p2p/launch.h"

namespace netcl::p2p_transport {

using plugin::Failure;

namespace {

bool same(const Posting& a, const Posting& b) {
  return a.kind == b.kind && a.dtype == b.dtype && a.redop == b.redop && a.root == b.root &&
         a.offset_bytes == b.offset_bytes && a.count == b.count && a.counts == b.counts &&
         a.name == b.name && (a.bucket == nullptr) == (b.bucket == nullptr) &&
         (a.bucket == nullptr || a.bucket->bytes == b.bucket->bytes);
}

std::string describe(uint32_t rank, const Posting& p) {
  std::string text = "rank " + std::to_string(rank) + " posts " + plugin::collective_name(p.kind) +
                     " \"" + p.name + "\" (reduction " + std::to_string(p.redop) + ", root " +
                     std::to_string(p.root) + ", dtype " + std::to_string(p.dtype) + ", " +
                     std::to_string(p.count) + " elements at byte " +
                     std::to_string(p.offset_bytes) + ", parts";
  for (const uint64_t n : p.counts) text += " " + std::to_string(n);
  return text + ")";
}

}  // namespace

Team::~Team() {
  for (auto& [sequence, collective] : collectives_) release(collective);
}

void Team::set_device(uint32_t rank, RankDevice* device) {
  const std::lock_guard<std::mutex> lock(mutex_);
  devices_[rank] = device;
}

void Team::throw_problem() const {
  if (problem_) throw Failure(problem_->code, problem_->text);
}

void Team::post(uint32_t rank, uint64_t sequence, Posting posting) {
  const std::lock_guard<std::mutex> lock(mutex_);
  throw_problem();
  for (uint32_t r = 0; r < n_ranks(); ++r) {
    if (left_[r]) {
      throw Failure(NETCL_E_PEER,
                    "p2p transport: rank " + std::to_string(r) + " has left the group");
    }
  }
  if (posting.ready != nullptr) check_cl(clRetainEvent(posting.ready), "clRetainEvent of `ready`");
  Collective& collective = collectives_[sequence];
  collective.postings.resize(n_ranks());
  collective.postings[rank] = std::move(posting);
  if (++collective.n_posted < n_ranks()) return;
  try {
    check_same(sequence, collective);
    launch(collective);
  } catch (const Failure& e) {
    problem_ = Problem{e.code(), e.what()};
    changed_.notify_all();
    throw;
  }
  collective.launched = true;
  changed_.notify_all();
}

void Team::check_same(uint64_t sequence, const Collective& collective) const {
  for (uint32_t r = 1; r < n_ranks(); ++r) {
    if (same(*collective.postings[0], *collective.postings[r])) continue;
    throw Failure(NETCL_E_STATE,
                  "p2p transport: the ranks' collectives number " + std::to_string(sequence) +
                      " differ: " + describe(0, *collective.postings[0]) + " but " +
                      describe(r, *collective.postings[r]) +
                      "; all ranks must post the same collectives in the same order");
  }
}

void Team::launch(Collective& collective) {
  std::vector<Posting*> postings;
  for (std::optional<Posting>& p : collective.postings) postings.push_back(&*p);
  collective.done = launch_collective(devices_, postings);
}

bool Team::wait_launched(uint64_t sequence) {
  std::unique_lock<std::mutex> lock(mutex_);
  throw_problem();
  const auto launched = [&] { return collectives_[sequence].launched; };
  if (!launched()) {
    changed_.wait_for(lock, std::chrono::milliseconds(1),
                      [&] { return problem_.has_value() || launched(); });
    throw_problem();
  }
  return launched();
}

void Team::wait_done(uint64_t sequence) {
  std::vector<cl_event> done;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    done = collectives_[sequence].done;
  }
  // The collective stays until all ranks have waited, so its events do, too.
  if (!done.empty()) {
    check_cl(clWaitForEvents(static_cast<cl_uint>(done.size()), done.data()),
             "waiting for the reduction");
  }
  const std::lock_guard<std::mutex> lock(mutex_);
  const auto it = collectives_.find(sequence);
  if (++it->second.n_waited < n_ranks()) return;
  release(it->second);
  collectives_.erase(it);
}

std::string Team::missing(uint64_t sequence) {
  const std::lock_guard<std::mutex> lock(mutex_);
  const Collective& collective = collectives_[sequence];
  std::string out;
  for (uint32_t r = 0; r < n_ranks(); ++r) {
    if (r < collective.postings.size() && collective.postings[r]) continue;
    out += (out.empty() ? "" : ", ") + std::to_string(r);
  }
  return out;
}

void Team::fail(const Problem& problem) {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (!problem_) problem_ = problem;
  changed_.notify_all();
}

void Team::leave(uint32_t rank) {
  const std::lock_guard<std::mutex> lock(mutex_);
  left_[rank] = true;
  bool unfinished = false;
  for (const auto& [sequence, collective] : collectives_) {
    unfinished = unfinished || (!collective.launched && collective.n_posted > 0);
  }
  if (unfinished && !problem_) {
    problem_ = Problem{NETCL_E_PEER, "p2p transport: rank " + std::to_string(rank) +
                                         " has left the group in the middle of a collective"};
  }
  changed_.notify_all();
}

void Team::release(Collective& collective) {
  for (cl_event event : collective.done) clReleaseEvent(event);
  collective.done.clear();
  for (std::optional<Posting>& posting : collective.postings) {
    if (posting && posting->ready != nullptr) clReleaseEvent(posting->ready);
  }
}

}  // namespace netcl::p2p_transport
