// The update of a training step: which parameters belong to which group, and the graph that changes
// them.
//   update      gradients, hyper, blocks, divisor -> parameters, optimiser state and the average of
//               the parameters, in place: one launch for the step, two for the gradient's norm
//               where it is wanted, one for the average
//   accumulate  the gradients of one more pass, added to those of the passes before
#ifndef NETCL_CORE_NN_UPDATE_GRAPH_H_
#define NETCL_CORE_NN_UPDATE_GRAPH_H_

#include <cstdint>
#include <string>
#include <vector>

#include "core/graph/graph.h"
#include "core/nn/arena.h"
#include "core/nn/tracer.h"
#include "core/optim/optimizer.h"

namespace netcl {

// Names of externals and outputs of the graphs, beside the states' own.
namespace step_names {
constexpr const char* kHyper = "hyper";            // f32[groups,16]
constexpr const char* kBlocks = "blocks";          // i32[floats / 128]
constexpr const char* kSlots = "slots";            // i32[slots,2], lamb only
constexpr const char* kParameters = "parameters";  // the whole arena
constexpr const char* kGradients = "gradients";    // the whole arena, sums and all
constexpr const char* kDivisor = "divisor";        // f32[1]: the denominator of all replicas
constexpr const char* kGradNorm = "grad_norm";     // f32[1], of the whole divided gradient
constexpr const char* kAverage = "ema";            // the average of the parameters, a state
constexpr const char* kTotal = "gradients/total";  // the whole arena, of the passes so far
constexpr const char* kPart = "gradients/part";    // the whole arena, of the last pass
}  // namespace step_names

// The tables that the step ops read (kernels/README.md), and what their groups mean.
struct UpdatePlan {
  struct Group {
    double lr_scale = 1, weight_decay = 0;
  };
  std::vector<Group> groups;        // at least one
  std::vector<int32_t> blocks;      // of the parameters' arena
  std::vector<int32_t> slots;       // first block and number of blocks of every slot
  std::vector<std::string> states;  // arenas like the parameters': the optimiser's, the average
  std::vector<std::string> frozen;  // slots that never change
  int64_t num_group(const std::string& slot) const;  // of a slot; -1: frozen

  std::vector<std::string> names;  // of the slots, in the arena's order
};

// Errors: kUsage for a group that matches nothing (with the slots' names), or all parameters
// frozen.
UpdatePlan plan_update(const Optimizer& optimizer, const ArenaLayout& parameters);

// Whether parameters can be updated in shares: not with lamb, whose rate of a slot depends on the
// whole slot.
bool can_share_update(const Optimizer& optimizer);
// The plan of a replica that updates only a share of the parameters, which is made of whole blocks:
// its arenas of parameters and states hold this share alone. Errors: kUsage for an optimiser that
// cannot.
UpdatePlan share_of(const Optimizer& optimizer, const UpdatePlan& plan, const FloatRange& share);

// `grad_offset`: where the plan's gradients begin in their arena of `gradients_floats`.
// `loss_scaled`: they are multiples of the loss scale (loss_scale.h). `shared`: the plan is a
// share, so squares of the gradient's norm are added up over the replicas.
Graph update_graph(const Optimizer& optimizer, const UpdatePlan& plan, int64_t gradients_floats,
                   int64_t grad_offset, bool loss_scaled = false, bool shared = false);
Graph accumulate_graph(int64_t gradients_floats);

}  // namespace netcl

#endif  // NETCL_CORE_NN_UPDATE_GRAPH_H_
