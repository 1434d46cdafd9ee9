#include "apps/netcl_app/worker.h"

#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <functional>
#include <limits>

#include "apps/netcl_app/bench_allreduce_worker.h"
#include "apps/netcl_app/checkpoint.h"
#include "apps/netcl_app/fault_plan.h"
#include "apps/netcl_app/init_from.h"
#include "apps/netcl_app/job.h"
#include "apps/netcl_app/metric_values.h"
#include "apps/netcl_app/model_setup.h"
#include "apps/netcl_app/open_device.h"
#include "apps/netcl_app/own_cores.h"
#include "apps/netcl_app/rank_group.h"
#include "apps/netcl_app/state_keeper.h"
#include "apps/netcl_app/trace_file.h"
#include "apps/netcl_app/update_choice.h"
#include "apps/netcl_app/worker_status.h"
#include "core/base/clock.h"
#include "core/base/environment.h"
#include "core/distributed/collective_trace.h"
#include "core/distributed/device_limits.h"
#include "core/distributed/fd_channel.h"
#include "core/distributed/parameter_check.h"
#include "core/distributed/process.h"
#include "core/distributed/snapshot.h"
#include "core/distributed/trainer.h"
#include "core/runtime/kernel_choice.h"
#include "core/runtime/layer_set.h"
#include "core/runtime/plugin_host.h"

namespace netcl::app {

namespace {

constexpr double kStepMessageSeconds = 0.1;
constexpr double kCheckShare = 0.01;  // of the time, for the comparison of parameters
constexpr int64_t kCheckSteps = 100;  // between two, at least

// What a worker holds, in the order in which it must go: everything on the device before the
// device.
class Worker {
 public:
  Worker(Job job, std::shared_ptr<Segment> segment)
      : job_(std::move(job)),
        segment_(std::move(segment)),
        config_(parse_train_config(JsonDoc::parse(job_.config.dump(), job_.config_name), "/")),
        train_(Dataset::attach(WorkerFds::kTrain)),
        trace_(job_.trace_steps > 0 ? std::make_optional<Trace>(job_.trace_after, job_.trace_steps)
                                    : std::nullopt),
        device_(device_of(job_.device, config_.micro_shards > 0), environment::cache_dir(),
                logger()),
        queue_(Queue::create(device_, trace_ ? &*trace_ : nullptr)),
        plugins_(job_.plugins, {device_.info()}, logger()),
        kernels_(plugins_, job_.pins),
        layers_(plugins_),
        optimizer_(optimizer_of(config_)),
        graphs_(
            build_step_graphs(step_spec_of(config_, optimizer_, DataShape::of(train_)), layers_)) {
    device_.programs().set_progress([this] { segment_->tick(job_.rank); });
    if (job_.has_test) test_.emplace(Dataset::attach(WorkerFds::kTest));
    if (job_.regroups) {
      snapshots_.emplace(WorkerFds::kSnapshots);
      channel_.emplace(UniqueFd(WorkerFds::kChannel));
      faults_.set_once([this](uint32_t index) { return snapshots_->mark_once(index); });
    }
    faults_.set_action("flip", [this] { flip_a_bit(); });
    faults_.set_action("nospace", [this] { fill_the_disk(); });
  }

  // Every generation of the group, until the run ends. Returns the exit code.
  int run() {
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

 private:
  void run_generation() {
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
    start_values();
    point(FaultPoints::kPrepared);
    if (job_.mode == "eval") return evaluate();
    ready();
    say_scaled_rate();
    const StopReason reason = trainer_->run();
    if (reason == StopReason::kRegroup) return regroup();
    point(FaultPoints::kEnd);
    if (group_) group().communicator->barrier("the end of training");
    finish_trace();
    done(reason);
  }

  // All that belongs to a group; device, queue, programs and data stay.
  void tear_down() {
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

  // The state that the next group goes on from, and whose that is.
  void regroup() {
    const TrainerProgress progress = trainer_->progress();
    if (!losses_.empty()) send_losses({{"type", "losses"}});
    keeper_->take({progress, best_}, nullptr);
    for (uint32_t place = 0; place < job_.n_places; ++place) {
      if (progress.shares.count(job_.place_labels[place]) > 0) next_places_.push_back(place);
    }
    account_ = trainer_->account();
    account_.share = 0;  // of a group that it is not in
  }

  // Waits, parked, for the supervisor's word. False: the run is over.
  bool next_generation() {
    send_status({{"type", "parked"},
                 {"next", next_places_},
                 {"account", account_message(account_, "regrouped")}});
    next_places_.clear();
    point(FaultPoints::kParked);
    FdChannel::Message message = channel_->receive();
    if (message.fds.size() != 2) return false;
    job_ = job_from_json(Json::parse(text_from_fd(message.fds[1].get())));
    segment_ = Segment::attach(std::move(message.fds[0]));
    return true;
  }

  Logger logger() const {
    return Logger([](LogLevel level, const std::string& text) {
      if (level >= LogLevel::kWarning) send_status({{"type", "note"}, {"text", text}});
    });
  }

  // Of a pass: this rank's, which may hold less than a whole one where the shares are free.
  int64_t max_rows() const {
    const int64_t rows = std::min(
        config_.batch_size, std::max(train_.epoch_samples(), test_ ? test_->num_samples() : 0));
    const int64_t pass = (rows + config_.accumulate - 1) / config_.accumulate;
    return limits_.empty() ? pass : std::min(pass, std::max<int64_t>(1, own_limit()));
  }

  int64_t own_limit() const { return limits_[job_.rank].max_rows; }

  // Every rank finds the same from what the supervisor says of all devices.
  void find_limits() {
    limits_.clear();
    if (!ShardPlan(job_.shard, job_.n_ranks).is_auto() || job_.n_ranks == 1) return;
    if (micro_shards() > 0) return;  // passes do not depend on devices
    const int64_t most = max_rows();
    std::vector<RankLimits> limits;
    for (const DeviceInfo& device : job_.devices)
      limits.push_back(limits_of(graphs_, device, most));
    limits_ = limits;
  }

  // Where a run goes on with the same devices, it begins with the shares that it had.
  ShardPlan first_plan() const {
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

  Json group_devices() const {
    Json out = Json::array();
    for (size_t r = 0; r < job_.labels.size(); ++r)
      out.push_back(job_.labels[r] + " " + job_.devices[r].name);
    return out;
  }

  Json metrics_of(const Sums& sums) const {
    return metric_values(sums, config_.metrics, train_.class_names());
  }

  int64_t micro_shards() const { return job_.mode == "train" ? config_.micro_shards : 0; }

  void open_group() {
    require_room(graphs_, max_rows(), device_.info());
    const bool ordered = micro_shards() > 0;
    auto floats = static_cast<size_t>(graphs_.gradients.num_floats());
    if (job_.n_ranks == 1 || ordered)
      send_ = recv_ = device_.make_buffer(floats * sizeof(float), "the gradients");
    if (job_.n_ranks == 1) return;
    if (ordered) floats = static_cast<size_t>(MicroShards::slots_floats(graphs_, micro_shards()));
    RankGroupSpec spec;
    spec.rank = job_.rank;
    spec.n_ranks = job_.n_ranks;
    spec.timeout_ns = job_.timeout_ms * 1'000'000;
    const auto statistics = static_cast<size_t>(graphs_.statistic_values.num_floats());
    if (!faults_.empty()) spec.waiting = [this] { point(FaultPoints::kReducing, step_begun_); };
    spec.sum_bytes =
        std::max({statistics * sizeof(float), graphs_.largest_all_reduce(), size_t{4}});
    group_.emplace(segment_, plugins_.load(job_.transport), queue_, spec);
    const netcl_bucket& bucket = group_->new_bucket(floats * sizeof(float));
    if (trace_) collective_trace_.emplace(*group().communicator, *trace_);
    if (ordered) return;
    send_ = cl::Buffer(static_cast<cl_mem>(bucket.send), true);
    recv_ = cl::Buffer(static_cast<cl_mem>(bucket.recv), true);
  }

  Group group() { return group_ ? group_->links() : Group{}; }

  void read_start() {
    best_ = -std::numeric_limits<double>::infinity();
    if (job_.snapshot >= 0) return;
    first_step_ = 0;
    if (job_.resume.empty()) return;
    start_ = read_checkpoint(job_.resume);
    if (job_.mode == "train") first_step_ = start_->state.at("step").get<int64_t>();
    best_ = start_->state.value("best", best_);
    if (job_.mode == "train") read_progress(start_->state);
  }

  void read_snapshot() {
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

  void read_progress(const Json& state) {
    if (const auto it = state.find("plateau"); it != state.end()) plateau_ = plateau_from_json(*it);
    if (const auto it = state.find("epoch_sums"); it != state.end())
      epoch_so_far_.values = it->get<std::map<std::string, double>>();
  }

  void start_values() {
    if (progress_) return keeper_->load();
    if (!start_) {
      replica_->initialise(config_.seed);
      if (!config_.init_from.path.empty()) load_initial(*replica_, config_.init_from);
      return;
    }
    load_into(*replica_, *start_, job_.mode == "train", job_.resume);
    start_.reset();
  }

  TrainerOptions trainer_options() const {
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
    out.may_regroup = job_.regroups && ShardPlan(job_.shard, job_.n_ranks).is_auto();
    return out;
  }

  TrainerHooks hooks() {
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
    out.note = [](const std::string& text) { send_status({{"type", "note"}, {"text", text}}); };
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

  // Steps' losses go to the supervisor, which outlives this worker: in time before a snapshot that
  // the next generation may go on from.
  void send_losses(Json message) {
    message["step"] = last_step_;
    message["losses"] = losses_;
    message["seconds"] = step_seconds_;
    losses_.clear();
    step_seconds_.clear();
    send_status(message);
  }

  void boundary(int64_t step, bool epoch_end) {
    if (group_ && (checks_->due(step) || epoch_end)) {
      const double begin = now_seconds();
      check_parameters(*replica_, group(), step);
      checks_->done(step, now_seconds() - begin);
    }
    if (!keeper_ || epoch_end || !keeper_->due(step)) return;
    const TrainerProgress progress = trainer_->progress();
    if (!losses_.empty()) send_losses({{"type", "losses"}});
    keeper_->take({progress, best_}, [&] { point(FaultPoints::kSnapshot, step); });
  }

  void point(const char* name, int64_t step = 0) { faults_.at(name, step); }

  void flip_a_bit() {
    std::vector<float> arena = replica_->read_parameters();
    uint32_t word = 0;
    std::memcpy(&word, arena.data(), sizeof(word));
    word ^= 1;
    std::memcpy(arena.data(), &word, sizeof(word));
    replica_->write_parameters(arena);
  }

  // What is written next beside last.safetensors goes to a device that is full.
  void fill_the_disk() {
    const std::string file = str_cat(job_.checkpoints, "/last.safetensors.tmp", ::getpid());
    NETCL_CHECK(::symlink("/dev/full", file.c_str()) == 0, ErrorCode::kInternal, file,
                ": cannot be made");
  }

  void end_of_epoch(const EpochReport& report) {
    if (job_.rank != 0) return;
    if (!losses_.empty()) send_losses({{"type", "losses"}});
    Json message = {{"type", "epoch"},
                    {"epoch", report.epoch},
                    {"step", report.step},
                    {"first_step", report.first_step},
                    {"complete", report.complete},
                    {"lr", report.lr},
                    {"seconds", report.seconds},
                    {"samples", report.samples},
                    {"train", metrics_of(report.train)}};
    if (report.test) message["test"] = metrics_of(*report.test);
    if (report.grad_norm) message["grad_norm"] = *report.grad_norm;
    if (report.skipped > 0) message["skipped_steps"] = report.skipped;
    if (!job_.checkpoints.empty()) {
      segment_->set_phase(job_.rank, Phases::kWriting);
      point(FaultPoints::kCheckpoint, report.step);
      write_checkpoints(report);
    }
    send_status(message);
  }

  // `best` follows the test accuracy (but not where perplexity was asked for), or the test loss, or
  // without a test set the training loss.
  void write_checkpoints(const EpochReport& report) {
    const Sums& judged = report.test ? *report.test : report.train;
    const std::vector<std::string>& asked = config_.metrics;
    const bool by_loss = std::find(asked.begin(), asked.end(), "perplexity") != asked.end();
    const double score =
        report.test && judged.has_accuracy() && !by_loss ? judged.accuracy() : -judged.loss();
    const bool is_best = report.complete && score > best_;
    if (is_best) best_ = score;
    // A failure makes a group go back: what was saved after that stays until there is more.
    if (saved_step_ < 0 && job_.generation > 0) saved_step_ = saved_step(job_.checkpoints);
    if (saved_step_ >= report.step) return;
    Json state = {{"config", job_.config},
                  {"step", report.step},
                  {"epoch", report.epoch + (report.complete ? 1 : 0)},
                  {"samples", train_.epoch_samples()},
                  {"data_set", DataShape::of(train_).json()}};
    if (std::isfinite(best_)) state["best"] = best_;
    if (job_.n_ranks > 1 && micro_shards() == 0) {
      state["shard_weights"] = report.shares;
      state["shard_devices"] = group_devices();
    }
    state["train"] = metrics_of(report.train);
    if (report.test) state["test"] = scalar_metrics(metrics_of(*report.test));
    if (config_.schedule.schedule.type == Schedule::Type::kPlateau) {
      state["plateau"] = to_json(report.plateau);
      if (!report.complete) state["epoch_sums"] = report.whole.values;
    }
    const Checkpoint checkpoint = take_checkpoint(*replica_, std::move(state));
    const std::filesystem::path directory(job_.checkpoints);
    write_checkpoint(directory / "last", checkpoint);
    if (is_best) write_checkpoint(directory / "best", checkpoint);
    saved_step_ = report.step;
  }

  void say_scaled_rate() const {
    if (job_.rank != 0 || job_.generation > 0 || !config_.schedule.scale_lr_by_devices) return;
    send_status({{"type", "note"},
                 {"text", str_cat("learning rate ", config_.optimizer.lr, " x ", job_.n_places,
                                  " workers = ", learning_rate_of(config_, job_.n_places),
                                  " (schedule.scale_lr_by_devices)")}});
  }

  void ready() {
    send_status({{"type", "ready"},
                 {"launches_per_step", replica_->launches_per_step(trainer_->first_pass_rows())},
                 {"workspace_bytes", replica_->train_graph().workspace_bytes()},
                 {"parameters", graphs_.num_parameters()},
                 {"num_outputs", graphs_.num_outputs},
                 {"first_step", trainer_->steps_done()},
                 {"kernels", kernels_.chosen()},
                 {"programs_built", device_.programs().num_built()},
                 {"programs_from_disk", device_.programs().num_from_disk()}});
  }

  void evaluate() {
    const Dataset& data = test_ ? *test_ : train_;
    const std::optional<Sums> sums = trainer_->evaluate(data);
    NETCL_CHECK(sums, ErrorCode::kInterrupted, "interrupted");
    Json message = {{"type", "done"}, {"stopped", "finished"}, {"metrics", metrics_of(*sums)}};
    message["samples"] = data.num_samples();
    send_status(message);
  }

  void finish_trace() {
    if (!trace_) return;
    trace_->finish(queue_->cl());
    send_trace(WorkerFds::kStatus, *trace_);
  }

  Json account_json(const ShardAccount& account) const {
    const double sum = account.sum_samples_per_second(), all = account.all_samples_per_second;
    Json out = {{"sum_samples_per_second", sum},
                {"all_samples_per_second", all},
                {"percent_of_sum", sum > 0 ? 100 * all / sum : 0},
                {"exposed_communication_percent", 100 * account.exposed},
                {"left_out", Json::array()},
                {"workers", Json::array()}};
    for (size_t r = 0; r < account.ranks.size(); ++r) {
      const ShardAccount::Rank& rank = account.ranks[r];
      if (rank.left_out) out["left_out"].push_back(rank.name);
      out["workers"].push_back({{"rank", r},
                                {"device", rank.name},
                                {"solo_samples_per_second", rank.solo_samples_per_second},
                                {"percent_without", 100 * rank.change_without}});
    }
    return out;
  }

  static Json account_message(const RankAccount& account, const char* stopped) {
    return {{"type", "done"},
            {"stopped", stopped},
            {"samples", account.samples},
            {"share", account.share},
            {"seconds", account.seconds},
            {"busy_seconds", account.busy_seconds}};
  }

  void done(StopReason reason) {
    Json message =
        account_message(trainer_->account(), reason == StopReason::kFinished   ? "finished"
                                             : reason == StopReason::kMaxSteps ? "max_steps"
                                                                               : "interrupted");
    if (job_.rank == 0 && job_.n_places > 1)
      message["account"] = account_json(trainer_->shard_account());
    send_status(message);
  }

  Job job_;
  FaultPlan faults_{job_.place, environment::faults()};
  std::optional<Snapshots> snapshots_;
  std::optional<FdChannel> channel_;
  std::shared_ptr<Segment> segment_;
  TrainConfig config_;
  Dataset train_;
  std::optional<Dataset> test_;
  std::optional<Trace> trace_;
  Device device_;
  std::shared_ptr<Queue> queue_;
  PluginHost plugins_;
  KernelChoice kernels_;
  LayerSet layers_;
  const Optimizer optimizer_;
  const StepGraphs graphs_;
  std::optional<RankGroup> group_;
  std::optional<CollectiveTrace> collective_trace_;
  cl::Buffer send_, recv_;
  std::optional<Replica> replica_;
  std::optional<Rhythm> checks_;
  std::optional<StateKeeper> keeper_;
  std::optional<Trainer> trainer_;
  std::optional<Checkpoint> start_;
  std::optional<TrainerProgress> progress_;  // of the snapshot that this generation goes on from
  int64_t first_step_ = 0;
  int64_t saved_step_ = -1;  // -1: not known
  Plateau plateau_;
  Sums epoch_so_far_;
  double best_ = -std::numeric_limits<double>::infinity();
  double last_message_ = 0;
  std::vector<double> losses_, step_seconds_;  // up to last_step_, not sent yet
  int64_t last_step_ = 0, step_begun_ = 0;
  bool is_set_up_ = false;
  std::vector<uint32_t> next_places_;  // of the group that the ranks want to go on with, or empty
  RankAccount account_;                // of this worker, when the group was formed anew
  std::vector<RankLimits> limits_;     // of all ranks, where the shares are free
};

void start_faults(const Job& job) {
  FaultPlan faults(job.place, environment::faults());
  std::optional<Snapshots> snapshots;
  if (job.regroups) {
    snapshots.emplace(WorkerFds::kSnapshots);
    faults.set_once([&](uint32_t index) { return snapshots->mark_once(index); });
  }
  faults.at(FaultPoints::kStart);
}

}  // namespace

int worker_main() {
  Job job;
  std::shared_ptr<Segment> segment;
  std::optional<Worker> worker;
  const std::optional<Problem> problem = problem_of([&] {
    job = job_from_json(Json::parse(text_from_fd(WorkerFds::kJob)));
    die_with_parent(static_cast<pid_t>(job.parent));
    keep_to_own_cores(job);
    segment = Segment::attach(UniqueFd(WorkerFds::kSegment));
    segment->set_identity(job.rank, ::getpid(), job.label + " " + job.device.name);
    start_faults(job);
    if (job.mode == "bench_allreduce") return bench_allreduce(job, segment);
    worker.emplace(job, segment);
  });
  if (!problem) return worker ? worker->run() : 0;
  say_problem("error", segment.get(), job, *problem);
  return exit_code(problem->code);
}

}  // namespace netcl::app
