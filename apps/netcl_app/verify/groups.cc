#include "apps/netcl_app/verify/groups.h"

#include <unistd.h>

#include <algorithm>
#include <map>
#include <memory>

#include "apps/netcl_app/verify/rank.h"
#include "core/base/clock.h"
#include "core/base/error.h"
#include "core/collective/segment.h"

namespace netcl::app::verify {

namespace {

constexpr uint32_t kMostRanks = 8;
constexpr double kPatience = 5;  // seconds, of a transport that was told, or whose limit is over
constexpr uint64_t kLongMs = 60'000, kShortMs = 1'000;  // limits of groups

// How what a rank waited for has ended.
struct Ending {
  netcl_rc code;
  std::string text;
};

struct GroupSpec {
  std::string check, mode;
  uint32_t n_ranks;
  uint64_t timeout_ms = kLongMs;
};

class GroupRun {
 public:
  GroupRun(const Setup& setup, bool one_context, const GroupSpec& spec, Report& report)
      : setup_(setup), one_context_(one_context), spec_(spec), report_(report) {
    if (!one_context) segment_ = Segment::create(spec.n_ranks);
    for (uint32_t r = 0; r < (one_context ? 1 : spec.n_ranks); ++r) {
      ChildJob job{::getpid(), setup.directory, setup.device, setup.quick, {}, {}};
      job.group = {{"mode", spec.mode},
                   {"check", spec.check},
                   {"n_ranks", spec.n_ranks},
                   {"rank", one_context ? -1 : static_cast<int64_t>(r)},
                   {"timeout_ms", spec.timeout_ms}};
      children_.push_back(
          {std::make_unique<WatchedChild>(setup, job, segment_ ? segment_->fd() : -1)});
    }
  }

  // Returns when all ranks have ended, or are ended because they take too long.
  void run() {
    double progress = now_seconds();
    while (
        std::any_of(children_.begin(), children_.end(), [&](auto& c) { return waited_for(c); })) {
      const double limit = left_ ? kPatience : setup_.timeout_s;
      const double left = progress + limit - now_seconds();
      if (left <= 0) return give_up(limit);
      std::vector<int> fds;
      for (const Member& m : children_)
        fds.push_back(m.ended ? -1 : m.child->process().status_fd());
      wait_any({}, fds, static_cast<int>(left * 1000) + 1);
      for (Member& m : children_) {
        if (!m.ended && take(m)) progress = now_seconds();
      }
    }
    for (Member& m : children_) m.child->end();  // one that is stopped
  }

  const std::map<uint32_t, Ending>& endings() const { return endings_; }
  const std::optional<std::string>& declined() const { return declined_; }
  // Nobody crashed, hung, or ended otherwise than the mode wants.
  bool orderly() const { return orderly_; }

 private:
  struct Member {
    std::unique_ptr<WatchedChild> child;
    std::string doing = "starting";
    bool done = false, ended = false;
  };

  // A stopped rank is not.
  bool waited_for(const Member& m) const {
    const bool victim =
        !one_context_ && &m == &children_[std::min<size_t>(kVictim, children_.size() - 1)];
    return !m.ended && !(victim && left_ && spec_.mode == mode::kStall);
  }

  // Returns true if something has come.
  bool take(Member& m) {
    const std::vector<Json> messages = m.child->messages();
    for (const Json& message : messages) {
      if (take_message(message, report_)) continue;
      if (message.contains("at")) m.doing = message.at("doing").get<std::string>();
      if (message.contains("at") && setup_.progress) setup_.progress(m.doing);
      if (message.contains("done")) m.done = true;
      if (message.contains("error")) bad(message.at("error").get<std::string>());
      if (!message.contains("rank")) continue;
      const auto rank = message.at("rank").get<uint32_t>();
      if (message.contains("declined")) declined_ = message.at("declined").get<std::string>();
      if (message.contains("leaving")) left_ = true;
      if (message.contains("code"))
        endings_[rank] = {message.at("code").get<netcl_rc>(),
                          message.at("text").get<std::string>()};
    }
    if (m.child->at_end()) end(m);
    return !messages.empty() || m.ended;
  }

  void end(Member& m) {
    m.ended = true;
    const auto status = m.child->process().wait(setup_.timeout_s * 1000);
    const auto rank = static_cast<uint32_t>(&m - children_.data());
    const std::string who = one_context_ ? "the process of the ranks" : str_cat("rank ", rank);
    if (segment_ != nullptr && (!m.done || !status || !status->success()))
      segment_->abort(str_cat(who, " was ", status ? status->describe() : "lost"));
    const bool wanted = left_ && rank == kVictim && status && status->by_signal && !one_context_;
    if (wanted || (m.done && status && status->success())) return;
    bad("NPL-11: " + who + " " + m.child->how_it_ended() + " while " + m.doing);
  }

  void give_up(double limit) {
    for (size_t r = 0; r < children_.size(); ++r) {
      Member& m = children_[r];
      if (!waited_for(m)) continue;
      const std::string who = one_context_ ? std::string("a rank") : str_cat("rank ", r);
      if (!left_) {
        bad(str_cat("NPL-11: timed out: ", who, " gave no sign of progress for ", limit,
                    " s, while ", m.doing));
      } else {
        bad(str_cat(who, " still waits ", limit, " s after ", what_happened()));
      }
    }
    for (Member& m : children_) m.child->end();
  }

  // What the ranks should have noticed, and how.
  std::string what_happened() const {
    if (spec_.mode == mode::kAbort)
      return "it was aborted; end every wait of the rank with NETCL_E_CANCELLED";
    if (spec_.mode == mode::kStall)
      return str_cat("rank ", kVictim, " has stopped, in a group with a limit of ",
                     spec_.timeout_ms, " ms; give up with NETCL_E_TIMEOUT");
    return str_cat("rank ", kVictim,
                   " has died; poll boot_status while waiting, and give up with NETCL_E_PEER");
  }

  void bad(const std::string& detail) {
    orderly_ = false;
    report_.failed(spec_.check, detail);
  }

  const Setup& setup_;
  const bool one_context_;
  const GroupSpec spec_;
  Report& report_;
  std::shared_ptr<Segment> segment_;
  std::vector<Member> children_;
  std::map<uint32_t, Ending> endings_;
  std::optional<std::string> declined_;
  bool left_ = false, orderly_ = true;
};

class TransportChecks {
 public:
  TransportChecks(const Setup& setup, const Manifest& manifest, const Plan& plan, Report& report)
      : setup_(setup), plan_(plan), report_(report) {
    for (const Provision& p : manifest.provides)
      one_context_ = one_context_ || (!p.transport.empty() && p.one_context);
  }

  void run() {
    if (wants(check::kMatrix) || wants(check::kAccept)) run_matrix();
    if (wants(check::kOrder)) plain({check::kOrder, mode::kOrder, 3});
    if (wants(check::kMismatch)) plain({check::kMismatch, mode::kMismatch, 3});
    if (wants(check::kPeer)) {
      for (const char* how : {mode::kDiesBefore, mode::kDiesAfter})
        if (!report_.has_failed(check::kPeer))
          losing({check::kPeer, how, 3}, {NETCL_E_PEER, NETCL_E_CANCELLED});
    }
    if (wants(check::kStall)) {
      losing({check::kStall, mode::kStall, 3, kShortMs},
             {NETCL_E_TIMEOUT, NETCL_E_PEER, NETCL_E_CANCELLED});
    }
    if (wants(check::kAbort)) losing({check::kAbort, mode::kAbort, 2}, {NETCL_E_CANCELLED});
  }

 private:
  bool wants(const char* check) const {
    return std::any_of(plan_.checks.begin(), plan_.checks.end(),
                       [&](const CheckDoc& c) { return c.name == check; });
  }

  void run_matrix() {
    size_t served = 0;
    for (uint32_t n = 1; n <= kMostRanks; ++n) {
      if (setup_.quick && n > 3 && n != 5) continue;
      GroupRun group(setup_, one_context_, {check::kMatrix, mode::kMatrix, n}, report_);
      group.run();
      report_.ran(check::kAccept);
      if (!group.declined()) {
        served += n > 1 ? 1 : 0;
        continue;
      }
      report_.note(check::kAccept, str_cat(n, " ranks are declined: ", *group.declined()));
      if (n == 2) first_decline_ = *group.declined();
    }
    if (served == 0)
      report_.failed(check::kAccept,
                     "no group of two ranks or more on this machine is served: " + first_decline_);
  }

  // The ranks themselves say what is wrong.
  void plain(const GroupSpec& spec) {
    GroupRun group(setup_, one_context_, spec, report_);
    group.run();
  }

  // The ranks that stay must have been told so in time, with one of these.
  void losing(const GroupSpec& spec, const std::vector<netcl_rc>& wanted) {
    GroupRun group(setup_, one_context_, spec, report_);
    group.run();
    if (group.declined() || !group.orderly()) return;
    bool any_first = false;
    for (const auto& [rank, ending] : group.endings()) {
      any_first = any_first || ending.code == wanted.front();
      if (std::find(wanted.begin(), wanted.end(), ending.code) != wanted.end()) continue;
      report_.failed(spec.check, str_cat("rank ", rank, ": expected status ", wanted.front(),
                                         ", got ", ending.code, " (", ending.text, ")"));
    }
    if (!any_first && spec.mode == mode::kStall)
      report_.failed(spec.check, "no rank says NETCL_E_TIMEOUT, though one has stopped");
    if (group.endings().empty()) report_.failed(spec.check, "no rank said how its wait ended");
    report_.ran(spec.check);
  }

  const Setup& setup_;
  const Plan& plan_;
  Report& report_;
  bool one_context_ = false;
  std::string first_decline_;
};

}  // namespace

void run_groups(const Setup& setup, const Manifest& manifest, const Plan& plan, Report& report) {
  TransportChecks(setup, manifest, plan, report).run();
}

}  // namespace netcl::app::verify
