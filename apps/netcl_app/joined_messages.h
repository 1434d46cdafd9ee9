// JoinedMessages: makes what several ranks of one process say the messages of one worker.
//
// "ready" and "done" are said once, when all ranks have said them: rank 0's, with the others' under
// "members"; split_members takes them apart again. A "trace" gets its "rank". All else passes.
// Threads: any.
#ifndef NETCL_APPS_NETCL_APP_JOINED_MESSAGES_H_
#define NETCL_APPS_NETCL_APP_JOINED_MESSAGES_H_

#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <vector>

#include "apps/netcl_app/worker_status.h"

namespace netcl::app {

class JoinedMessages {
 public:
  JoinedMessages(uint32_t n_ranks, StatusSink out);
  void say(uint32_t rank, Json message);

 private:
  const uint32_t n_ranks_;
  const StatusSink out_;
  std::mutex mutex_;
  std::map<std::string, std::map<uint32_t, Json>> waiting_;  // by type and rank
};

// The ranks' messages, from the one that joins them; `n_ranks` nulls for null.
std::vector<Json> split_members(const Json& joined, size_t n_ranks);

}  // namespace netcl::app

#endif  // NETCL_APPS_NETCL_APP_JOINED_MESSAGES_H_
