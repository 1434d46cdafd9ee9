#include "apps/netcl_app/rank_group.h"

#include "apps/netcl_app/model_setup.h"
#include "core/base/error.h"

namespace netcl::app {

RankGroup::RankGroup(std::shared_ptr<Segment> segment, LoadedPlugin& plugin,
                     std::shared_ptr<Queue> queue, const RankGroupSpec& spec)
    : spec_(spec),
      queue_(std::move(queue)),
      bootstrap_(std::move(segment), spec.rank, spec.timeout_ns) {
  boot_handle_.bootstrap = &bootstrap_;
  device_handle_ = {&queue_->device().info(), &queue_->device()};
  for (uint32_t r = 0; r < spec.n_ranks; ++r) members_.push_back({r, 0, r, r});
  netcl_group_spec group{};
  group.size = sizeof(group);
  group.rank = spec.rank;
  group.n_ranks = spec.n_ranks;
  group.members = members_.data();
  group.device = &device_handle_;
  group.boot = &boot_handle_;
  group.timeout_ns = spec.timeout_ns;
  TransportAccess access = transport_access(plugin);
  access.waiting = spec.waiting;
  const std::string reason = Communicator::accepts(access, group);
  NETCL_CHECK(reason.empty(), ErrorCode::kPlugin, "--transport ", access.name,
              " cannot serve this group: ", reason);
  communicator_ = std::make_unique<Communicator>(access, group);
}

const netcl_bucket& RankGroup::new_bucket(size_t bytes) {
  bucket_ = &communicator_->new_bucket(bytes);
  sums_ = std::make_unique<GroupSum>(*communicator_, *queue_, spec_.sum_bytes);
  return *bucket_;
}

Group RankGroup::links() {
  return {&bootstrap_, communicator_.get(), bucket_, sums_.get(), spec_.rank, spec_.n_ranks};
}

}  // namespace netcl::app
