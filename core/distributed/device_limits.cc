#include "core/distributed/device_limits.h"

#include <algorithm>
#include <map>

#include "core/graph/lower.h"
#include "core/graph/memory_plan.h"
#include "core/graph/size_limits.h"

namespace netcl {

namespace {

constexpr int64_t kGpuMultiple = 32;
constexpr double kNextKind = 32;  // speed of a kind of device by that of the next

TensorDesc concrete(const Graph& graph, ValueId value, int64_t rows) {
  const TensorDesc& desc = graph.desc(value);
  return {desc.dtype, desc.shape.with_batch(rows)};
}

bool tensors_fit(const Graph& graph, const DeviceInfo& device, int64_t rows) {
  const auto ok = [&](ValueId v) { return fits(device, concrete(graph, v, rows)); };
  for (const Graph::Place& place : graph.externals()) {
    if (!ok(place.value)) return false;
  }
  return std::all_of(graph.nodes().begin(), graph.nodes().end(), [&](const Node& node) {
    return std::all_of(node.out.begin(), node.out.end(), ok);
  });
}

// Of the values that lie neither in an arena nor in the batch, as a compiled graph places them.
size_t temporaries_bytes(const Graph& graph, int64_t rows) {
  std::map<ValueId, size_t> index;  // of roots; SIZE_MAX: not a temporary
  std::vector<Lifetime> lifetimes;
  for (const auto* places : {&graph.externals(), &graph.outputs()}) {
    for (const Graph::Place& place : *places) index[graph.root(place.value)] = SIZE_MAX;
  }
  const auto touch = [&](ValueId value, size_t node) {
    const ValueId root = graph.root(value);
    const auto [it, added] = index.emplace(root, lifetimes.size());
    if (it->second == SIZE_MAX) return;
    if (added) lifetimes.push_back({concrete(graph, root, rows).size_bytes(), node, node});
    lifetimes[it->second].last = node;
  };
  for (size_t i = 0; i < graph.nodes().size(); ++i) {
    const Node& node = graph.nodes()[i];
    if (node.op->view) continue;
    for (const ValueId v : node.in) touch(v, i);
    for (const ValueId v : node.out) touch(v, i);
  }
  return plan_memory(lifetimes).total_bytes();
}

size_t batch_bytes(const Graph& graph, int64_t rows) {
  size_t out = 0;
  for (const Graph::Place& place : graph.externals()) {
    if (place.name == step_names::kX || place.name == step_names::kLabels)
      out += concrete(graph, place.value, rows).size_bytes();
  }
  return out;
}

// What a device computes at most: of fused ops the recorded ones.
struct Steps {
  explicit Steps(const StepGraphs& graphs)
      : train(without_fused(graphs.train)), eval(without_fused(graphs.eval)) {}
  static Graph without_fused(const Graph& graph) {
    return has_fused(graph) ? lower(graph, [](const Node&) { return false; }) : graph;
  }
  const Graph train, eval;
};

bool all_fit(const StepGraphs& graphs, const Steps& steps, const DeviceInfo& device, int64_t rows) {
  if (!tensors_fit(steps.train, device, rows) || !tensors_fit(steps.eval, device, rows))
    return false;
  // Gradients: sent, received, and those of a pass.
  const auto floats = static_cast<size_t>(
      graphs.parameters.num_floats() * static_cast<int64_t>(1 + graphs.plan.states.size()) +
      3 * graphs.gradients.num_floats() + 2 * graphs.statistic_values.num_floats());
  const size_t bytes = floats * sizeof(float) + batch_bytes(steps.train, rows) +
                       temporaries_bytes(steps.train, rows) + temporaries_bytes(steps.eval, rows);
  return static_cast<double>(bytes) <= static_cast<double>(device.memory_bytes);
}

int rank_of_kind(const DeviceInfo& device) {
  return device.type == "simulator" ? 0 : device.type == "cpu" ? 1 : 2;
}

}  // namespace

int64_t rows_that_fit(const StepGraphs& graphs, const DeviceInfo& device, int64_t most) {
  const Steps steps(graphs);
  if (all_fit(graphs, steps, device, most)) return most;
  int64_t low = 0, high = most;  // low fits (nothing always does), high does not
  while (high - low > 1) {
    const int64_t middle = low + (high - low) / 2;
    (all_fit(graphs, steps, device, middle) ? low : high) = middle;
  }
  return low;
}

RankLimits limits_of(const StepGraphs& graphs, const DeviceInfo& device, int64_t most) {
  return {rows_that_fit(graphs, device, most), rank_of_kind(device) == 2 ? kGpuMultiple : 1};
}

std::vector<double> first_weights(const std::vector<DeviceInfo>& devices) {
  int best = 0;
  for (const DeviceInfo& device : devices) best = std::max(best, rank_of_kind(device));
  std::vector<double> out;
  for (const DeviceInfo& device : devices) {
    double weight = 1;
    for (int kind = rank_of_kind(device); kind < best; ++kind) weight /= kNextKind;
    out.push_back(weight);
  }
  return out;
}

}  // namespace netcl
