// HostRecorder: runs every op as it is recorded, by its double-precision reference. It is the
// oracle of the tests and of the conformance kit; every value is kept until the recorder goes.
// Threads: one per recorder.
#ifndef NETCL_CORE_OPS_HOST_RECORDER_H_
#define NETCL_CORE_OPS_HOST_RECORDER_H_

#include <deque>

#include "core/ops/op.h"
#include "core/ops/recorder.h"

namespace netcl {

class HostRecorder : public Recorder {
 public:
  // Adds a value that no op produces.
  // Errors: kUsage if the shape is symbolic or the number of elements is not the shape's.
  ValueId input(HostTensor tensor);
  // The value's elements; the reference stays valid as long as the recorder.
  // Errors: kUsage for an unknown value.
  const HostTensor& value(ValueId id) const;

 protected:
  void recorded(const Node& node) override;

 private:
  std::deque<HostTensor> values_;  // a deque: growing it moves no element
};

}  // namespace netcl

#endif  // NETCL_CORE_OPS_HOST_RECORDER_H_
