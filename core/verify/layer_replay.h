// Running a traced layer on the host, in double precision, with values and a batch size of one's
// choice. Threads: one.
#ifndef NETCL_CORE_VERIFY_LAYER_REPLAY_H_
#define NETCL_CORE_VERIFY_LAYER_REPLAY_H_

#include <map>
#include <string>
#include <vector>

#include "core/ops/host_recorder.h"
#include "core/verify/layer_example.h"

namespace netcl {

// Values of everything that comes from outside, by the graph's names: inputs, slots, random state.
using ReplayValues = std::map<std::string, HostTensor>;

// Random ones: inputs in [-1, 1), parameters as or around what they start from, statistics
// likewise but not below it.
ReplayValues replay_values(const TracedExample& traced, const LayerExample& example, int64_t batch);

// The same with the first `n` samples of the inputs of `batch`.
ReplayValues first_samples(const TracedExample& traced, const ReplayValues& values, int64_t n,
                           int64_t batch);

class LayerReplay {
 public:
  // Runs the trace. `traced` outlives it.
  LayerReplay(const TracedExample& traced, const ReplayValues& values, int64_t batch);

  HostRecorder& recorder() { return host_; }
  const std::vector<ValueId>& out() const { return out_; }
  const HostTensor& output(size_t k) const { return host_.value(out_[k]); }
  ValueId external(const std::string& name) const { return externals_.at(name); }

 private:
  HostRecorder host_;
  std::map<std::string, ValueId> externals_;
  std::vector<ValueId> out_;
};

}  // namespace netcl

#endif  // NETCL_CORE_VERIFY_LAYER_REPLAY_H_
