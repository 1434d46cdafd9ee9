#include "apps/netcl_app/joined_messages.h"

#include <utility>

namespace netcl::app {

JoinedMessages::JoinedMessages(uint32_t n_ranks, StatusSink out)
    : n_ranks_(n_ranks), out_(std::move(out)) {}

void JoinedMessages::say(uint32_t rank, Json message) {
  const std::lock_guard<std::mutex> lock(mutex_);
  const std::string type = message.at("type").get<std::string>();
  if (type == "trace") message["rank"] = rank;
  if (type != "ready" && type != "done") return out_(message);
  std::map<uint32_t, Json>& said = waiting_[type];
  said[rank] = std::move(message);
  if (said.size() < n_ranks_) return;
  Json joined = std::move(said.at(0));
  joined["members"] = Json::array();
  for (uint32_t r = 1; r < n_ranks_; ++r) joined["members"].push_back(std::move(said.at(r)));
  said.clear();
  out_(joined);
}

std::vector<Json> split_members(const Json& joined, size_t n_ranks) {
  std::vector<Json> out(n_ranks);
  if (!joined.is_object()) return out;
  out[0] = joined;
  out[0].erase("members");
  for (size_t r = 1; r < n_ranks; ++r) out[r] = joined.at("members").at(r - 1);
  return out;
}

}  // namespace netcl::app
