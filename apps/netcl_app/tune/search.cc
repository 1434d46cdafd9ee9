#include "apps/netcl_app/tune/search.h"

#include <algorithm>

namespace netcl::app {

namespace {

constexpr size_t kMaxSpace = size_t{1} << 40;

// The default is a value like the others; values in order, so that neighbours are near.
void complete(Tunable* tunable) {
  std::vector<int64_t>& values = tunable->values;
  values.push_back(tunable->def);
  std::sort(values.begin(), values.end());
  values.erase(std::unique(values.begin(), values.end()), values.end());
}

size_t place_of_default(const Tunable& tunable) {
  const auto found = std::find(tunable.values.begin(), tunable.values.end(), tunable.def);
  return static_cast<size_t>(found - tunable.values.begin());
}

}  // namespace

Search::Search(std::vector<VariantSpace> spaces, uint64_t seed)
    : spaces_(std::move(spaces)), random_(seed) {
  for (VariantSpace& space : spaces_) {
    size_t size = 1;
    for (Tunable& tunable : space.tunables) {
      complete(&tunable);
      size = std::min(kMaxSpace, size * tunable.values.size());
    }
    sizes_.push_back(size);
    size_ = std::min(kMaxSpace, size_ + size);
  }
}

Candidate Search::candidate(const Place& place) const {
  const VariantSpace& space = spaces_[place[0]];
  std::string settings;
  for (size_t t = 0; t < space.tunables.size(); ++t) {
    const Tunable& tunable = space.tunables[t];
    const int64_t value = tunable.values[place[t + 1]];
    if (value == tunable.def) continue;
    settings += (settings.empty() ? "" : ",") + tunable.name + "=" + std::to_string(value);
  }
  return {space.plugin, settings.empty() ? space.variant : space.variant + "(" + settings + ")",
          place};
}

std::optional<Candidate> Search::take(const Place& place) {
  if (!tried_.insert(place).second) return std::nullopt;
  return candidate(place);
}

Search::Place Search::numbered(size_t number) const {
  size_t variant = 0;
  while (number >= sizes_[variant]) number -= sizes_[variant++];
  Place out = {variant};
  for (const Tunable& tunable : spaces_[variant].tunables) {
    out.push_back(number % tunable.values.size());
    number /= tunable.values.size();
  }
  return out;
}

std::optional<Candidate> Search::next_in_order() {
  while (in_order_ < size_) {
    if (auto out = take(numbered(in_order_++))) return out;
  }
  return std::nullopt;
}

std::optional<Candidate> Search::next_at_random() {
  while (sampled_ < kSample) {
    ++sampled_;
    // A variant first, so that one with many knobs does not take all.
    Place place = {random_() % spaces_.size()};
    for (const Tunable& tunable : spaces_[place[0]].tunables)
      place.push_back(random_() % tunable.values.size());
    if (auto out = take(place)) return out;
  }
  return std::nullopt;
}

std::optional<Candidate> Search::next_neighbour() {
  if (!best_) return std::nullopt;
  for (size_t t = 1; t < best_->size(); ++t) {
    const size_t count = spaces_[(*best_)[0]].tunables[t - 1].values.size();
    for (const bool up : {true, false}) {
      Place place = *best_;
      if (up ? place[t] + 1 >= count : place[t] == 0) continue;
      place[t] = up ? place[t] + 1 : place[t] - 1;
      if (auto out = take(place)) return out;
    }
  }
  return std::nullopt;
}

std::optional<Candidate> Search::next() {
  while (begun_ < spaces_.size()) {
    Place place = {begun_};
    for (const Tunable& tunable : spaces_[begun_].tunables)
      place.push_back(place_of_default(tunable));
    ++begun_;
    if (auto out = take(place)) return out;
  }
  if (tried_.size() >= kAtMost) return std::nullopt;
  if (whole()) return next_in_order();
  if (auto out = next_at_random()) return out;
  return next_neighbour();
}

void Search::best(const Candidate& candidate) { best_ = candidate.place; }

}  // namespace netcl::app
