#include "core/nn/update_graph.h"

#include <algorithm>

#include "core/base/error.h"
#include "core/base/text.h"
#include "core/nn/loss_scale.h"
#include "core/ops/optim_blocks.h"

namespace netcl {

namespace {

namespace ob = optim_blocks;

static_assert(ArenaLayout::kAlignFloats == ob::kBlock, "a block must belong to one slot");

bool matches(const ParameterGroup& group, const std::string& slot) {
  const std::vector<std::string> patterns = split(group.match, '|');
  return std::any_of(patterns.begin(), patterns.end(),
                     [&](const std::string& pattern) { return glob_match(pattern, slot); });
}

[[noreturn]] void nothing_matches(const std::string& pattern,
                                  const std::vector<std::string>& names) {
  constexpr size_t kMost = 12;
  const std::string nearest = nearest_name(pattern, names);
  std::vector<std::string> shown(
      names.begin(), names.begin() + static_cast<std::ptrdiff_t>(std::min(names.size(), kMost)));
  fail(ErrorCode::kUsage, "optimizer.groups: \"", pattern, "\" matches no parameter",
       nearest.empty() ? "" : "; did you mean \"" + nearest + "\"?", "; the parameters are ",
       join(shown, ", "),
       names.size() > kMost ? str_cat(" and ", names.size() - kMost, " more") : std::string());
}

void check_patterns(const Optimizer& optimizer, const std::vector<std::string>& names) {
  for (const ParameterGroup& group : optimizer.groups) {
    for (const std::string& pattern : split(group.match, '|')) {
      const bool found = std::any_of(names.begin(), names.end(), [&](const std::string& name) {
        return glob_match(pattern, name);
      });
      if (!found) nothing_matches(pattern, names);
    }
  }
}

// Number of the group with these values, added if there is none.
int64_t group_number(std::vector<UpdatePlan::Group>& groups, const UpdatePlan::Group& wanted) {
  const auto same = [&](const UpdatePlan::Group& g) {
    return g.lr_scale == wanted.lr_scale && g.weight_decay == wanted.weight_decay;
  };
  const auto it = std::find_if(groups.begin(), groups.end(), same);
  const int64_t number = it - groups.begin();
  if (it == groups.end()) groups.push_back(wanted);
  NETCL_CHECK(number < ob::kFrozen, ErrorCode::kUsage, "optimizer.groups: more than ",
              ob::kFrozen - 1, " different groups");
  return number;
}

// The group of a slot, or kFrozen.
int64_t choose_group(const Optimizer& optimizer, const ArenaLayout::Entry& slot,
                     std::vector<UpdatePlan::Group>& groups) {
  for (const ParameterGroup& group : optimizer.groups) {
    if (!matches(group, slot.name)) continue;
    if (group.frozen) return ob::kFrozen;
    return group_number(groups,
                        {group.lr_scale, group.weight_decay.value_or(optimizer.weight_decay)});
  }
  const bool plain = optimizer.no_decay_on_bias_and_norms && slot.desc.shape.rank() < 2;
  return group_number(groups, {1, plain ? 0 : optimizer.weight_decay});
}

}  // namespace

int64_t UpdatePlan::num_group(const std::string& slot) const {
  const auto it = std::find(names.begin(), names.end(), slot);
  NETCL_CHECK(it != names.end(), ErrorCode::kInternal, "there is no slot ", slot);
  const auto first = static_cast<size_t>(slots[2 * static_cast<size_t>(it - names.begin())]);
  const int64_t group = blocks.at(first) & 255;
  return group == ob::kFrozen ? -1 : group;
}

UpdatePlan plan_update(const Optimizer& optimizer, const ArenaLayout& parameters) {
  UpdatePlan out;
  for (const ArenaLayout::Entry& entry : parameters.entries()) out.names.push_back(entry.name);
  std::vector<std::string> sorted = out.names;
  std::sort(sorted.begin(), sorted.end());
  check_patterns(optimizer, sorted);
  const std::vector<ArenaLayout::Entry>& entries = parameters.entries();
  for (size_t i = 0; i < entries.size(); ++i) {
    const int64_t group = choose_group(optimizer, entries[i], out.groups);
    if (group == ob::kFrozen) out.frozen.push_back(entries[i].name);
    const int64_t end = i + 1 < entries.size() ? entries[i + 1].offset : parameters.num_floats();
    const int64_t first = entries[i].offset / ob::kBlock, last = end / ob::kBlock;
    out.slots.push_back(static_cast<int32_t>(first));
    out.slots.push_back(static_cast<int32_t>(last - first));
    for (int64_t b = first; b < last; ++b) {
      out.blocks.push_back(ob::entry(group, static_cast<int64_t>(i)));
    }
  }
  NETCL_CHECK(out.frozen.size() < entries.size(), ErrorCode::kUsage,
              "optimizer.groups: every parameter is frozen; nothing is left to train");
  out.states = optimizer.state_names();
  if (optimizer.ema_decay > 0) out.states.emplace_back(step_names::kAverage);
  return out;
}

bool can_share_update(const Optimizer& optimizer) {
  return optimizer.type != Optimizer::Type::kLamb;
}

UpdatePlan share_of(const Optimizer& optimizer, const UpdatePlan& plan, const FloatRange& share) {
  NETCL_CHECK(
      can_share_update(optimizer), ErrorCode::kUsage, "a sharded update is not possible with ",
      optimizer_name(optimizer.type),
      ": the rate of a tensor depends on norms of the whole tensor; use --update replicated");
  UpdatePlan out = plan;
  const auto first = plan.blocks.begin() + share.first / ob::kBlock;
  out.blocks.assign(first, first + share.count / ob::kBlock);
  return out;
}

namespace {

// The norm of the whole gradient from that of this replica's share, and the divisor that clips:
// what grad_norm computes in one where it has all gradients.
std::vector<ValueId> shared_norm(Graph& graph, ValueId norm, ValueId divisor, double max_norm) {
  const ValueId total = graph.call("all_reduce", {graph.call("mul", {norm, norm})});
  norm = graph.call("sqrt", {total});
  if (max_norm <= 0) return {norm, divisor};
  const ValueId scale =
      graph.call("scale", {norm}, {{"factor", 1 / max_norm}, {"offset", 1e-6 / max_norm}});
  const ValueId one = graph.call("full", {}, {{"shape", Shape{1}}, {"value", 1.0}});
  // A norm that is no number is not below one, and reaches the divisor.
  return {norm, graph.call("where", {graph.call("less", {scale, one}), divisor,
                                     graph.call("mul", {divisor, scale})})};
}

}  // namespace

Graph update_graph(const Optimizer& optimizer, const UpdatePlan& plan, int64_t gradients_floats,
                   int64_t grad_offset, bool loss_scaled, bool shared) {
  Graph graph;
  const auto n_blocks = static_cast<int64_t>(plan.blocks.size());
  const TensorDesc arena{DType::kF32, Shape{n_blocks * ob::kBlock}};
  const ValueId parameters = graph.external(step_names::kParameters, arena);
  const ValueId gradients =
      graph.external(step_names::kGradients, {DType::kF32, Shape{gradients_floats}});
  const ValueId hyper =
      graph.external(step_names::kHyper,
                     {DType::kF32, Shape{static_cast<int64_t>(plan.groups.size()), ob::kHyper}});
  const ValueId blocks = graph.external(step_names::kBlocks, {DType::kI32, Shape{n_blocks}});
  ValueId divisor = graph.external(step_names::kDivisor, {DType::kF32, Shape{1}});
  ValueId scale_state = 0;
  if (loss_scaled) {
    scale_state = loss_scale::state(graph);
    divisor = graph.call("mul", {divisor, loss_scale::scale(graph, scale_state, 1)});
  }
  if (optimizer.measures_norm() || loss_scaled) {
    std::vector<ValueId> norm =
        graph.apply("grad_norm", {gradients, blocks, divisor},
                    {{"grad_offset", grad_offset}, {"max_norm", shared ? 0 : optimizer.clip_norm}});
    if (shared) norm = shared_norm(graph, norm[0], divisor, optimizer.clip_norm);
    graph.output(step_names::kGradNorm, norm[0]);
    divisor = norm[1];
    if (loss_scaled) {
      divisor = loss_scale::skip_if_not_finite(graph, divisor, norm[0]);
      loss_scale::advance(graph, scale_state, norm[0]);
    }
  }
  std::vector<ValueId> in = {parameters, gradients, hyper, blocks, divisor};
  if (optimizer.type == Optimizer::Type::kLamb) {
    const auto n_slots = static_cast<int64_t>(plan.slots.size() / 2);
    in.push_back(graph.external(step_names::kSlots, {DType::kI32, Shape{n_slots, 2}}));
  }
  const std::vector<std::string> states = optimizer.state_names();
  for (const std::string& state : states) in.push_back(graph.external(state, arena));
  Attrs attrs = {{"grad_offset", grad_offset}};
  for (const auto& [key, value] : optimizer.op_flags()) attrs.set(key, value);
  const std::vector<ValueId> out = graph.apply(optimizer.op(), in, attrs);
  graph.output(step_names::kParameters, out[0]);
  for (size_t i = 0; i < states.size(); ++i) graph.output(states[i], out[i + 1]);
  if (optimizer.ema_decay > 0) {
    const ValueId average = graph.external(step_names::kAverage, arena);
    graph.output(step_names::kAverage, graph.call("ema_step", {average, out[0], divisor},
                                                  {{"decay", optimizer.ema_decay}}));
  }
  return graph;
}

Graph accumulate_graph(int64_t gradients_floats) {
  Graph graph;
  const TensorDesc arena{DType::kF32, Shape{gradients_floats}};
  const ValueId total = graph.external(step_names::kTotal, arena);
  const ValueId part = graph.external(step_names::kPart, arena);
  graph.output(step_names::kTotal, graph.call("add", {total, part}));
  return graph;
}

}  // namespace netcl
