#include "apps/netcl_app/unused_pins.h"

#include <algorithm>
#include <set>
#include <vector>

#include "core/base/error.h"
#include "core/base/text.h"
#include "core/ops/case_inputs.h"
#include "core/ops/op.h"
#include "core/runtime/kernel_set.h"

namespace netcl::app {

namespace {

// What the set says of the variant in the first case that it is asked about, or "" if it plans one.
std::string problem_of_pin(const KernelSet& set, const std::string& variant, const OpRow& row,
                           Device& device, std::set<std::string>* known) {
  std::string problem = "the op has no case to try it on";
  bool first = true;
  for (const DType dtype : {DType::kF32, DType::kF16, DType::kBF16}) {
    for (const OpCase& c : typed_cases(row, dtype)) {
      const Attrs attrs = complete_attrs(row, c.attrs);
      const std::vector<TensorDesc> out = row.infer({row, c.in, attrs});
      const KernelQuestion question{row, c.in, out, attrs};
      std::string reason;
      if (set.plan(device, question, variant, &reason) != nullptr) return "";
      if (first) problem = reason;
      first = false;
      for (const std::string& name : set.variants(device, question)) known->insert(name);
    }
  }
  return problem;
}

bool serves(const PluginHost& plugins, const std::string& id) {
  const auto sets = plugins.manifests("kernels");
  return std::any_of(sets.begin(), sets.end(), [&](const Manifest* m) { return m->id == id; });
}

}  // namespace

void check_unused_pins(const std::map<std::string, KernelPin>& pins, const KernelChoice& kernels,
                       PluginHost& plugins, Device& device) {
  std::set<std::string> used;
  for (const auto& asked : kernels.asked()) used.insert(asked.question.op);
  for (const auto& [op, pin] : pins) {
    const bool of_layer = op.find('.') != std::string::npos;  // only its layer knows its questions
    if (of_layer || pin.variant.empty() || used.count(op) > 0 || !serves(plugins, pin.plugin))
      continue;
    std::set<std::string> known;
    const std::string problem = problem_of_pin(KernelSet(plugins.load(pin.plugin)), pin.variant,
                                               find_op(op), device, &known);
    NETCL_CHECK(problem.empty(), ErrorCode::kPlugin, "--kernels ", op, "=", pin.plugin, ":",
                pin.variant, ": the step has no ", op, ", and ", pin.plugin,
                " cannot do it so: ", problem,
                ". Its variants: ", join({known.begin(), known.end()}, ", "),
                "; leave the pin out, or correct it");
  }
}

}  // namespace netcl::app
