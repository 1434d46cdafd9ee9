// FdChannel: a socket between two processes over which messages with descriptors pass.
//
// Ownership: an object owns its end. Threads: one for one object.
#ifndef NETCL_CORE_DISTRIBUTED_FD_CHANNEL_H_
#define NETCL_CORE_DISTRIBUTED_FD_CHANNEL_H_

#include <string>
#include <utility>
#include <vector>

#include "core/base/unique_fd.h"

namespace netcl {

class FdChannel {
 public:
  static constexpr size_t kMostBytes = 4096, kMostFds = 8;
  struct Message {
    std::string text;
    std::vector<UniqueFd> fds;
  };

  explicit FdChannel(UniqueFd end) : end_(std::move(end)) {}
  // Both ends; neither is inherited unless it is given to a child. Errors: kTraining.
  static std::pair<UniqueFd, UniqueFd> pair();

  // Sends one message. Returns false if the other end is gone. Errors: kTraining.
  bool send(const std::string& text, const std::vector<int>& fds) const;
  // Waits for the next message. Errors: kTraining if the other end is gone.
  Message receive() const;

 private:
  UniqueFd end_;
};

}  // namespace netcl

#endif  // NETCL_CORE_DISTRIBUTED_FD_CHANNEL_H_
