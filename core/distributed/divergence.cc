#include "core/distributed/divergence.h"

#include <algorithm>
#include <cmath>

namespace netcl {

namespace {

// "sample 17 of the training data holds nan at value 3", or "" if all samples are finite.
std::string first_bad_sample(const Dataset& data, const std::vector<int64_t>& indices) {
  if (data.input_dtype() != DType::kF32) return "";
  std::vector<float> x(static_cast<size_t>(data.sample_elements()));
  for (const int64_t index : indices) {
    data.read_sample(index, x.data());
    const auto bad = std::find_if(x.begin(), x.end(), [](float v) { return !std::isfinite(v); });
    if (bad != x.end()) {
      return str_cat("sample ", index, " of the training data (from 0) holds ", *bad, " as value ",
                     bad - x.begin());
    }
  }
  return "";
}

}  // namespace

std::string first_bad_tensor(const std::vector<Slot>& slots, const ArenaLayout& layout,
                             const std::string& prefix, const std::vector<float>& arena) {
  for (const Slot& slot : slots) {
    const ArenaLayout::Entry* found = nullptr;
    for (const ArenaLayout::Entry& entry : layout.entries()) {
      if (entry.name == prefix + slot.name) found = &entry;
    }
    if (found == nullptr) continue;  // not trained
    const float* begin = arena.data() + found->offset;
    const auto size = static_cast<int64_t>(found->desc.size_bytes() / sizeof(float));
    const auto count =
        std::count_if(begin, begin + size, [](float v) { return !std::isfinite(v); });
    if (count > 0)
      return str_cat(slot.name, " ", found->desc.str(), " (", count, " of ", size, " values)");
  }
  return "";
}

void report_no_number(const NoNumber& found, Replica& replica, const Dataset& train) {
  std::string text = str_cat(found.what, " is ", found.value, " at step ", found.step, " (epoch ",
                             found.epoch + 1, ")");
  if (std::isfinite(found.last_loss)) text += str_cat(", after ", found.last_loss);
  const std::string sample = first_bad_sample(train, found.sample_indices);
  if (!sample.empty())
    fail(ErrorCode::kTraining, text, ": ", sample, "; mend the data or leave the sample out");
  const StepGraphs& graphs = replica.graphs();
  const std::string parameter =
      first_bad_tensor(graphs.slots, graphs.parameters, "", replica.read_parameters());
  const std::string gradient =
      first_bad_tensor(graphs.slots, graphs.gradients, "grad/", replica.read_gradients());
  fail(ErrorCode::kTraining, text, ": training diverged; ",
       !parameter.empty()  ? "the first tensor that is not finite is " + parameter
       : !gradient.empty() ? "the first tensor that is not finite is the gradient of " + gradient
                           : "all parameters and gradients are still finite",
       ". Try a smaller learning rate (optimizer.lr) or a warm-up (schedule.warmup_steps)");
}

}  // namespace netcl
