#include "core/runtime/rank_link.h"

#include "core/base/error.h"

namespace netcl {

RankLink::RankLink(std::shared_ptr<Segment> segment, const TransportAccess& access, Device& device,
                   uint32_t rank, const std::vector<netcl_member>& members, uint64_t timeout_ns,
                   const std::string& asked)
    : bootstrap_(std::move(segment), rank, timeout_ns) {
  boot_.bootstrap = &bootstrap_;
  device_ = {&device.info(), &device};
  netcl_group_spec spec{};
  spec.size = sizeof(spec);
  spec.rank = rank;
  spec.n_ranks = static_cast<uint32_t>(members.size());
  spec.members = members.data();
  spec.device = &device_;
  spec.boot = &boot_;
  spec.timeout_ns = timeout_ns;
  const std::string reason = Communicator::accepts(access, spec);
  NETCL_CHECK(reason.empty(), ErrorCode::kPlugin, asked, " cannot serve this group: ", reason);
  communicator_ = std::make_unique<Communicator>(access, spec);
}

}  // namespace netcl
