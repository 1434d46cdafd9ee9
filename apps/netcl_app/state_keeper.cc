#include "apps/netcl_app/state_keeper.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "core/base/clock.h"
#include "core/base/error.h"

namespace netcl::app {

namespace {

constexpr double kSnapshotShare = 0.02;
constexpr double kSnapshotSeconds = 1;  // between two, at least

// Parameters, each state, the loss scale.
SnapshotSizes sizes_of(const StepGraphs& graphs, uint32_t most_ranks) {
  const auto parameters = static_cast<uint64_t>(graphs.parameters.num_floats());
  SnapshotSizes out;
  out.arenas.assign(1 + graphs.plan.states.size(), parameters);
  out.arenas.push_back(2);
  out.own_floats = static_cast<uint64_t>(graphs.statistic_values.num_floats());
  out.most_ranks = most_ranks;
  return out;
}

Json departures_json(const std::vector<Departure>& departures) {
  Json out = Json::array();
  for (const Departure& each : departures) {
    out.push_back({{"name", each.name},
                   {"state", static_cast<int>(each.state)},
                   {"solo", each.solo_samples_per_second},
                   {"with", each.seconds_with},
                   {"without", each.seconds_without}});
  }
  return out;
}

std::vector<Departure> departures_from(const Json& json) {
  std::vector<Departure> out;
  for (const Json& each : json) {
    out.push_back({each.at("name").get<std::string>(),
                   static_cast<Departure::State>(each.at("state").get<int>()),
                   each.at("solo").get<double>(), each.at("with").get<double>(),
                   each.at("without").get<double>()});
  }
  return out;
}

Json common_json(const KeptState& state, const Job& job) {
  const TrainerProgress& p = state.progress;
  Json out = {{"places", job.places},
              {"step", p.step},
              {"epoch_started", p.epoch_started},
              {"sums", p.sums.values},
              {"carried", p.carried.values},
              {"norm_sum", p.norm_sum},
              {"norm_steps", p.norm_steps},
              {"skipped", p.skipped},
              {"skipped_in_a_row", p.skipped_in_a_row},
              {"seconds", p.seconds},
              {"shares", p.shares},
              {"departures", departures_json(p.departures)},
              {"plateau", to_json(p.plateau)}};
  if (std::isfinite(state.best)) out["best"] = state.best;
  return out;
}

// This rank's numbers, in the order of own_numbers().
Snapshots::OwnNumbers own_numbers(const TrainerProgress& p) {
  return {p.samples_since_merge, static_cast<double>(p.account.samples), p.account.seconds,
          p.account.busy_seconds};
}

}  // namespace

Json to_json(const Plateau& plateau) {
  Json out = {{"factor", plateau.factor},
              {"bad_epochs", plateau.bad_epochs},
              {"cooldown_left", plateau.cooldown_left}};
  if (std::isfinite(plateau.best)) out["best"] = plateau.best;
  return out;
}

Plateau plateau_from_json(const Json& json) {
  Plateau out;
  out.factor = json.value("factor", out.factor);
  out.best = json.value("best", out.best);
  out.bad_epochs = json.value("bad_epochs", out.bad_epochs);
  out.cooldown_left = json.value("cooldown_left", out.cooldown_left);
  return out;
}

Rhythm::Rhythm(Segment& segment, const Job& job, Due what, double share, double least_seconds,
               int64_t least_steps)
    : segment_(segment),
      rank_(job.rank),
      what_(what),
      share_(share),
      least_seconds_(least_seconds),
      least_steps_(least_steps),
      next_seconds_(now_seconds() + least_seconds) {}

bool Rhythm::due(int64_t step) {
  // Announced for the step after the next one; see Segment::announce.
  if (rank_ == 0 && segment_.announced(what_) < step && step >= next_step_ &&
      now_seconds() >= next_seconds_) {
    segment_.announce(what_, step + 1);
  }
  return segment_.announced(what_) == step;
}

void Rhythm::done(int64_t step, double seconds) {
  next_seconds_ = now_seconds() + std::max(least_seconds_, seconds / share_);
  next_step_ = step + least_steps_;
}

StateKeeper::StateKeeper(Snapshots& snapshots, const Job& job, Segment& segment, Replica& replica)
    : snapshots_(snapshots),
      job_(job),
      replica_(replica),
      rhythm_(segment, job, Due::kSnapshot, kSnapshotShare, kSnapshotSeconds, 1),
      next_slot_(job.snapshot < 0 ? 0 : 1 - static_cast<uint32_t>(job.snapshot)),
      first_(job.snapshot < 0) {
  if (job.survives || job.snapshot >= 0) reserve();
}

void StateKeeper::reserve() {
  if (!reserved_) snapshots_.reserve(sizes_of(replica_.graphs(), job_.n_places));
  reserved_ = true;
}

// The places of the ranks that wrote the snapshot. A rank's own values lie under its place.
std::vector<uint32_t> StateKeeper::writers() const {
  return Json::parse(snapshots_.text(static_cast<uint32_t>(job_.snapshot)))
      .at("places")
      .get<std::vector<uint32_t>>();
}

KeptState StateKeeper::read() const {
  const auto slot = static_cast<uint32_t>(job_.snapshot);
  const Json json = Json::parse(snapshots_.text(slot));
  KeptState out;
  TrainerProgress& p = out.progress;
  json.at("step").get_to(p.step);
  json.at("epoch_started").get_to(p.epoch_started);
  json.at("sums").get_to(p.sums.values);
  json.at("carried").get_to(p.carried.values);
  json.at("norm_sum").get_to(p.norm_sum);
  json.at("norm_steps").get_to(p.norm_steps);
  json.at("skipped").get_to(p.skipped);
  json.at("skipped_in_a_row").get_to(p.skipped_in_a_row);
  json.at("seconds").get_to(p.seconds);
  p.plateau = plateau_from_json(json.at("plateau"));
  out.best = json.value("best", -std::numeric_limits<double>::infinity());
  const std::vector<uint32_t> places = writers();
  if (places == job_.places)  // else load() merges
    p.samples_since_merge = snapshots_.own_numbers(slot, job_.place)[0];
  json.at("shares").get_to(p.shares);
  p.departures = departures_from(json.at("departures"));
  if (std::find(places.begin(), places.end(), job_.place) == places.end()) return out;
  const Snapshots::OwnNumbers own = snapshots_.own_numbers(slot, job_.place);
  out.wrote = true;
  p.account.samples = static_cast<int64_t>(own[1]);
  p.account.seconds = own[2];
  p.account.busy_seconds = own[3];
  return out;
}

void StateKeeper::load() const {
  const auto slot = static_cast<uint32_t>(job_.snapshot);
  replica_.write_parameters(snapshots_.arena(slot, 0));
  const size_t states = replica_.graphs().plan.states.size();
  for (size_t i = 0; i < states; ++i) replica_.write_state(i, snapshots_.arena(slot, i + 1));
  const std::vector<float> scale = snapshots_.arena(slot, states + 1);
  replica_.write_loss_scale({scale[0], scale[1]});
  if (replica_.graphs().statistics.empty()) return;
  const std::vector<uint32_t> places = writers();
  replica_.write_statistics(places == job_.places ? snapshots_.own(slot, job_.place)
                                                  : merged_statistics(slot, places));
}

// What the merge at the end of an epoch would have made of the writers' statistics: a group of
// other ranks goes on from there.
std::vector<float> StateKeeper::merged_statistics(uint32_t slot,
                                                  const std::vector<uint32_t>& places) const {
  std::vector<float> out = snapshots_.own(slot, places[0]);
  double total = 0;
  for (const uint32_t place : places) total += snapshots_.own_numbers(slot, place)[0];
  if (total == 0) return out;
  const std::vector<float> first = out;
  // Equal ones (of micro-shards) keep their bits. A NaN equals itself here.
  const bool equal = std::all_of(places.begin(), places.end(), [&](uint32_t place) {
    const std::vector<float> theirs = snapshots_.own(slot, place);
    return std::memcmp(theirs.data(), first.data(), first.size() * sizeof(float)) == 0;
  });
  if (equal) return first;
  std::fill(out.begin(), out.end(), 0.0f);
  for (const uint32_t place : places) {
    const std::vector<float> theirs = snapshots_.own(slot, place);
    const auto weight = static_cast<float>(snapshots_.own_numbers(slot, place)[0] / total);
    for (size_t i = 0; i < out.size(); ++i) out[i] += weight * theirs[i];
  }
  for (const Slot& each : replica_.graphs().statistics) {
    if (each.merge == NETCL_MERGE_WEIGHTED_MEAN) continue;
    const ArenaLayout::Entry& entry = replica_.graphs().statistic_values.find(each.name);
    std::copy_n(first.begin() + entry.offset, entry.desc.shape.num_elements(),
                out.begin() + entry.offset);
  }
  return out;
}

bool StateKeeper::due(int64_t step) {
  if (!job_.survives) return false;  // only when the group is formed anew
  const bool due = first_ || rhythm_.due(step);
  if (due) begun_ = now_seconds();
  first_ = false;
  return due;
}

void StateKeeper::take(const KeptState& state, const std::function<void()>& half) {
  const uint32_t slot = next_slot_;
  reserve();
  snapshots_.begin(slot, job_.rank);
  const size_t states = replica_.graphs().plan.states.size();
  if (job_.rank == 0 || replica_.shares_update()) {  // then each rank has its share of the states
    const auto first = static_cast<uint64_t>(replica_.state_range().first);
    for (size_t i = 0; i < states; ++i) {
      const std::vector<float> values = replica_.read_state_range(i);
      snapshots_.put(slot, i + 1, first, values.data(), values.size());
    }
  }
  if (job_.rank == 0) {  // all ranks have the same
    const auto put = [&](size_t arena, const std::vector<float>& values) {
      snapshots_.put(slot, arena, 0, values.data(), values.size());
    };
    put(0, replica_.read_parameters());
    const std::array<float, 2> scale = replica_.read_loss_scale();
    put(states + 1, {scale[0], scale[1]});
    snapshots_.put_text(slot, common_json(state, job_).dump());
  }
  snapshots_.put_own(slot, job_.place, replica_.read_statistics(), own_numbers(state.progress));
  if (half) half();
  snapshots_.commit(slot, job_.rank, job_.n_ranks, state.progress.step, job_.generation);
  next_slot_ = 1 - slot;
  rhythm_.done(state.progress.step, now_seconds() - begun_);
}

}  // namespace netcl::app
