#include "apps/netcl_app/checkpoint.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "core/base/error.h"
#include "core/base/file.h"
#include "core/base/text.h"

namespace netcl::app {
namespace fs = std::filesystem;

namespace {

constexpr const char* kFormat = "netcl-checkpoint/1";
constexpr const char* kLossScale = "optimizer.loss_scale";
constexpr size_t kMostDifferences = 12;

std::string state_key(const std::string& state, const std::string& slot) {
  return "optimizer." + state + "." + slot;
}

NamedTensor cut(const std::string& name, const ArenaLayout::Entry& entry,
                const std::vector<float>& arena) {
  NamedTensor out;
  out.name = name;
  out.shape = entry.desc.shape;
  out.bytes.assign(reinterpret_cast<const char*>(arena.data() + entry.offset),
                   entry.desc.size_bytes());
  return out;
}

// Parameters and statistics.
std::vector<Slot> all_slots(const StepGraphs& graphs) {
  std::vector<Slot> out = graphs.slots;
  out.insert(out.end(), graphs.statistics.begin(), graphs.statistics.end());
  return out;
}

// Every difference between what the model needs and what the file holds.
std::vector<std::string> differences(const StepGraphs& graphs, const Safetensors& file) {
  std::vector<std::string> out;
  const std::vector<Slot> slots = all_slots(graphs);
  for (const Slot& slot : slots) {
    const NamedTensor* tensor = file.find(slot.name);
    if (tensor == nullptr) {
      out.push_back("the file lacks " + slot.name + " " + slot.desc.str());
    } else if (!(tensor->desc() == slot.desc)) {
      out.push_back(slot.name + " is " + tensor->desc().str() + " in the file and " +
                    slot.desc.str() + " in the model");
    }
  }
  for (const NamedTensor& tensor : file.tensors) {
    if (tensor.name.rfind("optimizer.", 0) == 0) continue;
    const bool known = std::any_of(slots.begin(), slots.end(),
                                   [&](const Slot& slot) { return slot.name == tensor.name; });
    if (!known) out.push_back("the model has no " + tensor.name + " " + tensor.desc().str());
  }
  return out;
}

std::vector<float> arena_of(const ArenaLayout& layout, const Safetensors& file,
                            const std::string& state, const std::string& name) {
  std::vector<float> arena(static_cast<size_t>(layout.num_floats()), 0.0f);
  for (const ArenaLayout::Entry& entry : layout.entries()) {
    const std::string key = state.empty() ? entry.name : state_key(state, entry.name);
    const NamedTensor* tensor = file.find(key);
    NETCL_CHECK(tensor != nullptr && tensor->desc() == entry.desc, ErrorCode::kCheckpoint, name,
                ": ", key, tensor == nullptr ? " is missing" : " has another shape than the model",
                "; it was written with another optimizer or model");
    std::memcpy(arena.data() + entry.offset, tensor->bytes.data(), tensor->bytes.size());
  }
  return arena;
}

}  // namespace

fs::path find_checkpoint(const fs::path& path) {
  std::error_code error;
  if (fs::is_directory(path, error)) {
    for (const fs::path& candidate :
         {path / "checkpoints" / "last.safetensors", path / "last.safetensors"}) {
      if (fs::exists(candidate, error)) return candidate;
    }
    fail(ErrorCode::kCheckpoint, path.string(),
         ": there is no checkpoint (checkpoints/last.safetensors) in it; expected a run that has "
         "finished an epoch or "
         "was interrupted after a step");
  }
  NETCL_CHECK(fs::exists(path, error), ErrorCode::kCheckpoint, path.string(),
              ": there is no such checkpoint");
  return path;
}

Checkpoint read_checkpoint(const fs::path& path) {
  const fs::path file = find_checkpoint(path);
  Checkpoint out;
  out.tensors = read_safetensors(file);
  const auto format = out.tensors.metadata.find("format");
  NETCL_CHECK(format != out.tensors.metadata.end() && format->second == kFormat,
              ErrorCode::kCheckpoint, file.string(),
              ": it is a safetensors file, but no checkpoint of netcl (metadata \"format\": \"",
              kFormat, "\")");
  try {
    out.state = Json::parse(out.tensors.metadata.at("state"));
    for (const char* key : {"config", "step", "epoch"}) out.state.at(key);
  } catch (const std::exception& e) {
    fail(ErrorCode::kCheckpoint, file.string(), ": the run's state in it is damaged: ", e.what());
  }
  return out;
}

namespace {

// "layers.0.out was 6, now 3" for every place in which two models differ.
std::vector<std::string> model_differences(const Json& was, const Json& is) {
  std::vector<std::string> out;
  const Json patch = Json::diff(was, is);
  for (const Json& change : patch) {
    const std::string path = change.at("path").get<std::string>();
    const Json::json_pointer pointer(path);
    std::string key = "model" + path;
    std::replace(key.begin(), key.end(), '/', '.');
    out.push_back(
        str_cat(key, was.contains(pointer) ? " was " + was.at(pointer).dump() : " was not there",
                change.contains("value") ? ", now " + change["value"].dump() : ", now gone"));
    if (out.size() == kMostDifferences) break;
  }
  return out;
}

}  // namespace

void check_resumable(const Checkpoint& checkpoint, const Json& config, int64_t samples,
                     const std::string& name) {
  const Json& before = checkpoint.state.at("config");
  std::vector<std::string> lines;
  for (const char* path : {"/batch_size", "/optimizer/type", "/loss", "/seed"}) {
    const Json::json_pointer pointer(path);
    const Json was = before.value(pointer, Json()), is = config.value(pointer, Json());
    if (was == is) continue;
    std::string key(path + 1);
    std::replace(key.begin(), key.end(), '/', '.');
    lines.push_back(str_cat(key, " was ", was.dump(), ", now ", is.dump()));
  }
  for (std::string& line : model_differences(before.at("model"), config.at("model")))
    lines.push_back(std::move(line));
  const int64_t parts_before = before.value("micro_shards", int64_t{0});
  const int64_t parts = config.value("micro_shards", int64_t{0});
  if (parts_before != parts)
    lines.push_back(str_cat("micro_shards (--reproducible) was ", parts_before, ", now ", parts));
  const int64_t samples_before = checkpoint.state.value("samples", samples);
  if (samples_before != samples)
    lines.push_back(str_cat("training samples were ", samples_before, ", now ", samples));
  NETCL_CHECK(lines.empty(), ErrorCode::kCheckpoint, name,
              ": the run cannot go on with this configuration: ", join(lines, "; "),
              ". Give the values that it was trained with, or start a new run without --resume");
}

Checkpoint take_checkpoint(Replica& replica, Json state) {
  Checkpoint out;
  const ArenaLayout& layout = replica.graphs().parameters;
  const std::vector<float> parameters = replica.read_parameters();
  for (const Slot& slot : replica.graphs().slots) {
    out.tensors.tensors.push_back(cut(slot.name, layout.find(slot.name), parameters));
  }
  const std::vector<float> statistics = replica.read_statistics();
  for (const Slot& slot : replica.graphs().statistics) {
    out.tensors.tensors.push_back(
        cut(slot.name, replica.graphs().statistic_values.find(slot.name), statistics));
  }
  const std::vector<std::string>& states = replica.graphs().plan.states;
  for (size_t i = 0; i < states.size(); ++i) {
    const std::vector<float> arena = replica.read_state(i);
    for (const Slot& slot : replica.graphs().slots) {
      out.tensors.tensors.push_back(
          cut(state_key(states[i], slot.name), layout.find(slot.name), arena));
    }
  }
  if (replica.graphs().loss_scaled) {
    const std::array<float, 2> scale = replica.read_loss_scale();
    out.tensors.tensors.push_back(
        {kLossScale, DType::kF32, Shape{2},
         std::string(reinterpret_cast<const char*>(scale.data()), sizeof(scale))});
  }
  out.state = std::move(state);
  out.tensors.metadata = {{"format", kFormat}, {"state", out.state.dump()}};
  return out;
}

int64_t saved_step(const fs::path& directory) {
  const fs::path last = directory / "last.safetensors";
  return fs::exists(last) ? read_checkpoint(last).state.at("step").get<int64_t>() : -1;
}

void write_checkpoint(const fs::path& path, const Checkpoint& checkpoint) {
  write_safetensors(path.string() + ".safetensors", checkpoint.tensors);
  write_file_atomic(path.string() + ".json", checkpoint.state.dump(2) + "\n",
                    ErrorCode::kCheckpoint);
}

void load_into(Replica& replica, const Checkpoint& checkpoint, bool with_state,
               const std::string& name) {
  const StepGraphs& graphs = replica.graphs();
  std::vector<std::string> lines = differences(graphs, checkpoint.tensors);
  const size_t count = lines.size();
  if (count > kMostDifferences) lines.resize(kMostDifferences);
  NETCL_CHECK(count == 0, ErrorCode::kCheckpoint, name, ": it belongs to another model; ", count,
              count == 1 ? " difference: " : " differences: ", join(lines, "; "),
              count > kMostDifferences ? "; ..." : "",
              ". Give the configuration with which it was trained, or another checkpoint");
  replica.write_parameters(arena_of(graphs.parameters, checkpoint.tensors, "", name));
  replica.write_statistics(arena_of(graphs.statistic_values, checkpoint.tensors, "", name));
  const std::vector<std::string>& states = graphs.plan.states;
  for (size_t i = 0; i < states.size(); ++i) {
    if (states[i] == step_names::kAverage) {
      // A run that began without an average begins it here.
      const bool there = checkpoint.tensors.find(state_key(states[i], graphs.slots[0].name));
      const std::string state = there ? states[i] : std::string();
      replica.write_state(i, arena_of(graphs.parameters, checkpoint.tensors, state, name));
    } else if (with_state) {
      replica.write_state(i, arena_of(graphs.parameters, checkpoint.tensors, states[i], name));
    }
  }
  const NamedTensor* scale = checkpoint.tensors.find(kLossScale);
  if (with_state && scale != nullptr && scale->desc() == TensorDesc{DType::kF32, Shape{2}}) {
    std::array<float, 2> values{};
    std::memcpy(values.data(), scale->bytes.data(), sizeof(values));
    replica.write_loss_scale(values);
  }
}

}  // namespace netcl::app
