#include "apps/netcl_app/init_from.h"

#include <algorithm>
#include <cstring>

#include "core/base/error.h"
#include "core/base/text.h"
#include "core/nn/safetensors.h"

namespace netcl::app {

namespace {

constexpr size_t kMostDifferences = 12;

bool is_wanted(const InitFrom& from, const std::string& slot) {
  if (from.match.empty()) return true;
  const std::vector<std::string> patterns = split(from.match, '|');
  return std::any_of(patterns.begin(), patterns.end(),
                     [&](const std::string& pattern) { return glob_match(pattern, slot); });
}

std::vector<Slot> wanted_slots(const StepGraphs& graphs, const InitFrom& from) {
  std::vector<Slot> out;
  for (const auto* slots : {&graphs.slots, &graphs.statistics}) {
    for (const Slot& slot : *slots) {
      if (is_wanted(from, slot.name)) out.push_back(slot);
    }
  }
  NETCL_CHECK(!out.empty(), ErrorCode::kUsage, "init_from.match: \"", from.match,
              "\" matches no parameter of the model");
  return out;
}

std::vector<std::string> differences(const std::vector<Slot>& slots, const Safetensors& file,
                                     bool nothing_else) {
  std::vector<std::string> missing, shapes, extra;
  for (const Slot& slot : slots) {
    const NamedTensor* tensor = file.find(slot.name);
    if (tensor == nullptr) {
      missing.push_back("missing: " + slot.name + " " + slot.desc.str());
    } else if (!(tensor->desc() == slot.desc)) {
      shapes.push_back(slot.name + " is " + tensor->desc().str() + " in the file and " +
                       slot.desc.str() + " in the model");
    }
  }
  for (const NamedTensor& tensor : file.tensors) {
    if (!nothing_else || tensor.name.rfind("optimizer.", 0) == 0) continue;
    const bool known = std::any_of(slots.begin(), slots.end(),
                                   [&](const Slot& slot) { return slot.name == tensor.name; });
    if (!known) extra.push_back("extra: " + tensor.name + " " + tensor.desc().str());
  }
  missing.insert(missing.end(), shapes.begin(), shapes.end());
  missing.insert(missing.end(), extra.begin(), extra.end());
  return missing;
}

Safetensors read_checked(const std::vector<Slot>& slots, const InitFrom& from) {
  Safetensors file = read_safetensors(from.path);
  std::vector<std::string> lines = differences(slots, file, from.match.empty());
  const size_t count = lines.size();
  if (count > kMostDifferences) lines.resize(kMostDifferences);
  NETCL_CHECK(
      count == 0, ErrorCode::kCheckpoint, "init_from: ", from.path,
      " does not fit the model: ", join(lines, "; "), count > kMostDifferences ? "; ..." : "",
      ". Take a part of it with {\"init_from\": {\"file\": ..., \"match\": \"layers.0.*\"}}");
  return file;
}

void copy_into(std::vector<float>& arena, const ArenaLayout& layout, const std::vector<Slot>& slots,
               const Safetensors& file) {
  for (const ArenaLayout::Entry& entry : layout.entries()) {
    const bool wanted = std::any_of(slots.begin(), slots.end(),
                                    [&](const Slot& slot) { return slot.name == entry.name; });
    if (!wanted) continue;
    const NamedTensor* tensor = file.find(entry.name);
    std::memcpy(arena.data() + entry.offset, tensor->bytes.data(), tensor->bytes.size());
  }
}

}  // namespace

void check_initial(const StepGraphs& graphs, const InitFrom& from) {
  read_checked(wanted_slots(graphs, from), from);
}

void load_initial(Replica& replica, const InitFrom& from) {
  const StepGraphs& graphs = replica.graphs();
  const std::vector<Slot> slots = wanted_slots(graphs, from);
  const Safetensors file = read_checked(slots, from);
  std::vector<float> parameters = replica.read_parameters();
  copy_into(parameters, graphs.parameters, slots, file);
  replica.write_parameters(parameters);
  std::vector<float> statistics = replica.read_statistics();
  copy_into(statistics, graphs.statistic_values, slots, file);
  replica.write_statistics(statistics);
  replica.reset_state();
}

}  // namespace netcl::app
