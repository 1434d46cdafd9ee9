#include "core/distributed/trainer.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstring>
#include <limits>
#include <numeric>

namespace netcl {

namespace {

double now_seconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

float* floats(const PinnedBuffer& buffer) { return static_cast<float*>(buffer.data()); }

void wait(const cl::Event& event) {
  with_cl_errors("waiting for a step", [&] { event.wait(); });
}

// "sample 17 of the training data holds nan at value 3", or "" if all samples are finite.
std::string first_bad_sample(const Dataset& data, const std::vector<int64_t>& indices) {
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

// "linear.weight f32[64,10] (3 of 640 values)", the first in the order of the model, or "".
std::string first_bad_tensor(const StepGraphs& graphs, const ArenaLayout& layout,
                             const std::string& prefix, const std::vector<float>& arena) {
  for (const Slot& slot : graphs.slots) {
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

}  // namespace

double Sums::loss() const {
  const auto denominator = values.find(step_names::kDenominator);
  if (denominator == values.end() || denominator->second == 0)
    return std::numeric_limits<double>::quiet_NaN();
  return values.at(step_names::kLoss) / denominator->second;
}

bool Sums::has_accuracy() const { return values.count(step_names::kCorrect) > 0; }

double Sums::accuracy() const {
  return has_accuracy() ? values.at(step_names::kCorrect) / values.at(step_names::kDenominator) : 0;
}

Trainer::Trainer(TrainerOptions options, Replica& replica, Group group, ShardPlan plan,
                 const Dataset& train, const Dataset* test, TrainerHooks hooks)
    : options_(std::move(options)),
      replica_(replica),
      group_(group),
      plan_(std::move(plan)),
      train_(train),
      test_(test),
      hooks_(std::move(hooks)),
      batches_(train.num_samples(), options_.batch_size, options_.seed, true),
      max_rows_(std::min(options_.batch_size,
                         std::max(train.num_samples(), test ? test->num_samples() : 0))),
      step_(options_.first_step) {
  const Device& device = replica_.queue().device();
  const size_t row_floats =
      static_cast<size_t>(train_.sample_elements()) + 1;  // one more for the label
  for (size_t i = 0; i < kSlots; ++i) {
    staging_.push_back(std::make_unique<PinnedBuffer>(
        device, replica_.queue().cl(), static_cast<size_t>(max_rows_) * row_floats * sizeof(float),
        "batches"));
  }
  const auto sums_bytes = static_cast<size_t>(replica_.graphs().sums_floats) * sizeof(float);
  sums_ring_ = std::make_unique<PinnedBuffer>(device, replica_.queue().cl(),
                                              sums_bytes * (kInFlight + 1), "sums");
}

std::vector<BatchSlot> Trainer::slots() const {
  std::vector<BatchSlot> out;
  for (const auto& buffer : staging_) {
    float* x = floats(*buffer);
    BatchSlot slot;
    slot.x = x;
    slot.labels = reinterpret_cast<int32_t*>(x + max_rows_ * train_.sample_elements());
    out.push_back(slot);
  }
  return out;
}

std::vector<int64_t> Trainer::batch_sizes() const {
  const int64_t full = std::min(options_.batch_size, train_.num_samples());
  const int64_t rest = train_.num_samples() % full;
  return rest == 0 ? std::vector<int64_t>{full} : std::vector<int64_t>{full, rest};
}

void Trainer::phase(TrainerPhase now) const {
  if (hooks_.phase) hooks_.phase(now);
}

void Trainer::prepare() {
  phase(TrainerPhase::kPreparing);
  // Some drivers finish compiling at a kernel's first launch.
  for (const int64_t size : batch_sizes()) replica_.warm_up(plan_.counts(size)[group_.rank]);
}

bool Trainer::must_stop() {
  if (stop_at_ >= 0 && step_ >= stop_at_) {
    reason_ = StopReason::kInterrupted;
    return true;
  }
  if (options_.max_steps > 0 && step_ >= options_.max_steps) {
    reason_ = StopReason::kMaxSteps;
    return true;
  }
  if (group_.communicator == nullptr) {
    if (hooks_.stop_requested && hooks_.stop_requested()) {
      reason_ = StopReason::kInterrupted;
      return true;
    }
    return false;
  }
  // Rank 0 announces the stop for the step after the next one before it takes part in the next
  // reduction; no rank can have passed that step without it, so all stop at the same place.
  Segment& segment = group_.bootstrap->segment();
  if (group_.rank == 0 && segment.stop_step() < 0 && hooks_.stop_requested &&
      hooks_.stop_requested()) {
    segment.set_stop_step(step_ + 1);
  }
  stop_at_ = segment.stop_step();
  if (stop_at_ < 0 || step_ < stop_at_) return false;
  reason_ = StopReason::kInterrupted;
  return true;
}

void Trainer::train_step(int64_t epoch, int64_t index, BatchSlot& batch) {
  const std::vector<int64_t> counts = plan_.counts(batches_.range(index).count);
  const IndexRange shard = shard_slice(counts, group_.rank);
  ++step_;
  const double begin = now_seconds();
  staged_.push_back(replica_.stage(batch.x, batch.labels, shard.count));
  replica_.forward_backward(shard.count, {options_.seed, step_, shard.first});
  if (group_.communicator != nullptr) {
    const cl::Event ready = replica_.marker();
    note_collective("gradients");
    const Ticket ticket = group_.communicator->all_reduce(
        *group_.bucket, 0, static_cast<uint64_t>(replica_.graphs().gradients.num_floats()),
        DType::kF32, ReduceOp::kSum, ready(), "gradients");
    wait(ready);
    const double busy = now_seconds() - begin;
    account_.busy_seconds += busy;
    if (shard.count > 0) seconds_per_sample_.push_back(busy / static_cast<double>(shard.count));
    group_.communicator->wait(ticket);
  }
  const int64_t total_steps = options_.epochs * batches_.steps_per_epoch();
  replica_.update(step_, options_.lr * options_.schedule.lr_factor(step_, total_steps));
  const size_t slot = static_cast<size_t>(step_) % (kInFlight + 1);
  float* out = floats(*sums_ring_) + slot * static_cast<size_t>(replica_.graphs().sums_floats);
  pending_.push_back({epoch, step_, replica_.read_sums(out, true), slot});
  account_.samples += shard.count;
  samples_since_merge_ += static_cast<double>(shard.count);
  drain(kInFlight);
}

void Trainer::note_collective(std::string_view name) const {
  CollectiveNote note;
  note.sequence = static_cast<uint64_t>(step_);
  note.op = NETCL_ALL_REDUCE;
  note.dtype = static_cast<uint32_t>(DType::kF32);
  note.count = static_cast<uint64_t>(replica_.graphs().gradients.num_floats());
  name.copy(note.name, sizeof(note.name) - 1);
  group_.bootstrap->segment().set_collective(group_.rank, note);
}

// Every rank sees the same sums, samples and parameters, so every rank says the same.
void Trainer::report_no_number(int64_t epoch, int64_t step, double loss) {
  std::string text = str_cat("the loss is ", loss, " at step ", step, " (epoch ", epoch + 1, ")");
  if (std::isfinite(last_loss_)) text += str_cat(", after ", last_loss_);
  const std::string sample = first_bad_sample(
      train_, batches_.indices(epoch, step - 1 - epoch * batches_.steps_per_epoch()));
  if (!sample.empty())
    fail(ErrorCode::kTraining, text, ": ", sample, "; mend the data or leave the sample out");
  const StepGraphs& graphs = replica_.graphs();
  const std::string parameter =
      first_bad_tensor(graphs, graphs.parameters, "", replica_.read_parameters());
  const std::string gradient =
      first_bad_tensor(graphs, graphs.gradients, "grad/", replica_.read_gradients());
  fail(ErrorCode::kTraining, text, ": training diverged; ",
       !parameter.empty()  ? "the first tensor that is not finite is " + parameter
       : !gradient.empty() ? "the first tensor that is not finite is the gradient of " + gradient
                           : "all parameters and gradients are still finite",
       ". Try a smaller learning rate (optimizer.lr) or a warm-up (schedule.warmup_steps)");
}

void Trainer::drain(size_t keep) {
  while (pending_.size() > keep) {
    const Pending pending = pending_.front();
    pending_.pop_front();
    wait(pending.done);
    const StepGraphs& graphs = replica_.graphs();
    const float* sums =
        floats(*sums_ring_) + pending.slot * static_cast<size_t>(graphs.sums_floats);
    Sums step;
    for (const std::string& name : graphs.sums)
      step.values[name] = sums[graphs.gradients.find(name).offset];
    const double loss = step.loss();
    if (!std::isfinite(loss) && step.values[step_names::kDenominator] != 0) {
      report_no_number(pending.epoch, pending.step, loss);
    }
    last_loss_ = loss;
    for (const auto& [name, value] : step.values) epoch_sums_.values[name] += value;
    if (hooks_.step) hooks_.step({pending.epoch, pending.step, loss});
  }
}

bool Trainer::run_steps(int64_t epoch, int64_t first, int64_t last) {
  phase(TrainerPhase::kPreparing);
  for (const int64_t size : batch_sizes()) replica_.prepare_train(plan_.counts(size)[group_.rank]);
  phase(TrainerPhase::kTraining);
  int64_t next = first;  // of the prefetcher's thread
  BatchPlan order = batches_;
  Prefetcher prefetcher(slots(), [&, this](BatchSlot& slot) {
    if (next >= last) return false;
    const std::vector<int64_t> indices = order.indices(epoch, next);
    const IndexRange shard =
        shard_slice(plan_.counts(static_cast<int64_t>(indices.size())), group_.rank);
    fill_batch(train_, indices.data() + shard.first, static_cast<size_t>(shard.count), slot.x,
               slot.labels);
    slot.count = shard.count;
    ++next;
    return true;
  });
  bool go_on = true;
  for (int64_t i = first; i < last && go_on; ++i) {
    if (must_stop()) {
      go_on = false;
      break;
    }
    if (staged_.size() >=
        kSlots - 1) {  // the oldest staged batch must be on the device before reuse
      wait(staged_.front());
      staged_.pop_front();
      prefetcher.release();
    }
    train_step(epoch, i, *prefetcher.acquire());
  }
  while (!staged_.empty()) {
    wait(staged_.front());
    staged_.pop_front();
    prefetcher.release();
  }
  return go_on;
}

void Trainer::replan() {
  if (!plan_.is_auto() || group_.bootstrap == nullptr) return;
  if (replans_ > 0 && step_ - planned_at_ < kReplanSteps) return;
  double mine = 0;
  if (!seconds_per_sample_.empty()) {
    const auto middle =
        seconds_per_sample_.begin() + static_cast<std::ptrdiff_t>(seconds_per_sample_.size() / 2);
    std::nth_element(seconds_per_sample_.begin(), middle, seconds_per_sample_.end());
    mine = *middle;
  }
  std::vector<double> all(group_.n_ranks);
  group_.bootstrap->exchange(&mine, sizeof(mine), all.data());
  seconds_per_sample_.clear();
  planned_at_ = step_;
  const double max_change = replans_++ == 0 ? ShardPlan::kFirstChange : ShardPlan::kMaxChange;
  if (!plan_.adapt(all, max_change) || group_.rank != 0 || !hooks_.note) return;
  std::string text = "shards by measured speed:";
  for (const double w : plan_.weights()) text += str_cat(" ", std::round(w * 1000) / 10, "%");
  hooks_.note(text);
}

StopReason Trainer::run() {
  const int64_t per_epoch = batches_.steps_per_epoch();
  bool go_on = true;
  for (int64_t epoch = step_ / per_epoch; epoch < options_.epochs && go_on; ++epoch) {
    const double begin = now_seconds();
    const int64_t first = step_ - epoch * per_epoch, started = step_;
    epoch_sums_ = {};
    const bool trial = plan_.is_auto() && group_.n_ranks > 1 && step_ == options_.first_step;
    const int64_t middle = trial ? std::min(first + kTrialSteps, per_epoch) : first;
    if (middle > first) {
      go_on = run_steps(epoch, first, middle);
      if (go_on) replan();
    }
    if (go_on) go_on = run_steps(epoch, middle, per_epoch);
    drain(0);
    replica_.queue().finish();
    if (step_ == started) break;  // stopped before the epoch's first step: nothing to tell
    EpochReport report;
    report.seconds = now_seconds() - begin;
    account_.seconds += report.seconds;
    report.epoch = epoch;
    report.step = step_;
    report.complete = step_ == (epoch + 1) * per_epoch;
    report.lr = options_.lr * options_.schedule.lr_factor(std::max<int64_t>(step_, 1),
                                                          options_.epochs * per_epoch);
    report.train = epoch_sums_;
    for (int64_t s = started - epoch * per_epoch; s < step_ - epoch * per_epoch; ++s) {
      report.samples += batches_.range(s).count;
    }
    if (go_on) replan();
    merge_statistics();
    if (test_ != nullptr && reason_ != StopReason::kInterrupted) {
      report.test = evaluate(*test_);
      if (!report.test) reason_ = StopReason::kInterrupted;
      go_on = go_on && report.test.has_value();
    }
    if (hooks_.epoch) hooks_.epoch(report);
  }
  if (go_on && options_.max_steps > 0 && step_ >= options_.max_steps &&
      step_ < options_.epochs * per_epoch) {
    reason_ = StopReason::kMaxSteps;
  }
  return reason_;
}

void Trainer::merge_statistics() {
  const StepGraphs& graphs = replica_.graphs();
  const bool equal = std::all_of(graphs.statistics.begin(), graphs.statistics.end(),
                                 [](const Slot& slot) { return slot.merge == NETCL_MERGE_NONE; });
  if (group_.sums == nullptr || equal) return;
  std::vector<double> weights(group_.n_ranks);
  group_.bootstrap->exchange(&samples_since_merge_, sizeof(double), weights.data());
  samples_since_merge_ = 0;
  const double total = std::accumulate(weights.begin(), weights.end(), 0.0);
  if (total == 0) return;
  std::vector<float> arena = replica_.read_statistics();
  for (const Slot& slot : graphs.statistics) {
    const double factor = slot.merge == NETCL_MERGE_WEIGHTED_MEAN ? weights[group_.rank] / total
                          : group_.rank == 0                      ? 1.0
                                                                  : 0.0;
    const ArenaLayout::Entry& entry = graphs.statistic_values.find(slot.name);
    const auto begin = arena.begin() + entry.offset;
    std::transform(begin, begin + entry.desc.shape.num_elements(), begin,
                   [factor](float x) { return static_cast<float>(factor * x); });
  }
  replica_.write_statistics(group_.sums->add_up(arena, "statistics"));
}

std::optional<Sums> Trainer::add_over_ranks(const Sums& mine, bool stopped) {
  if (group_.bootstrap == nullptr) return stopped ? std::nullopt : std::make_optional(mine);
  const std::vector<std::string>& names = replica_.graphs().sums;
  const size_t width = names.size() + 1;  // and whether the rank has stopped
  std::vector<double> values, all(width * group_.n_ranks);
  for (const std::string& name : names) values.push_back(mine.values.at(name));
  values.push_back(stopped ? 1 : 0);
  group_.bootstrap->exchange(values.data(), values.size() * sizeof(double), all.data());
  for (size_t r = 0; r < group_.n_ranks; ++r) {
    if (all[r * width + names.size()] != 0) return std::nullopt;
  }
  Sums out;
  for (size_t i = 0; i < names.size(); ++i) {
    double sum = 0;
    for (size_t r = 0; r < group_.n_ranks; ++r) sum += all[r * width + i];
    out.values[names[i]] = sum;
  }
  return out;
}

std::optional<Sums> Trainer::evaluate(const Dataset& data) {
  const IndexRange mine = shard_slice(plan_.counts(data.num_samples()), group_.rank);
  const StepGraphs& graphs = replica_.graphs();
  const BatchSlot slot = slots()[0];
  Sums total;
  for (const std::string& name : graphs.sums) total.values[name] = 0;
  bool stopped = false;
  for (int64_t done = 0; done < mine.count && !stopped;) {
    phase(evaluations_ == 0 ? TrainerPhase::kPreparing
                            : TrainerPhase::kEvaluating);  // first launches compile
    const int64_t rows = std::min(max_rows_, mine.count - done);
    std::vector<int64_t> indices(static_cast<size_t>(rows));
    for (int64_t i = 0; i < rows; ++i) indices[static_cast<size_t>(i)] = mine.first + done + i;
    fill_batch(data, indices.data(), indices.size(), slot.x, slot.labels);
    replica_.stage(slot.x, slot.labels, rows);
    replica_.evaluate(rows);
    wait(replica_.read_sums(floats(*sums_ring_), false));
    for (const std::string& name : graphs.sums) {
      total.values[name] += floats(*sums_ring_)[graphs.gradients.find(name).offset];
    }
    done += rows;
    stopped = hooks_.stop_requested && hooks_.stop_requested();
  }
  ++evaluations_;
  return add_over_ranks(total, stopped);
}

RankAccount Trainer::account() const {
  RankAccount out = account_;
  out.share = plan_.weights()[group_.rank];
  return out;
}

}  // namespace netcl
