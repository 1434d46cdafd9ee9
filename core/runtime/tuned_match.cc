#include "core/runtime/tuned_match.h"

#include <algorithm>
#include <cstdio>
#include <optional>
#include <tuple>

#include "core/base/error.h"

namespace netcl {

namespace {

constexpr const char* kNumerics = "fp32";

std::string two_digits(double value) {
  char text[32];
  std::snprintf(text, sizeof(text), "%.2f", value);
  return text;
}

bool contains(const std::vector<std::string>& list, const std::string& item) {
  return std::find(list.begin(), list.end(), item) != list.end();
}

std::optional<TunedMatch> match(const StoredRecord& stored, const TunedQuestion& question,
                                const TunedDevice& device, const TunedSoftware& software) {
  const TunedRecord& record = stored.record;
  if (record.numerics != kNumerics || !record.question.same_kind(question)) return std::nullopt;
  const auto distance = shape_distance(shapes_of(record.question), shapes_of(question));
  if (!distance || *distance > kMaxTunedDistance) return std::nullopt;
  const bool same_model = record.device.same_model(device);
  if (!same_model && !record.device.same_arch(device)) return std::nullopt;
  TunedMatch out{&stored, TunedLevel::kOtherDevice, *distance};
  if (same_model) {
    out.level = !record.question.same_shapes(question) ? TunedLevel::kOtherShape
                : record.software == software          ? TunedLevel::kExact
                                                       : TunedLevel::kOtherSoftware;
  }
  return out;
}

// A user's record that was measured against the plugin of `other`, for the same question on the
// same device: the newer word on it.
bool overrules(const TunedMatch& user, const TunedMatch& other) {
  return user.stored->user && !other.stored->user && user.level <= other.level &&
         user.stored->record.question.same_shapes(other.stored->record.question) &&
         contains(user.stored->record.kernel_sets, other.stored->record.plugin);
}

}  // namespace

std::string TunedMatch::reason() const {
  const TunedRecord& r = stored->record;
  std::string level_text = "exact";
  if (level == TunedLevel::kOtherSoftware) {
    level_text = "measured with " + r.software.str();
  } else if (level == TunedLevel::kOtherShape) {
    level_text = "of the shape " + r.question.shapes() + " at distance " + two_digits(distance);
  } else if (level == TunedLevel::kOtherDevice) {
    level_text =
        str_cat("of another ", r.device.arch, ", ", r.device.name, " with ", r.device.compute_units,
                " compute units, and the shape ", r.question.shapes());
  }
  return str_cat("tuned record, ", level_text, ": ", two_digits(r.speedup()), "x the default (",
                 stored->user ? "user" : "shipped", " record ", stored->place, ")");
}

std::vector<TunedMatch> match_records(const std::vector<const StoredRecord*>& records,
                                      const TunedQuestion& question, const TunedDevice& device,
                                      const TunedSoftware& software) {
  std::vector<TunedMatch> all, out;
  for (const StoredRecord* stored : records) {
    if (const auto found = match(*stored, question, device, software)) all.push_back(*found);
  }
  for (const TunedMatch& one : all) {
    if (std::none_of(all.begin(), all.end(),
                     [&](const TunedMatch& other) { return overrules(other, one); }))
      out.push_back(one);
  }
  const auto rank = [&](const TunedMatch& m) {
    const TunedRecord& r = m.stored->record;
    return std::make_tuple(m.level, m.distance, !(r.software == software), r.median_us,
                           m.stored->place);
  };
  std::sort(out.begin(), out.end(),
            [&](const TunedMatch& a, const TunedMatch& b) { return rank(a) < rank(b); });
  return out;
}

}  // namespace netcl
