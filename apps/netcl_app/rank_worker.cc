#include "apps/netcl_app/rank_worker.h"

#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <limits>

#include "apps/netcl_app/init_from.h"
#include "apps/netcl_app/model_setup.h"
#include "apps/netcl_app/tuned_setup.h"
#include "apps/netcl_app/unused_pins.h"
#include "apps/netcl_app/update_choice.h"
#include "core/base/clock.h"
#include "core/base/environment.h"
#include "core/base/file.h"
#include "core/distributed/parameter_check.h"

namespace netcl::app {

namespace {

constexpr double kStepMessageSeconds = 0.1;
constexpr double kCheckShare = 0.01;  // of the time, for the comparison of parameters
constexpr int64_t kCheckSteps = 100;  // between two, at least

}  // namespace

RankWorker::RankWorker(Job job, std::shared_ptr<Segment> segment, RankHome home)
    : job_(std::move(job)),
      shares_process_(home.shares_process),
      say_(std::move(home.say)),
      segment_(std::move(segment)),
      config_(parse_train_config(JsonDoc::parse(job_.config.dump(), job_.config_name), "/")),
      train_(Dataset::attach(WorkerFds::kTrain)),
      trace_(job_.trace_steps > 0 ? std::make_optional<Trace>(job_.trace_after, job_.trace_steps)
                                  : std::nullopt),
      device_(std::move(home.device)),
      queue_(Queue::create(*device_, trace_ ? &*trace_ : nullptr)),
      plugins_(job_.plugins, {device_->info()}, status_logger(say_)),
      kernels_(plugins_, job_.pins, tuned_options(job_.tuned, status_logger(say_))),
      layers_(plugins_),
      optimizer_(optimizer_of(config_)),
      graphs_(build_step_graphs(step_spec_of(config_, optimizer_, DataShape::of(train_),
                                             job_.without_passes, job_.kept_ops),
                                layers_)) {
  if (!shares_process_) device_->programs().set_progress([this] { segment_->tick(job_.rank); });
  if (job_.has_test) test_.emplace(Dataset::attach(WorkerFds::kTest));
  if (job_.regroups) {
    snapshots_.emplace(WorkerFds::kSnapshots);
    if (!shares_process_) channel_.emplace(UniqueFd(WorkerFds::kChannel));
    faults_.set_once([this](uint32_t index) { return snapshots_->mark_once(index); });
  }
  faults_.set_action("flip", [this] { flip_a_bit(); });
  faults_.set_action("nospace", [this] { fill_the_disk(); });
}

int RankWorker::run() {
  for (;;) {
    const std::optional<Problem> problem = problem_of([this] { run_generation(); });
    if (problem && !(job_.survives && problem->code == ErrorCode::kTraining)) {
      say_problem("error", segment_.get(), job_, *problem);
      return exit_code(problem->code);
    }
    // Said before anything is torn down, which the peers would notice.
    if (problem) say_problem("failed", segment_.get(), job_, *problem);
    if (!job_.survives && next_places_.empty()) return 0;
    bool more = false;
    const std::optional<Problem> stuck = problem_of([&] {
      tear_down();
      more = next_generation();
    });
    if (stuck) {
      say_problem("error", segment_.get(), job_, *stuck);
      return exit_code(stuck->code);
    }
    if (!more) return 0;
  }
}

void RankWorker::run_generation() {
  segment_->set_identity(job_.rank, ::getpid(), job_.label + " " + job_.device.name);
  segment_->set_phase(job_.rank, Phases::kSetUp);
  if (!is_set_up_) point(FaultPoints::kSetUp);
  is_set_up_ = true;
  faults_.set_ranks(job_.n_ranks);
  point(FaultPoints::kGroup);
  read_start();
  find_limits();
  open_group();
  CompiledGraph::AllReduce all_reduce;
  if (group_) {
    all_reduce = [this](const cl::Buffer& in, const cl::Buffer& out, const TensorDesc& desc) {
      group().sums->add_up(in, out, desc, "a sum inside of the step");
    };
  }
  replica_.emplace(graphs_, optimizer_, kernels_, queue_, send_, recv_, max_rows(), all_reduce,
                   config_.accumulate > 1, update_share(job_, graphs_));
  read_snapshot();
  trainer_.emplace(trainer_options(), *replica_, group(), first_plan(), train_,
                   test_ ? &*test_ : nullptr, hooks());
  trainer_->prepare();
  check_unused_pins(job_.pins, kernels_, plugins_, *device_);
  start_values();
  point(FaultPoints::kPrepared);
  if (job_.mode == "eval") return evaluate();
  if (job_.mode == "explain") return explain();
  ready();
  say_scaled_rate();
  const StopReason reason = trainer_->run();
  if (reason == StopReason::kRegroup) return regroup();
  point(FaultPoints::kEnd);
  if (group_) group().communicator->barrier("the end of training");
  finish_trace();
  done(reason);
}

void RankWorker::tear_down() {
  queue_->finish();  // what is under way reads memory of the trainer
  trainer_.reset();
  keeper_.reset();
  checks_.reset();
  replica_.reset();
  send_ = recv_ = cl::Buffer();
  collective_trace_.reset();
  group_.reset();
  start_.reset();
  losses_.clear();
  step_seconds_.clear();
}

void RankWorker::regroup() {
  const TrainerProgress progress = trainer_->progress();
  if (!losses_.empty()) send_losses({{"type", "losses"}});
  keeper_->take({progress, best_}, nullptr);
  for (uint32_t place = 0; place < job_.n_places; ++place) {
    if (progress.shares.count(job_.place_labels[place]) > 0) next_places_.push_back(place);
  }
  account_ = trainer_->account();
  account_.share = 0;  // of a group that it is not in
}

bool RankWorker::next_generation() {
  say_({{"type", "parked"}, {"next", next_places_}, {"account", account_message(account_)}});
  next_places_.clear();
  point(FaultPoints::kParked);
  FdChannel::Message message = channel_->receive();
  if (message.fds.size() != 2) return false;
  job_ = job_from_json(Json::parse(text_from_fd(message.fds[1].get())));
  segment_ = Segment::attach(std::move(message.fds[0]));
  return true;
}

int64_t RankWorker::max_rows() const {
  const int64_t rows = std::min(config_.batch_size,
                                std::max(train_.epoch_samples(), test_ ? test_->num_samples() : 0));
  const int64_t pass = (rows + config_.accumulate - 1) / config_.accumulate;
  return limits_.empty() ? pass : std::min(pass, std::max<int64_t>(1, own_limit()));
}

void RankWorker::find_limits() {
  limits_.clear();
  if (!ShardPlan(job_.shard, job_.n_ranks).is_auto() || job_.n_ranks == 1) return;
  if (micro_shards() > 0) return;  // passes do not depend on devices
  const int64_t most = max_rows();
  std::vector<RankLimits> limits;
  for (const DeviceInfo& device : job_.devices) limits.push_back(limits_of(graphs_, device, most));
  limits_ = limits;
}

ShardPlan RankWorker::first_plan() const {
  ShardPlan plan(job_.shard, job_.n_ranks);
  if (!plan.is_auto() || job_.n_ranks == 1 || micro_shards() > 0) return plan;
  plan.set_weights(first_weights(job_.devices));
  if (progress_) {
    std::vector<double> weights;
    for (const std::string& label : job_.labels) {
      const auto found = progress_->shares.find(label);
      if (found != progress_->shares.end()) weights.push_back(found->second);
    }
    if (weights.size() == job_.n_ranks && *std::max_element(weights.begin(), weights.end()) > 0)
      plan.set_weights(weights);
  }
  if (start_ && start_->state.contains("shard_weights") &&
      start_->state.value("shard_devices", Json()) == group_devices()) {
    plan.set_weights(start_->state.at("shard_weights").get<std::vector<double>>());
  }
  return plan;
}

void RankWorker::open_group() {
  require_room(graphs_, max_rows(), device_->info());
  const bool ordered = micro_shards() > 0;
  auto floats = static_cast<size_t>(graphs_.gradients.num_floats());
  if (job_.n_ranks == 1 || ordered)
    send_ = recv_ = device_->make_buffer(floats * sizeof(float), "the gradients");
  if (job_.n_ranks == 1) return;
  if (ordered) floats = static_cast<size_t>(MicroShards::slots_floats(graphs_, micro_shards()));
  RankGroupSpec spec;
  spec.rank = job_.rank;
  spec.n_ranks = job_.n_ranks;
  spec.timeout_ns = job_.timeout_ms * 1'000'000;
  spec.one_context = shares_process_;
  const auto statistics = static_cast<size_t>(graphs_.statistic_values.num_floats());
  if (!faults_.empty()) spec.waiting = [this] { point(FaultPoints::kReducing, step_begun_); };
  spec.sum_bytes = std::max({statistics * sizeof(float), graphs_.largest_all_reduce(), size_t{4}});
  group_.emplace(segment_, plugins_.load(job_.transport), queue_, spec);
  const netcl_bucket& bucket = group_->new_bucket(floats * sizeof(float));
  if (trace_) collective_trace_.emplace(*group().communicator, *trace_);
  if (ordered) return;
  send_ = cl::Buffer(static_cast<cl_mem>(bucket.send), true);
  recv_ = cl::Buffer(static_cast<cl_mem>(bucket.recv), true);
}

void RankWorker::read_start() {
  best_ = -std::numeric_limits<double>::infinity();
  if (job_.snapshot >= 0) return;
  first_step_ = 0;
  if (job_.resume.empty()) return;
  start_ = read_checkpoint(job_.resume);
  if (job_.mode == "train") first_step_ = start_->state.at("step").get<int64_t>();
  best_ = start_->state.value("best", best_);
  if (job_.mode == "train") read_progress(start_->state);
}

void RankWorker::read_snapshot() {
  const bool train = job_.mode == "train";
  if (train) checks_.emplace(*segment_, job_, Due::kCheck, kCheckShare, 0, kCheckSteps);
  if (train && snapshots_) keeper_.emplace(*snapshots_, job_, *segment_, *replica_);
  progress_.reset();
  if (job_.snapshot < 0) return;
  const KeptState kept = keeper_->read();
  progress_ = kept.progress;
  if (!kept.wrote) progress_->account = account_;
  best_ = kept.best;
}

void RankWorker::read_progress(const Json& state) {
  if (const auto it = state.find("plateau"); it != state.end()) plateau_ = plateau_from_json(*it);
  if (const auto it = state.find("epoch_sums"); it != state.end())
    epoch_so_far_.values = it->get<std::map<std::string, double>>();
}

void RankWorker::start_values() {
  if (progress_) return keeper_->load();
  if (!start_) {
    replica_->initialise(config_.seed);
    if (!config_.init_from.path.empty()) load_initial(*replica_, config_.init_from);
    return;
  }
  load_into(*replica_, *start_, job_.mode == "train", job_.resume);
  start_.reset();
}

TrainerOptions RankWorker::trainer_options() const {
  TrainerOptions out;
  out.schedule = schedule_of(config_, job_.n_places);
  out.lr = learning_rate_of(config_, job_.n_places);
  out.accumulate = config_.accumulate;
  out.micro_shards = micro_shards();
  out.buckets = bucket_sizes(job_);
  out.plateau = plateau_;
  out.epoch_so_far = epoch_so_far_;
  out.batch_size = config_.batch_size;
  out.epochs = config_.epochs;
  out.max_steps = job_.max_steps;
  out.first_step = progress_ ? progress_->step : first_step_;
  out.seed = config_.seed;
  out.progress = progress_;
  out.rank_names = job_.labels;
  out.rank_limits = limits_;
  // Ranks that share a process stay together.
  out.may_regroup = job_.regroups && !shares_process_ && micro_shards() == 0 &&
                    ShardPlan(job_.shard, job_.n_ranks).is_auto();
  return out;
}

TrainerHooks RankWorker::hooks() {
  TrainerHooks out;
  out.step = [this](const StepReport& report) {
    segment_->set_step(job_.rank, report.step);
    if (job_.rank != 0) return;
    losses_.push_back(report.loss);
    last_step_ = report.step;
    step_seconds_.push_back(report.seconds);
    if (now_seconds() - last_message_ < kStepMessageSeconds) return;
    last_message_ = now_seconds();
    send_losses({{"type", "step"}, {"epoch", report.epoch}, {"loss", report.loss}});
  };
  out.boundary = [this](int64_t step, bool epoch_end) { boundary(step, epoch_end); };
  out.epoch = [this](const EpochReport& report) { end_of_epoch(report); };
  out.note = [this](const std::string& text) { say_({{"type", "note"}, {"text", text}}); };
  out.stop_requested = [this] { return segment_->stop_requested(); };
  if (!faults_.empty()) {
    out.point = [this](const char* name, int64_t step, int64_t rows) {
      step_begun_ = step;
      faults_.at(name, step, rows);
    };
  }
  out.phase = [this](TrainerPhase phase) {
    segment_->set_phase(job_.rank, phase == TrainerPhase::kTraining    ? Phases::kTraining
                                   : phase == TrainerPhase::kPreparing ? Phases::kKernels
                                                                       : Phases::kEvaluating);
  };
  return out;
}

void RankWorker::boundary(int64_t step, bool epoch_end) {
  if (group_ && (checks_->due(step) || epoch_end)) {
    const double begin = now_seconds();
    check_parameters(*replica_, group(), step);
    checks_->done(step, now_seconds() - begin);
  }
  if (!keeper_ || epoch_end || !keeper_->due(step)) return;
  const TrainerProgress progress = trainer_->progress();
  if (!losses_.empty()) send_losses({{"type", "losses"}});
  // Before the snapshot counts; it outlives this worker.
  Json account = account_message(progress.account);
  account["type"] = "account";
  account["step"] = step;
  if (job_.n_ranks > 1 && !shares_process_) say_(account);
  keeper_->take({progress, best_}, [&] { point(FaultPoints::kSnapshot, step); });
}

void RankWorker::flip_a_bit() {
  std::vector<float> arena = replica_->read_parameters();
  uint32_t word = 0;
  std::memcpy(&word, arena.data(), sizeof(word));
  word ^= 1;
  std::memcpy(arena.data(), &word, sizeof(word));
  replica_->write_parameters(arena);
}

void RankWorker::fill_the_disk() {
  const std::filesystem::path file =
      temporary_file(std::filesystem::path(job_.checkpoints) / "last.safetensors");
  NETCL_CHECK(::symlink("/dev/full", file.c_str()) == 0, ErrorCode::kInternal, file.string(),
              ": cannot be made");
}

}  // namespace netcl::app
