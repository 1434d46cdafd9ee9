// Team: what the ranks of one group share. They are threads of one process, so it is plain memory
// behind a lock, which is held while commands are enqueued and never while a device works.
//
// A collective is launched by the rank that posts it last: then every rank's contribution is known,
// and the commands of all ranks are enqueued with the events they wait for. A rank waits until its
// collective was launched, then for the commands of all ranks, because they read its contribution.
// Threads: any.
#ifndef NETCL_PLUGINS_TRANSPORT_P2P_TEAM_H_
#define NETCL_PLUGINS_TRANSPORT_P2P_TEAM_H_

#include <CL/cl.h>

#include <condition_variable>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "core/abi/netcl_plugin.h"
#include "plugins/transport/p2p/rank_device.h"

namespace netcl::p2p_transport {

struct Bucket {
  uint64_t bytes = 0;
  cl_mem send = nullptr, recv = nullptr;
  cl_mem part = nullptr;  // the reduced part of this rank, where the others fetch it; or nullptr
  uint64_t part_bytes = 0;
};

// What one rank posts.
struct Posting {
  uint32_t kind = 0, dtype = 0, redop = 0, root = 0;
  uint64_t offset_bytes = 0, count = 0;
  std::vector<uint64_t> counts;  // of every rank's part
  double weight = 1;
  Bucket* bucket = nullptr;
  cl_event ready = nullptr;  // retained
  std::string name;
};

struct Problem {
  netcl_rc code;
  std::string text;
};

class Team {
 public:
  explicit Team(uint32_t n_ranks) : devices_(n_ranks), left_(n_ranks, false) {}
  Team(const Team&) = delete;
  Team& operator=(const Team&) = delete;
  ~Team();

  uint32_t n_ranks() const { return static_cast<uint32_t>(devices_.size()); }
  void set_device(uint32_t rank, RankDevice* device);

  // Hands over a collective; the last rank's call launches it. Throws Failure.
  void post(uint32_t rank, uint64_t sequence, Posting posting);
  // True once the collective was launched; waits for that at most a millisecond. Throws what went
  // wrong for the group.
  bool wait_launched(uint64_t sequence);
  // Waits for the collective's commands on all ranks; the last rank to come drops it.
  void wait_done(uint64_t sequence);
  // "1, 2": the ranks that have not posted it.
  std::string missing(uint64_t sequence);
  // Keeps the first problem; all waits throw it.
  void fail(const Problem& problem);
  // The rank will post nothing more.
  void leave(uint32_t rank);

 private:
  struct Collective {
    std::vector<std::optional<Posting>> postings;
    uint32_t n_posted = 0, n_waited = 0;
    bool launched = false;
    std::vector<cl_event> done;
  };
  void throw_problem() const;
  void launch(Collective& collective);
  void check_same(uint64_t sequence, const Collective& collective) const;
  void release(Collective& collective);

  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<RankDevice*> devices_;
  std::vector<bool> left_;
  std::map<uint64_t, Collective> collectives_;
  std::optional<Problem> problem_;
};

}  // namespace netcl::p2p_transport

#endif  // NETCL_PLUGINS_TRANSPORT_P2P_TEAM_H_
