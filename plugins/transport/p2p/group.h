// One rank's end of a p2p group.
//
// Threads: abort: any; the rest: [group]. The ranks of a group may be on threads of their own or
// all on one, since post returns at once.
#ifndef NETCL_PLUGINS_TRANSPORT_P2P_GROUP_H_
#define NETCL_PLUGINS_TRANSPORT_P2P_GROUP_H_

#include <memory>
#include <string>
#include <vector>

#include "core/abi/netcl_transport.hpp"
#include "plugins/transport/p2p/team.h"

namespace netcl::p2p_transport {

class P2pGroup : public plugin::TransportGroup {
 public:
  // `kernels`: directory of the .cl files. Collective. Throws Failure.
  P2pGroup(const plugin::Host& host, const netcl_group_spec& spec, const std::string& kernels);
  ~P2pGroup() override;

  void bucket_new(const plugin::Host& host, uint64_t bytes, netcl_bucket* out) override;
  void bucket_free(netcl_bucket* bucket) noexcept override;
  uint64_t post(const plugin::Host& host, const netcl_coll& collective) override;
  void wait(const plugin::Host& host, uint64_t ticket) override;
  void abort(std::string_view reason) noexcept override;

 private:
  void meet(const plugin::Host& host);
  Posting checked(const netcl_coll& c) const;
  void release(Bucket& bucket);

  const uint32_t rank_, n_ranks_;
  const uint64_t timeout_ns_;
  netcl_boot* const boot_;
  std::unique_ptr<RankDevice> device_;
  std::shared_ptr<Team> team_;
  std::vector<std::unique_ptr<Bucket>> buckets_;
  uint64_t posted_ = 0, waited_ = 0;
};

}  // namespace netcl::p2p_transport

#endif  // NETCL_PLUGINS_TRANSPORT_P2P_GROUP_H_
