// A transport's ranks in child processes: what each does in a group that checks something.
//
// ChildJob::group: {"mode", "n_ranks", "rank" (-1: all of them, on threads of this process with the
// device in one context), "timeout_ms" (the group's)}. Messages beside those of child.h:
//   {"rank": 1, "declined": "..."}   the transport does not serve the group
//   {"rank": 1, "leaving": true}     it stops taking part now, as the mode wants it: from now on
//   the
//                                    others must come to an end soon
//   {"rank": 0, "code": 9, "text"}   how what it waited for ended
// Threads: as said.
#ifndef NETCL_APPS_NETCL_APP_VERIFY_RANK_H_
#define NETCL_APPS_NETCL_APP_VERIFY_RANK_H_

#include "core/cl/device.h"
#include "core/runtime/plugin_host.h"

namespace netcl::app::verify {

// What groups do.
namespace mode {
constexpr const char* kMatrix = "matrix";
constexpr const char* kOrder = "order";
constexpr const char* kMismatch = "mismatch";
constexpr const char* kDiesBefore = "dies.before";  // rank 1, before it posts a collective
constexpr const char* kDiesAfter = "dies.after";    // rank 1, after it has posted one
constexpr const char* kStall = "stall";             // rank 1 is stopped
constexpr const char* kAbort = "abort";             // rank 0 aborts while it waits for rank 1
}  // namespace mode
constexpr uint32_t kVictim = 1;

// A group of one rank, with one collective of each of a few kinds. Errors: kPlugin, with the
// plugin's words.
void run_lone_rank(LoadedPlugin& plugin, Device& device);

}  // namespace netcl::app::verify

#endif  // NETCL_APPS_NETCL_APP_VERIFY_RANK_H_
