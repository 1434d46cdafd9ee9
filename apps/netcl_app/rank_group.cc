#include "apps/netcl_app/rank_group.h"

#include "core/runtime/transport.h"

namespace netcl::app {

RankGroup::RankGroup(std::shared_ptr<Segment> segment, LoadedPlugin& plugin,
                     std::shared_ptr<Queue> queue, const RankGroupSpec& spec)
    : spec_(spec), queue_(std::move(queue)) {
  for (uint32_t r = 0; r < spec.n_ranks; ++r) {
    const uint32_t process = spec.one_context ? 0 : r;
    members_.push_back({r, 0, process, process});
  }
  TransportAccess access = transport_access(plugin);
  access.waiting = spec.waiting;
  link_ = std::make_unique<RankLink>(std::move(segment), access, queue_->device(), spec.rank,
                                     members_, spec.timeout_ns, "--transport " + access.name);
}

const netcl_bucket& RankGroup::new_bucket(size_t bytes) {
  bucket_ = &link_->communicator().new_bucket(bytes);
  sums_ = std::make_unique<GroupSum>(link_->communicator(), *queue_, spec_.sum_bytes);
  return *bucket_;
}

Group RankGroup::links() {
  return {&link_->bootstrap(), &link_->communicator(), bucket_, sums_.get(),
          spec_.rank,          spec_.n_ranks};
}

}  // namespace netcl::app
