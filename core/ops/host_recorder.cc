#include "core/ops/host_recorder.h"

#include <limits>
#include <utility>

#include "core/base/error.h"

namespace netcl {

ValueId HostRecorder::input(HostTensor tensor) {
  NETCL_CHECK(!tensor.desc.shape.symbolic(), ErrorCode::kUsage, "host input ", tensor.desc.str(),
              " needs a concrete shape; use Shape::with_batch");
  NETCL_CHECK(static_cast<int64_t>(tensor.data.size()) == tensor.desc.shape.num_elements(),
              ErrorCode::kUsage, "host input ", tensor.desc.str(), " was given ",
              tensor.data.size(), " elements");
  const ValueId id = add_value(tensor.desc);
  values_.push_back(std::move(tensor));
  return id;
}

const HostTensor& HostRecorder::value(ValueId id) const {
  NETCL_CHECK(id < values_.size(), ErrorCode::kUsage, "value ", id,
              " is not of this recorder, which holds ", values_.size());
  return values_[id];
}

void HostRecorder::recorded(const Node& node) {
  std::vector<const HostTensor*> in;
  std::vector<TensorDesc> descs;
  for (const ValueId id : node.in) {
    in.push_back(&values_[id]);
    descs.push_back(values_[id].desc);
  }
  std::vector<HostTensor> out;
  for (const ValueId id : node.out) {
    const TensorDesc& d = desc(id);
    // Not a number: an element that a reference forgets to write shows.
    const std::vector<double> poison(static_cast<size_t>(d.shape.num_elements()),
                                     std::numeric_limits<double>::quiet_NaN());
    out.push_back({d, poison});
  }
  node.op->reference({*node.op, descs, node.attrs}, in, out);
  for (HostTensor& tensor : out) values_.push_back(std::move(tensor));
}

}  // namespace netcl
