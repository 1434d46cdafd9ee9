#include "core/distributed/parameter_check.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <map>

#include "core/base/error.h"
#include "core/base/file.h"
#include "core/base/text.h"

namespace netcl {

namespace {

constexpr uint64_t kOdd = 0x9e3779b97f4a7c15ull;
constexpr size_t kLanes = 4;
constexpr size_t kHashesAtOnce = kExchangeBytes / sizeof(uint64_t);

uint64_t mix(uint64_t hash, uint64_t word) {
  hash = (hash ^ word) * kOdd;
  return hash ^ (hash >> 29);
}

struct Said {
  uint64_t kind, hash;
};

// Ranks of each kind, those that agree side by side; the largest part of a kind first.
std::vector<std::vector<uint32_t>> parts_of(const std::vector<Said>& all, uint64_t kind) {
  std::map<uint64_t, std::vector<uint32_t>> by_hash;
  for (uint32_t r = 0; r < all.size(); ++r) {
    if (all[r].kind == kind) by_hash[all[r].hash].push_back(r);
  }
  std::vector<std::vector<uint32_t>> out;
  for (auto& [hash, ranks] : by_hash) out.push_back(std::move(ranks));
  std::stable_sort(out.begin(), out.end(), [](const auto& a, const auto& b) {
    return a.size() != b.size() ? a.size() > b.size() : a[0] < b[0];
  });
  return out;
}

// The first slot, in the model's order, that two ranks hold differently.
std::string first_difference(const StepGraphs& graphs, const Group& group,
                             const std::vector<uint64_t>& hashes, uint32_t a, uint32_t b) {
  std::string out;
  for (size_t begin = 0; begin < hashes.size(); begin += kHashesAtOnce) {
    const size_t n = std::min(kHashesAtOnce, hashes.size() - begin);
    std::vector<uint64_t> all(n * group.n_ranks);
    group.bootstrap->exchange(hashes.data() + begin, n * sizeof(uint64_t), all.data());
    for (size_t i = 0; i < n && out.empty(); ++i) {
      if (all[a * n + i] == all[b * n + i]) continue;
      const Slot& slot = graphs.slots[begin + i];
      out = slot.name + " " + slot.desc.str();
    }
  }
  return out.empty() ? "between the tensors" : out;
}

}  // namespace

uint64_t hash_floats(const float* values, size_t count) {
  std::array<uint64_t, kLanes> lanes = {1, 2, 3, 4};
  const auto* bytes = reinterpret_cast<const char*>(values);
  const size_t size = count * sizeof(float), block = kLanes * sizeof(uint64_t);
  size_t at = 0;
  for (; at + block <= size; at += block) {
    std::array<uint64_t, kLanes> words{};
    std::memcpy(words.data(), bytes + at, block);
    for (size_t i = 0; i < kLanes; ++i) lanes[i] = mix(lanes[i], words[i]);
  }
  uint64_t out = mix(kOdd, count);
  for (; at < size; at += sizeof(float)) {
    uint32_t word = 0;
    std::memcpy(&word, bytes + at, sizeof(word));
    out = mix(out, word);
  }
  for (const uint64_t lane : lanes) out = mix(out, lane);
  return out;
}

uint64_t device_kind(const DeviceInfo& device) {
  return hash_bytes(device.name + "\n" + device.driver + "\n" + device.vendor);
}

void check_parameters(Replica& replica, const Group& group, int64_t step) {
  if (group.bootstrap == nullptr) return;
  const StepGraphs& graphs = replica.graphs();
  const std::vector<float> arena = replica.read_parameters();
  std::vector<uint64_t> hashes;
  uint64_t whole = 0;
  for (const Slot& slot : graphs.slots) {
    const ArenaLayout::Entry& entry = graphs.parameters.find(slot.name);
    hashes.push_back(
        hash_floats(arena.data() + entry.offset, entry.desc.size_bytes() / sizeof(float)));
    whole = mix(whole, hashes.back());
  }
  const Said mine{device_kind(replica.queue().device().info()), whole};
  std::vector<Said> all(group.n_ranks);
  group.bootstrap->exchange(&mine, sizeof(mine), all.data());
  for (const Said& said : all) {
    const auto parts = parts_of(all, said.kind);
    if (parts.size() == 1) continue;
    // Every rank sees the same hashes, so all of them go on here with the same parts.
    const uint32_t good = parts[0][0], bad = parts[1][0];
    const std::string tensor = first_difference(graphs, group, hashes, good, bad);
    fail(ErrorCode::kTraining, "after step ", step, " the parameters of rank ", bad,
         " are not those of rank ", good, " (", parts[0].size(), " of ", group.n_ranks,
         " ranks agree with it): the first tensor that differs is ", tensor,
         ". Replicas on equal devices hold the same bits, so memory, driver or a kernel of one "
         "of them is at fault; go on from the last checkpoint without it");
  }
}

}  // namespace netcl
