#include "apps/netcl_app/verify/rank.h"

#include <signal.h>

#include <algorithm>
#include <chrono>
#include <numeric>
#include <thread>

#include "apps/netcl_app/verify/child.h"
#include "core/base/error.h"
#include "core/base/text.h"
#include "core/collective/bootstrap.h"
#include "core/runtime/host_call.h"
#include "core/runtime/transport.h"
#include "core/verify/collective_case.h"

namespace netcl::app::verify {

namespace {

constexpr uint64_t kSetUpNs = 60'000'000'000u;  // longest wait for a rank that starts
constexpr uint64_t kDiesAt = 3;                 // collectives that go well before
constexpr uint64_t kMostRounds = 1000;          // within which the others must see it
constexpr auto kBetweenRanks = std::chrono::milliseconds(10);

// One rank's end of a group, over a plugin that the host has opened.
class GroupRank {
 public:
  GroupRank(LoadedPlugin& plugin, Device& device, std::shared_ptr<Segment> segment, uint32_t rank,
            uint64_t timeout_ms, bool one_context)
      : bootstrap_(segment, rank, kSetUpNs), boot_{&bootstrap_}, device_{&device.info(), &device} {
    for (uint32_t r = 0; r < segment->n_ranks(); ++r) {
      const uint32_t process = one_context ? 0 : r;
      members_.push_back({r, 0, process, process});
    }
    spec_.size = sizeof(spec_);
    spec_.rank = rank;
    spec_.n_ranks = segment->n_ranks();
    spec_.members = members_.data();
    spec_.device = &device_;
    spec_.boot = &boot_;
    spec_.timeout_ns = timeout_ms * 1'000'000;
    access_ = transport_access(plugin);
    queue_ = device.make_queue();
  }
  GroupRank(const GroupRank&) = delete;
  GroupRank& operator=(const GroupRank&) = delete;

  // "" or why the transport does not serve the group.
  std::string declined() const { return Communicator::accepts(access_, spec_); }
  void open() { rank_ = std::make_unique<TransportRank>(access_, spec_, queue_); }
  TransportRank& operator*() { return *rank_; }
  TransportRank* operator->() { return rank_.get(); }
  uint32_t rank() const { return spec_.rank; }
  uint32_t n_ranks() const { return spec_.n_ranks; }

  Bootstrap& bootstrap() { return bootstrap_; }
  // Returns when all ranks are here. It goes past the transport.
  void meet() {
    const uint8_t mine = 0;
    std::vector<uint8_t> all(n_ranks());
    bootstrap_.exchange(&mine, 1, all.data());
  }

 private:
  Bootstrap bootstrap_;
  netcl_boot boot_;
  netcl_device device_;
  std::vector<netcl_member> members_;
  netcl_group_spec spec_{};
  TransportAccess access_;
  cl::CommandQueue queue_;
  std::unique_ptr<TransportRank> rank_;
};

// What one rank does in one mode.
class RankTask {
 public:
  RankTask(ChildContext& context, std::shared_ptr<Segment> segment, uint32_t rank, bool alone)
      : job_(context.job().group),
        quick_(context.job().quick),
        plugin_(context.plugin()),
        device_(context.device()),
        segment_(std::move(segment)),
        rank_(rank),
        alone_(alone) {}

  // Opens the group, which stays open as long as the task, and does what the mode says.
  void run() {
    const auto name = job_.at("mode").get<std::string>();
    tell_.at(job_.at("check").get<std::string>(),
             str_cat("rank ", rank_, " of ", segment_->n_ranks(), " opens its group"));
    if (!open_group()) return;
    if (name == mode::kMatrix) return matrix();
    if (name == mode::kOrder) return order();
    if (name == mode::kMismatch) return mismatches();
    if (name == mode::kAbort) return abort();
    lose_a_rank(name);
  }
  const Teller& tell() const { return tell_; }

 private:
  bool open_group() {
    const auto timeout = job_.at("timeout_ms").get<uint64_t>();
    group_ = std::make_unique<GroupRank>(plugin_, device_, segment_, rank_, timeout, !alone_);
    const std::string declined = group_->declined();
    if (!declined.empty()) tell_.send({{"rank", rank_}, {"declined", declined}});
    if (!declined.empty()) return false;
    group_->open();
    return true;
  }

  void matrix() {
    TransportRank& rank = **group_;
    netcl_bucket bucket = rank.bucket(kMatrixBucketBytes);
    std::vector<CollectiveCase> cases = collective_matrix(
        group_->n_ranks(), quick_ ? std::vector<uint64_t>{0, 1, 17, 4099}
                                  : std::vector<uint64_t>{0, 1, 2, 3, 16, 65, 4099});
    size_t done = 0;
    for (const CollectiveCase& c : cases) {
      if (done++ % 32 == 0)
        tell_.at(check::kMatrix, str_cat("rank ", rank_, " of ", group_->n_ranks(),
                                         " runs collective ", done, " of ", cases.size()));
      run_case(bucket, c);
    }
    rank.free(bucket);
    bucket = rank.bucket(2'000'000);  // more than transports move at once
    run_case(bucket, {NETCL_ALL_REDUCE, NETCL_F32, NETCL_SUM, 480'001, 0, 10'000});
    run_case(bucket, {NETCL_ALL_GATHER, NETCL_F16, 0, 300'001, 1, 10'001});
    rank.free(bucket);
    rank.wait(rank.post(TransportRank::barrier()));
    if (rank_ == 0) tell_.ran(check::kMatrix, cases.size() + 3);
  }

  void run_case(const netcl_bucket& bucket, const CollectiveCase& c) {
    const std::string wrong = check_collective(**group_, bucket, c, expected_);
    if (!wrong.empty()) tell_.failed(check::kMatrix, wrong);
  }

  // The same sum while the ranks come in every order.
  void order() {
    const CollectiveCase sum{NETCL_ALL_REDUCE, NETCL_F32, NETCL_SUM, 4099, 0, 2};
    const netcl_bucket bucket = (*group_)->bucket(sum.count * 4);
    std::vector<uint32_t> places(group_->n_ranks());
    std::iota(places.begin(), places.end(), 0u);
    std::vector<char> first;
    do {
      std::string text;
      for (const uint32_t p : places) text += (text.empty() ? "" : ", ") + std::to_string(p);
      tell_.at(check::kOrder, "the ranks come in the order " + text);
      const std::vector<char> got = sum_in_turn(sum, bucket, places);
      if (first.empty()) first = got;
      if (got != first)
        tell_.failed(check::kOrder,
                     str_cat("rank ", rank_, ": when the ranks come in the order ", text,
                             " the sum has other bits than in order; add in "
                             "rank order, whoever comes first"));
      if (rank_ == 0) tell_.ran(check::kOrder);
    } while (std::next_permutation(places.begin(), places.end()));
  }

  std::vector<char> sum_in_turn(const CollectiveCase& sum, const netcl_bucket& bucket,
                                const std::vector<uint32_t>& places) {
    TransportRank& rank = **group_;
    const std::vector<char> mine = sum.contribution(rank_);
    cl_event ready = rank.write(bucket, 0, mine.data(), mine.size());
    ::clWaitForEvents(1, &ready);
    ::clReleaseEvent(ready);
    group_->meet();
    const auto place = std::find(places.begin(), places.end(), rank_) - places.begin();
    std::this_thread::sleep_for(place * kBetweenRanks);
    rank.wait(
        rank.post(TransportRank::all_reduce(bucket, 0, sum.count, sum.dtype, sum.op, "in turn")));
    std::vector<char> got(mine.size());
    rank.read(bucket, 0, got.data(), got.size());
    group_->meet();
    return got;
  }

  // Collectives that differ on the last rank, each in a group of its own.
  void mismatches() {
    const bool last = rank_ + 1 == group_->n_ranks();
    for (const char* what : {"count", "kind", "type"}) {
      tell_.at(check::kMismatch, str_cat("the ranks disagree on the ", what));
      const std::string differs = what;
      netcl_bucket bucket = (*group_)->bucket(64 * 1024);
      netcl_coll c = TransportRank::all_reduce(bucket, 0, 9000, NETCL_F32, NETCL_SUM, what);
      if (last && differs == "count") c.count = 999;
      if (last && differs == "kind") c.kind = NETCL_BROADCAST;
      if (last && differs == "type") c.dtype = NETCL_I32;
      const TransportStatus s = status_of([&] { (*group_)->wait((*group_)->post(c)); });
      if (s.code != NETCL_E_STATE)
        tell_.failed(check::kMismatch,
                     str_cat("rank ", rank_, ", where the ranks disagree on the ", what,
                             ": expected NETCL_E_STATE, got status ", s.code, " (", s.text, ")"));
      group_->meet();
      (*group_)->free(bucket);
      group_.reset();
      if (rank_ == 0) tell_.ran(check::kMismatch);
      if (differs != "type" && !open_group()) return;
    }
  }

  // Rank 0 aborts in the middle of a wait for rank 1, which never comes.
  void abort() {
    tell_.at(check::kAbort, "aborting a rank that waits");
    if (rank_ == 0) {
      std::thread other([&] {
        std::this_thread::sleep_for(5 * kBetweenRanks);
        (*group_)->abort("enough");
        tell_.send({{"rank", rank_}, {"leaving", true}});
      });
      const TransportStatus s =
          status_of([&] { (*group_)->wait((*group_)->post(TransportRank::barrier())); });
      other.join();
      const TransportStatus later =
          status_of([&] { (*group_)->wait((*group_)->post(TransportRank::barrier())); });
      if (later.code == NETCL_OK)
        tell_.failed(check::kAbort, "after abort() a later collective says that all is well");
      ended(s);
    }
    group_->meet();
  }

  // Rounds of sums until rank 1 is not there any more.
  void lose_a_rank(const std::string& how) {
    TransportRank& rank = **group_;
    const netcl_bucket bucket = rank.bucket(64 * 1024);
    const auto post = [&] {
      return rank.post(TransportRank::all_reduce(bucket, 0, 9000, NETCL_I32, NETCL_SUM, "rounds"));
    };
    const TransportStatus s = status_of([&] {
      for (uint64_t round = 0; round < kMostRounds; ++round) {
        const bool leaves = rank_ == kVictim && round == kDiesAt;
        if (leaves && how != mode::kDiesAfter) return leave(how);
        const uint64_t ticket = post();
        if (leaves) return leave(how);
        rank.wait(ticket);
      }
    });
    if (rank_ != kVictim) ended(s);
  }

  void leave(const std::string& how) {
    tell_.send({{"rank", rank_}, {"leaving", true}});
    if (alone_) ::raise(how == mode::kStall ? SIGSTOP : SIGKILL);
    // On a thread: the supervisor tells the others, or nobody does.
    if (how != mode::kStall) segment_->abort(str_cat("rank ", rank_, " has died"));
  }

  void ended(const TransportStatus& s) const {
    tell_.send({{"rank", rank_}, {"code", s.code}, {"text", s.text}});
  }

  const Json& job_;
  const bool quick_;
  LoadedPlugin& plugin_;
  Device& device_;
  std::shared_ptr<Segment> segment_;
  const uint32_t rank_;
  const bool alone_;  // in this process
  Teller tell_;
  std::unique_ptr<GroupRank> group_;
  ExpectedResults expected_;
};

// A status that a task did not expect is a finding, and ends the group.
void run_task(RankTask& task, Segment& segment) {
  task.tell().guard([&] {
    try {
      task.run();
    } catch (const TransportStatus& s) {
      segment.abort("a rank of the check has failed: " + s.text);
      fail(ErrorCode::kPlugin, "status ", s.code, ": ", s.text.empty() ? "without a word" : s.text);
    } catch (...) {
      segment.abort("a rank of the check has failed");
      throw;
    }
  });
}

}  // namespace

void run_lone_rank(LoadedPlugin& plugin, Device& device) {
  GroupRank group(plugin, device, Segment::create(1), 0, 10'000, /*one_context=*/true);
  const std::string declined = group.declined();
  NETCL_CHECK(declined.empty(), ErrorCode::kPlugin, declined);
  const TransportStatus s = status_of([&] {
    group.open();
    netcl_bucket bucket = group->bucket(1000);
    group->wait(group->post(TransportRank::all_reduce(bucket, 0, 100, NETCL_F32, NETCL_SUM)));
    group->wait(group->post(TransportRank::barrier()));
    group->free(bucket);
  });
  NETCL_CHECK(s.code == NETCL_OK, ErrorCode::kPlugin, s.text);
}

void run_ranks(ChildContext& context) {
  const Json& job = context.job().group;
  const auto rank = job.at("rank").get<int64_t>();
  const auto n_ranks = job.at("n_ranks").get<uint32_t>();
  if (rank >= 0) {
    const auto segment = Segment::attach(UniqueFd(ChildFds::kSegment));
    RankTask task(context, segment, static_cast<uint32_t>(rank), /*alone=*/true);
    return run_task(task, *segment);
  }
  const auto segment = Segment::create(n_ranks);
  std::vector<std::unique_ptr<RankTask>> tasks;  // their groups stay open until all have ended
  for (uint32_t r = 0; r < n_ranks; ++r)
    tasks.push_back(std::make_unique<RankTask>(context, segment, r, /*alone=*/false));
  std::vector<std::thread> threads;
  for (const auto& task : tasks)
    threads.emplace_back([&task = *task, &segment] { run_task(task, *segment); });
  for (std::thread& t : threads) t.join();
}

}  // namespace netcl::app::verify
