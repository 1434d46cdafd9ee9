#include "core/distributed/trainer.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <set>

#include "core/base/clock.h"
#include "core/distributed/divergence.h"
#include "core/distributed/statistics_merge.h"

namespace netcl {

namespace {

float* floats(const PinnedBuffer& buffer) { return static_cast<float*>(buffer.data()); }

// What the planner is told of the ranks; `full`: of a full batch.
ShardPlannerOptions planner_options(const TrainerOptions& options, int64_t full, uint32_t ranks) {
  ShardPlannerOptions out{full, options.accumulate, options.rank_names, options.rank_limits};
  for (uint32_t r = static_cast<uint32_t>(out.names.size()); r < ranks; ++r)
    out.names.push_back(str_cat("rank ", r));
  out.limits.resize(ranks);
  return out;
}

// Rows of a whole batch that this rank may get at most.
int64_t own_rows(const TrainerOptions& options, const ShardPlan& plan, uint32_t rank,
                 int64_t most) {
  if (!plan.is_auto() || options.rank_limits.empty() || options.micro_shards > 0) return most;
  const int64_t pass = (most + options.accumulate - 1) / options.accumulate;
  const int64_t fits = options.rank_limits[rank].max_rows;
  return fits < pass ? fits * options.accumulate : most;
}

// Micro-shards stay where they are; a planner only measures them.
ShardPlan fixed(ShardPlan plan) {
  plan.fix();
  return plan;
}

void wait(const cl::Event& event, Trace* trace, const char* what) {
  const TraceSpan span(trace, what, "wait");
  with_cl_errors("waiting for a step", [&] { event.wait(); });
}

}  // namespace

Trainer::Trainer(TrainerOptions options, Replica& replica, Group group, ShardPlan plan,
                 const Dataset& train, const Dataset* test, TrainerHooks hooks)
    : options_(std::move(options)),
      replica_(replica),
      group_(group),
      plan_(options_.micro_shards > 0 ? fixed(std::move(plan)) : std::move(plan)),
      train_(train),
      test_(test),
      hooks_(std::move(hooks)),
      batches_(train.num_samples(), options_.batch_size, options_.seed, true, train.draws()),
      max_rows_(own_rows(options_, plan_, group.rank,
                         std::min(options_.batch_size, std::max(train.epoch_samples(),
                                                                test ? test->num_samples() : 0)))),
      micro_shards_(options_.micro_shards > 0 ? plan_.counts(options_.micro_shards)
                                              : std::vector<int64_t>()),
      sums_inside_(replica.graphs().largest_all_reduce() > 0),
      exchange_(replica, group, {options_.buckets, micro_shards_}),
      evaluator_(replica, group, pass_rows(), evaluator_hooks()),
      carried_(options_.epoch_so_far),
      plateau_(options_.plateau),
      step_(options_.first_step),
      planner_(planner_options(options_, batch_sizes()[0], group.n_ranks), plan_),
      group_choice_(options_.progress ? options_.progress->departures : std::vector<Departure>(),
                    options_.rank_names) {
  if (group_.bootstrap != nullptr) times_.emplace(*group_.bootstrap);
  const Device& device = replica_.queue().device();
  const size_t row_bytes = train_.input_bytes() + train_.label_bytes();
  for (size_t i = 0; i < kSlots; ++i) {
    staging_.push_back(std::make_unique<PinnedBuffer>(
        device, replica_.queue().cl(), static_cast<size_t>(max_rows_) * row_bytes, "batches"));
  }
  const size_t sums_bytes = replica_.sums_size() * sizeof(float);
  sums_ring_ = std::make_unique<PinnedBuffer>(device, replica_.queue().cl(),
                                              sums_bytes * (kInFlight + 1), "sums");
  if (!options_.progress) return;
  const TrainerProgress& from = *options_.progress;
  resumed_ = true;
  step_ = from.step;
  epoch_started_ = from.epoch_started;
  epoch_sums_ = from.sums;
  carried_ = from.carried;
  norm_sum_ = from.norm_sum;
  norm_steps_ = from.norm_steps;
  skipped_ = from.skipped;
  skipped_in_a_row_ = from.skipped_in_a_row;
  plateau_ = from.plateau;
  samples_since_merge_ = from.samples_since_merge;
  account_ = from.account;
}

TrainerProgress Trainer::progress() {
  drain(0);
  TrainerProgress out;
  out.step = step_;
  out.epoch_started = epoch_started_;
  out.sums = epoch_sums_;
  out.carried = carried_;
  out.norm_sum = norm_sum_;
  out.norm_steps = norm_steps_;
  out.skipped = skipped_;
  out.skipped_in_a_row = skipped_in_a_row_;
  out.seconds = now_seconds() - epoch_begin_;
  out.plateau = plateau_;
  for (size_t r = 0; r < plan_.weights().size(); ++r)
    out.shares[planner_.name(r)] = plan_.weights()[r];
  if (regroup_) out.shares = regroup_->shares;
  out.departures = group_choice_.departures();
  out.samples_since_merge = samples_since_merge_;
  out.account = account_;
  return out;
}

void Trainer::begin_epoch(bool first_step) {
  epoch_begin_ = now_seconds();
  if (resumed_) {
    epoch_begin_ -= options_.progress->seconds;
    resumed_ = false;
    return;
  }
  epoch_started_ = step_;
  epoch_sums_ = {};
  norm_sum_ = 0;
  norm_steps_ = 0;
  skipped_ = 0;
  if (first_step) carried_ = {};
}

void Trainer::boundary(bool epoch_end) const {
  if (hooks_.boundary) hooks_.boundary(step_, epoch_end);
}

std::vector<BatchSlot> Trainer::slots() const {
  std::vector<BatchSlot> out;
  for (const auto& buffer : staging_) {
    BatchSlot slot;
    slot.x = buffer->data();
    slot.labels =
        static_cast<char*>(buffer->data()) + static_cast<size_t>(max_rows_) * train_.input_bytes();
    out.push_back(slot);
  }
  return out;
}

std::vector<int64_t> Trainer::batch_sizes() const {
  const int64_t full = std::min(options_.batch_size, train_.epoch_samples());
  const int64_t rest = train_.epoch_samples() % full;
  return rest == 0 ? std::vector<int64_t>{full} : std::vector<int64_t>{full, rest};
}

void Trainer::phase(TrainerPhase now) const {
  if (hooks_.phase) hooks_.phase(now);
}

void Trainer::point(const char* name, int64_t rows) const {
  if (hooks_.point) hooks_.point(name, step_, rows);
}

void Trainer::prepare() {
  phase(TrainerPhase::kPreparing);
  // Some drivers finish compiling at a kernel's first launch.
  for (const int64_t size : batch_sizes()) {
    std::set<int64_t> rows;
    for (const IndexRange& shard : pass_shards(size)) rows.insert(shard.count);
    for (const int64_t n : rows) replica_.warm_up(n);
  }
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

// A pass is the same part of the batch on any number of ranks, so that what is computed over a pass
// (the statistics of a synchronised batch norm) is the same, too.
std::vector<IndexRange> Trainer::pass_shards(int64_t rows) const {
  if (!micro_shards_.empty()) return own_micro_shards(rows, micro_shards_, group_.rank);
  std::vector<IndexRange> out;
  int64_t begin = 0;
  for (const int64_t count : even_counts(rows, options_.accumulate)) {
    if (count == 0 && !out.empty()) break;
    IndexRange shard = shard_slice(plan_.counts(count), group_.rank);
    shard.first += begin;
    begin += count;
    // A pass without samples adds nothing, but takes part in the sums inside of a step.
    if (shard.count > 0 || sums_inside_ || out.empty()) out.push_back(shard);
  }
  return out;
}

int64_t Trainer::first_pass_rows() const { return pass_shards(batch_sizes()[0])[0].count; }

int64_t Trainer::pass_rows() const {
  return (max_rows_ + options_.accumulate - 1) / options_.accumulate;
}

void Trainer::prepare_kernels(int64_t batch_size) {
  for (const IndexRange& shard : pass_shards(batch_size)) replica_.prepare_train(shard.count);
}

cl::Event Trainer::passes(const BatchSlot& batch, const std::vector<IndexRange>& shards) {
  cl::Event staged;
  size_t done = 0;
  for (size_t i = 0; i < shards.size(); ++i) {
    staged = replica_.stage(static_cast<const char*>(batch.x) + done * train_.input_bytes(),
                            static_cast<const char*>(batch.labels) + done * train_.label_bytes(),
                            shards[i].count);
    exchange_.pass(i, shards[i].count, {options_.seed, step_, shards[i].first});
    done += static_cast<size_t>(shards[i].count);
  }
  return staged;
}

double Trainer::learning_rate(int64_t step) const {
  const int64_t per_epoch = batches_.steps_per_epoch();
  return options_.lr * plateau_.factor *
         options_.schedule.lr_factor(std::max<int64_t>(step, 1), options_.epochs * per_epoch,
                                     per_epoch);
}

float* Trainer::sums_of(size_t slot) const {
  return floats(*sums_ring_) + slot * replica_.sums_size();
}

void Trainer::end_plateau_epoch(const EpochReport& report) {
  const Schedule& schedule = options_.schedule;
  if (schedule.type != Schedule::Type::kPlateau || !report.complete) return;
  if (report.step <= schedule.warmup(batches_.steps_per_epoch())) return;
  const Sums& watched = report.test && !schedule.watch_train ? *report.test : report.whole;
  if (!plateau_.end_of_epoch(schedule, watched.loss()) || group_.rank != 0 || !hooks_.note) return;
  hooks_.note(str_cat("the loss has stopped falling: learning rate ", learning_rate(report.step)));
}

bool Trainer::train_step(int64_t epoch, int64_t index, BatchSlot& batch) {
  const int64_t all_rows = batches_.range(index).count;
  const std::vector<IndexRange> shards = pass_shards(all_rows);
  const int64_t rows = batch.count;
  ++step_;
  Trace* trace = replica_.queue().trace();
  if (trace != nullptr) trace->begin_step(step_, replica_.queue().cl());
  const TraceSpan span(trace, "step", "step");
  point("begin", rows);
  exchange_.begin(step_, all_rows);
  staged_.push_back(passes(batch, shards));
  point("computed", rows);
  const double busy = exchange_.finish(learning_rate(step_));
  account_.busy_seconds += busy;
  const double now = now_seconds(), seconds = now - step_end_;
  const StepTime mine{rows, busy, step_end_near_ ? seconds : 0};
  step_end_ = now;
  step_end_near_ = true;
  const size_t slot = static_cast<size_t>(step_) % (kInFlight + 1);
  pending_.push_back({epoch, step_, replica_.read_sums(sums_of(slot), true), slot, seconds});
  account_.samples += rows;
  samples_since_merge_ += static_cast<double>(rows);
  drain(kInFlight);
  point("updated", rows);
  return replan(mine);
}

void Trainer::no_number(const Pending& at, const char* what, double value) {
  report_no_number(
      {at.epoch, at.step, what, value, last_loss_,
       batches_.indices(at.epoch, at.step - 1 - at.epoch * batches_.steps_per_epoch())},
      replica_, train_);
}

void Trainer::take_norm(const Pending& step, double norm) {
  if (std::isfinite(norm)) {
    norm_sum_ += norm;
    ++norm_steps_;
    skipped_in_a_row_ = 0;
    return;
  }
  // With a scaled loss an overflow is part of the search for the scale: the device skipped the step
  // and halved the scale. Without one, or if halving does not help, training has diverged.
  if (!replica_.graphs().loss_scaled) no_number(step, "the gradient's norm", norm);
  ++skipped_;
  if (++skipped_in_a_row_ < kMostSkipped) return;
  fail(
      ErrorCode::kTraining, "the gradients have overflowed 16 bits in the last ", skipped_in_a_row_,
      " steps, up to step ", step.step, " (epoch ", step.epoch + 1,
      "), and no smaller loss scale helps; nothing is learned. Scale the inputs down (data.scale), "
      "add normalising layers, or use precision bf16 or fp32");
}

void Trainer::drain(size_t keep) {
  while (pending_.size() > keep) {
    const Pending pending = pending_.front();
    pending_.pop_front();
    wait(pending.done, replica_.queue().trace(), "wait for a step's sums");
    const StepGraphs& graphs = replica_.graphs();
    const float* sums = sums_of(pending.slot);
    Sums step;
    for (const std::string& name : graphs.sums)
      step.values[name] = sums[graphs.gradients.find(name).offset];
    const double loss = step.loss();
    if (!std::isfinite(loss) && step.values[step_names::kDenominator] != 0) {
      no_number(pending, "the loss", loss);
    }
    if (replica_.measures_norm()) {
      take_norm(pending, sums[graphs.sums_floats]);
    }
    last_loss_ = loss;
    for (const auto& [name, value] : step.values) epoch_sums_.values[name] += value;
    if (hooks_.step) hooks_.step({pending.epoch, pending.step, loss, pending.seconds});
  }
}

BatchSlot& Trainer::next_batch(Prefetcher& prefetcher) const {
  const TraceSpan span(replica_.queue().trace(), "wait for the next batch", "wait");
  return *prefetcher.acquire();
}

bool Trainer::run_steps(int64_t epoch, int64_t first, int64_t last) {
  phase(TrainerPhase::kPreparing);
  for (const int64_t size : batch_sizes()) prepare_kernels(size);
  phase(TrainerPhase::kTraining);
  int64_t next = first;  // of the prefetcher's thread
  BatchPlan order = batches_;
  Prefetcher prefetcher(slots(), [&, this](BatchSlot& slot) {
    if (next >= last) return false;
    const std::vector<int64_t> indices = order.indices(epoch, next);
    slot.count = 0;
    for (const IndexRange& shard : pass_shards(static_cast<int64_t>(indices.size()))) {
      const auto done = static_cast<size_t>(slot.count);
      fill_batch(train_, indices.data() + shard.first, static_cast<size_t>(shard.count),
                 static_cast<char*>(slot.x) + done * train_.input_bytes(),
                 static_cast<char*>(slot.labels) + done * train_.label_bytes());
      slot.count += shard.count;
    }
    ++next;
    return true;
  });
  bool go_on = true;
  for (int64_t i = first; i < last && go_on; ++i) {
    if (must_stop()) {
      go_on = false;
      break;
    }
    if (regroup_) {
      reason_ = StopReason::kRegroup;
      go_on = false;
      break;
    }
    boundary(false);
    if (staged_.size() >=
        kSlots - 1) {  // the oldest staged batch must be on the device before reuse
      wait(staged_.front(), replica_.queue().trace(), "wait for a batch's copy");
      staged_.pop_front();
      prefetcher.release();
    }
    // With another plan the batches that are staged ahead hold the wrong samples.
    if (train_step(epoch, i, next_batch(prefetcher))) break;
  }
  while (!staged_.empty()) {
    wait(staged_.front(), replica_.queue().trace(), "wait for a batch's copy");
    staged_.pop_front();
    prefetcher.release();
  }
  return go_on;
}

void Trainer::say(const std::string& text) const {
  if (group_.rank == 0 && hooks_.note && !text.empty())
    hooks_.note(str_cat("step ", step_ + 1, ": ", text));
}

bool Trainer::replan(const StepTime& mine) {
  if (!times_ && !options_.may_regroup) return false;
  std::vector<StepTime> all = {mine};
  if (times_) {
    times_->write(step_, mine);
    if (step_ - 1 <= options_.first_step) return false;  // nobody has a record of the step before
    all = times_->read(step_ - 1);
  }
  const auto change = planner_.observe(all);
  if (!change) return options_.may_regroup && !regroup_ && regroup();
  say(change->note);
  if (change->weights.empty()) return false;
  plan_.set_weights(change->weights);
  return true;
}

bool Trainer::regroup() {
  std::string note;
  int64_t last = options_.epochs * batches_.steps_per_epoch();
  if (options_.max_steps > 0) last = std::min(last, options_.max_steps);
  regroup_ = group_choice_.look(planner_.measure(), last - step_, &note);
  say(regroup_ ? regroup_->note : note);
  return regroup_.has_value();
}

StopReason Trainer::run() {
  const int64_t per_epoch = batches_.steps_per_epoch();
  bool go_on = true;
  for (int64_t epoch = step_ / per_epoch; epoch < options_.epochs && go_on; ++epoch) {
    const int64_t first = step_ - epoch * per_epoch;
    begin_epoch(first == 0);
    const int64_t started = epoch_started_;
    step_end_ = now_seconds();
    step_end_near_ = false;
    for (int64_t next = first; go_on && next < per_epoch; next = step_ - epoch * per_epoch)
      go_on = run_steps(epoch, next, per_epoch);
    drain(0);
    replica_.queue().finish();
    if (reason_ == StopReason::kRegroup) return reason_;
    if (step_ == started) break;  // stopped before the epoch's first step: nothing to tell
    EpochReport report;
    report.seconds = now_seconds() - epoch_begin_;
    account_.seconds += report.seconds;
    report.epoch = epoch;
    report.step = step_;
    report.first_step = started + 1;
    report.complete = step_ == (epoch + 1) * per_epoch;
    report.lr = learning_rate(step_);
    report.train = report.whole = epoch_sums_;
    for (const auto& [name, value] : carried_.values) report.whole.values[name] += value;
    carried_ = {};
    if (norm_steps_ > 0) report.grad_norm = norm_sum_ / static_cast<double>(norm_steps_);
    report.skipped = skipped_;
    for (int64_t s = started - epoch * per_epoch; s < step_ - epoch * per_epoch; ++s) {
      report.samples += batches_.range(s).count;
    }
    boundary(true);
    // Those of micro-shards are one already.
    if (micro_shards_.empty() && merge_statistics(replica_, group_, samples_since_merge_))
      samples_since_merge_ = 0;
    check_statistics(replica_, step_);
    exchange_.gather_states();
    if (test_ != nullptr && reason_ != StopReason::kInterrupted) {
      report.test = evaluate(*test_);
      if (!report.test) reason_ = StopReason::kInterrupted;
      go_on = go_on && report.test.has_value();
    }
    if (go_on) end_plateau_epoch(report);
    report.plateau = plateau_;
    report.shares = plan_.weights();
    if (hooks_.epoch) hooks_.epoch(report);
    replica_.forget_states();
  }
  if (go_on && options_.max_steps > 0 && step_ >= options_.max_steps &&
      step_ < options_.epochs * per_epoch) {
    reason_ = StopReason::kMaxSteps;
  }
  return reason_;
}

std::optional<Sums> Trainer::evaluate(const Dataset& data) {
  point("evaluate", 0);
  if (!micro_shards_.empty()) return evaluator_.run_in_order(data, micro_shards_, slots()[0]);
  return evaluator_.run(data, shard_slice(plan_.counts(data.num_samples()), group_.rank),
                        slots()[0]);
}

Evaluator::Hooks Trainer::evaluator_hooks() const {
  return {[this](bool first) {  // first launches compile
            phase(first ? TrainerPhase::kPreparing : TrainerPhase::kEvaluating);
          },
          hooks_.stop_requested};
}

RankAccount Trainer::account() const {
  RankAccount out = account_;
  out.share = plan_.weights()[group_.rank];
  if (reason_ == StopReason::kRegroup) out.seconds += now_seconds() - epoch_begin_;
  return out;
}

ShardAccount Trainer::shard_account() const {
  ShardAccount out = planner_.account();
  group_choice_.complete(out);
  return out;
}

}  // namespace netcl
