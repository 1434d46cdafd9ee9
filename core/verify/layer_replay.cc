#include "core/verify/layer_replay.h"

#include <algorithm>

#include "core/abi/netcl_plugin.h"
#include "core/ops/case_inputs.h"

namespace netcl {

namespace {

constexpr double kAround = 0.1;  // how far parameters are from a value that all start from

// Values as at the start of training, which keeps those of deep models within bounds; but none is
// all zeros or ones, which would hide what it is for.
HostTensor slot_value(const Slot& slot, uint64_t seed) {
  const auto between = [&](double low, double high) {
    return random_tensor(slot.desc, low, high, seed);
  };
  switch (slot.init) {
    case NETCL_INIT_UNIFORM:
      return between(slot.a, slot.b);
    case NETCL_INIT_NORMAL:
    case NETCL_INIT_TRUNC_NORMAL:
      return between(slot.a - 1.7 * slot.b, slot.a + 1.7 * slot.b);  // the same deviation
    default:
      break;
  }
  const double start = slot.init == NETCL_INIT_ONES       ? 1
                       : slot.init == NETCL_INIT_CONSTANT ? slot.a
                                                          : 0;
  return between(slot.statistic ? start : start - kAround, start + kAround);
}

bool is_input(const TracedExample& traced, ValueId value) {
  return std::find(traced.in.begin(), traced.in.end(), value) != traced.in.end();
}

}  // namespace

ReplayValues replay_values(const TracedExample& traced, const LayerExample& example,
                           int64_t batch) {
  ReplayValues out;
  uint64_t seed = 11;
  for (const Graph::Place& place : traced.graph.externals()) {
    const TensorDesc& symbolic = traced.graph.desc(place.value);
    const TensorDesc desc{symbolic.dtype, symbolic.shape.with_batch(batch)};
    ++seed;
    if (is_input(traced, place.value)) {
      const bool real = is_float(desc.dtype);
      out[place.name] = random_tensor(desc, real ? -1 : 0,
                                      real ? 1 : static_cast<double>(example.int_high), seed);
    } else if (traced.random == place.value) {
      out[place.name] = {desc, {7, 0, 1, 0, 0, 0, 0, 0}};
    }
  }
  for (const Slot& slot : traced.slots) out[slot.name] = slot_value(slot, ++seed);
  return out;
}

ReplayValues first_samples(const TracedExample& traced, const ReplayValues& values, int64_t n,
                           int64_t batch) {
  ReplayValues out = values;
  for (const Graph::Place& place : traced.graph.externals()) {
    if (!is_input(traced, place.value)) continue;
    HostTensor& t = out.at(place.name);
    const size_t each = t.data.size() / static_cast<size_t>(batch);
    t.data.resize(each * static_cast<size_t>(n));
    t.desc.shape = traced.graph.desc(place.value).shape.with_batch(n);
  }
  return out;
}

LayerReplay::LayerReplay(const TracedExample& traced, const ReplayValues& values, int64_t batch) {
  std::map<ValueId, ValueId> here;
  for (const Graph::Place& place : traced.graph.externals()) {
    externals_[place.name] = here[place.value] = host_.input(values.at(place.name));
  }
  for (const Node& node : traced.graph.nodes()) {
    std::vector<ValueId> in;
    for (const ValueId v : node.in) in.push_back(here.at(v));
    const std::vector<ValueId> out = host_.apply(node.op->name, in, node.attrs.with_batch(batch));
    for (size_t i = 0; i < out.size(); ++i) here[node.out[i]] = out[i];
  }
  for (const ValueId v : traced.out) out_.push_back(here.at(v));
}

}  // namespace netcl
