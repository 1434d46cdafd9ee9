#include "apps/netcl_app/worker.h"

#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <limits>

#include "apps/netcl_app/bench_allreduce_worker.h"
#include "apps/netcl_app/checkpoint.h"
#include "apps/netcl_app/fault_plan.h"
#include "apps/netcl_app/init_from.h"
#include "apps/netcl_app/job.h"
#include "apps/netcl_app/metric_values.h"
#include "apps/netcl_app/model_setup.h"
#include "apps/netcl_app/open_device.h"
#include "apps/netcl_app/rank_group.h"
#include "apps/netcl_app/trace_file.h"
#include "core/base/environment.h"
#include "core/distributed/collective_trace.h"
#include "core/distributed/device_limits.h"
#include "core/distributed/process.h"
#include "core/distributed/trainer.h"
#include "core/runtime/kernel_choice.h"
#include "core/runtime/layer_set.h"
#include "core/runtime/plugin_host.h"

namespace netcl::app {

namespace {

constexpr double kStepMessageSeconds = 0.1;

double now_seconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

void send(const Json& message) { write_line(WorkerFds::kStatus, message.dump()); }

// Workers that share a CPU device each keep to their own cores: [i C / n, (i + 1) C / n), at least
// one. Before the first OpenCL call, since drivers start their threads then.
void keep_to_own_cores(const Job& job) {
  if (job.share_count < 2 || job.device.type != "cpu") return;
  cpu_set_t all, mine;
  CPU_ZERO(&mine);
  if (::sched_getaffinity(0, sizeof(all), &all) != 0) return;
  std::vector<int> cores;
  for (int i = 0; i < CPU_SETSIZE; ++i) {
    if (CPU_ISSET(i, &all)) cores.push_back(i);
  }
  const int count = static_cast<int>(cores.size());
  const int first = job.share_index * count / job.share_count;
  const int last = std::max(first + 1, (job.share_index + 1) * count / job.share_count);
  for (int i = first; i < last; ++i) CPU_SET(cores[static_cast<size_t>(i % count)], &mine);
  ::sched_setaffinity(0, sizeof(mine), &mine);
}

Json plateau_json(const Plateau& plateau) {
  Json out = {{"factor", plateau.factor},
              {"bad_epochs", plateau.bad_epochs},
              {"cooldown_left", plateau.cooldown_left}};
  if (std::isfinite(plateau.best)) out["best"] = plateau.best;
  return out;
}

Plateau plateau_from(const Json& json) {
  Plateau out;
  out.factor = json.value("factor", out.factor);
  out.best = json.value("best", out.best);
  out.bad_epochs = json.value("bad_epochs", out.bad_epochs);
  out.cooldown_left = json.value("cooldown_left", out.cooldown_left);
  return out;
}

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
        device_(find_device(job_.device), environment::cache_dir(), logger()),
        queue_(Queue::create(device_, trace_ ? &*trace_ : nullptr)),
        plugins_(job_.plugins, {device_.info()}, logger()),
        kernels_(plugins_, job_.pins),
        layers_(plugins_),
        optimizer_(optimizer_of(config_)),
        graphs_(
            build_step_graphs(step_spec_of(config_, optimizer_, DataShape::of(train_)), layers_)) {
    device_.programs().set_progress([this] { segment_->tick(job_.rank); });
    if (job_.has_test) test_.emplace(Dataset::attach(WorkerFds::kTest));
  }

  void run() {
    segment_->set_phase(job_.rank, Phases::kSetUp);
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
                     config_.accumulate > 1, share());
    Trainer trainer(trainer_options(), *replica_, group(), first_plan(), train_,
                    test_ ? &*test_ : nullptr, hooks());
    trainer.prepare();
    start_values();
    if (job_.mode == "eval") return evaluate(trainer);
    ready(trainer);
    say_scaled_rate();
    const StopReason reason = trainer.run();
    if (group_) group().communicator->barrier("the end of training");
    finish_trace();
    done(trainer, reason);
  }

 private:
  Logger logger() const {
    return Logger([](LogLevel level, const std::string& text) {
      if (level >= LogLevel::kWarning) send({{"type", "note"}, {"text", text}});
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

  // This rank's share of a sharded update.
  std::optional<FloatRange> share() const {
    if (job_.update != "sharded" || job_.n_ranks == 1 || job_.mode != "train") return std::nullopt;
    return block_shares(graphs_.parameters.num_floats(), job_.n_ranks)[job_.rank];
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
    spec.sum_bytes =
        std::max({statistics * sizeof(float), graphs_.largest_all_reduce(), size_t{4}});
    group_.emplace(segment_, plugins_.load(job_.transport), queue_, spec);
    const netcl_bucket& bucket = group_->new_bucket(floats * sizeof(float));
    if (ordered) return;
    send_ = cl::Buffer(static_cast<cl_mem>(bucket.send), true);
    recv_ = cl::Buffer(static_cast<cl_mem>(bucket.recv), true);
    if (trace_) collective_trace_.emplace(*group().communicator, *trace_);
  }

  Group group() { return group_ ? group_->links() : Group{}; }

  void read_start() {
    if (job_.resume.empty()) return;
    start_ = read_checkpoint(job_.resume);
    if (job_.mode == "train") first_step_ = start_->state.at("step").get<int64_t>();
    best_ = start_->state.value("best", best_);
    if (job_.mode == "train") read_progress(start_->state);
  }

  void read_progress(const Json& state) {
    if (const auto it = state.find("plateau"); it != state.end()) plateau_ = plateau_from(*it);
    if (const auto it = state.find("epoch_sums"); it != state.end())
      epoch_so_far_.values = it->get<std::map<std::string, double>>();
  }

  void start_values() {
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
    out.schedule = schedule_of(config_, job_.n_ranks);
    out.lr = learning_rate_of(config_, job_.n_ranks);
    out.accumulate = config_.accumulate;
    out.micro_shards = micro_shards();
    if (job_.bucket_bytes > 0) {
      out.buckets.first_bytes = std::min(out.buckets.first_bytes, job_.bucket_bytes);
      out.buckets.other_bytes = job_.bucket_bytes;
    }
    out.plateau = plateau_;
    out.epoch_so_far = epoch_so_far_;
    out.batch_size = config_.batch_size;
    out.epochs = config_.epochs;
    out.max_steps = job_.max_steps;
    out.first_step = first_step_;
    out.seed = config_.seed;
    out.rank_names = job_.labels;
    out.rank_limits = limits_;
    return out;
  }

  TrainerHooks hooks() {
    TrainerHooks out;
    out.step = [this](const StepReport& report) {
      segment_->set_step(job_.rank, report.step);
      if (job_.rank != 0) return;
      losses_.push_back(report.loss);
      step_seconds_.push_back(report.seconds);
      if (now_seconds() - last_message_ < kStepMessageSeconds) return;
      last_message_ = now_seconds();
      send({{"type", "step"},
            {"epoch", report.epoch},
            {"step", report.step},
            {"loss", report.loss}});
    };
    out.epoch = [this](const EpochReport& report) { end_of_epoch(report); };
    out.note = [](const std::string& text) { send({{"type", "note"}, {"text", text}}); };
    out.stop_requested = [this] { return segment_->stop_requested(); };
    if (!faults_.empty()) {
      out.point = [this](const char* name, int64_t step, int64_t rows) {
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

  void end_of_epoch(const EpochReport& report) {
    if (job_.rank != 0) return;
    Json message = {{"type", "epoch"},
                    {"epoch", report.epoch},
                    {"step", report.step},
                    {"complete", report.complete},
                    {"lr", report.lr},
                    {"seconds", report.seconds},
                    {"samples", report.samples},
                    {"step_losses", losses_},
                    {"step_seconds", step_seconds_},
                    {"train", metrics_of(report.train)}};
    if (report.test) message["test"] = metrics_of(*report.test);
    if (report.grad_norm) message["grad_norm"] = *report.grad_norm;
    if (report.skipped > 0) message["skipped_steps"] = report.skipped;
    losses_.clear();
    step_seconds_.clear();
    if (!job_.checkpoints.empty()) {
      segment_->set_phase(job_.rank, Phases::kWriting);
      write_checkpoints(report);
    }
    send(message);
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
      state["plateau"] = plateau_json(report.plateau);
      if (!report.complete) state["epoch_sums"] = report.whole.values;
    }
    const Checkpoint checkpoint = take_checkpoint(*replica_, std::move(state));
    const std::filesystem::path directory(job_.checkpoints);
    write_checkpoint(directory / "last", checkpoint);
    if (is_best) write_checkpoint(directory / "best", checkpoint);
  }

  void say_scaled_rate() const {
    if (job_.rank != 0 || !config_.schedule.scale_lr_by_devices) return;
    send({{"type", "note"},
          {"text", str_cat("learning rate ", config_.optimizer.lr, " x ", job_.n_ranks,
                           " workers = ", learning_rate_of(config_, job_.n_ranks),
                           " (schedule.scale_lr_by_devices)")}});
  }

  void ready(const Trainer& trainer) {
    send({{"type", "ready"},
          {"launches_per_step", replica_->launches_per_step(trainer.first_pass_rows())},
          {"workspace_bytes", replica_->train_graph().workspace_bytes()},
          {"parameters", graphs_.num_parameters()},
          {"num_outputs", graphs_.num_outputs},
          {"first_step", trainer.steps_done()},
          {"kernels", kernels_.chosen()},
          {"programs_built", device_.programs().num_built()},
          {"programs_from_disk", device_.programs().num_from_disk()}});
  }

  void evaluate(Trainer& trainer) {
    const Dataset& data = test_ ? *test_ : train_;
    const std::optional<Sums> sums = trainer.evaluate(data);
    NETCL_CHECK(sums, ErrorCode::kInterrupted, "interrupted");
    Json message = {{"type", "done"}, {"stopped", "finished"}, {"metrics", metrics_of(*sums)}};
    message["samples"] = data.num_samples();
    send(message);
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
      if (rank.left_out) out["left_out"].push_back(job_.labels[r]);
      out["workers"].push_back({{"rank", r},
                                {"device", job_.labels[r]},
                                {"solo_samples_per_second", rank.solo_samples_per_second},
                                {"percent_without", 100 * rank.change_without}});
    }
    return out;
  }

  void done(const Trainer& trainer, StopReason reason) {
    const RankAccount account = trainer.account();
    Json message = {{"type", "done"},
                    {"stopped", reason == StopReason::kFinished   ? "finished"
                                : reason == StopReason::kMaxSteps ? "max_steps"
                                                                  : "interrupted"},
                    {"samples", account.samples},
                    {"share", account.share},
                    {"seconds", account.seconds},
                    {"busy_seconds", account.busy_seconds},
                    {"steps", trainer.steps_done()}};
    if (job_.rank == 0 && job_.n_ranks > 1)
      message["account"] = account_json(trainer.shard_account());
    send(message);
  }

  const Job job_;
  const FaultPlan faults_{job_.rank, environment::faults()};
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
  std::optional<Checkpoint> start_;
  int64_t first_step_ = 0;
  Plateau plateau_;
  Sums epoch_so_far_;
  double best_ = -std::numeric_limits<double>::infinity();
  double last_message_ = 0;
  std::vector<double> losses_, step_seconds_;
  std::vector<RankLimits> limits_;  // of all ranks, where the shares are free
};

int report_error(Segment* segment, const Job& job, ErrorCode code, const std::string& text) {
  const std::string who = str_cat("rank ", job.rank, " (", job.label, ")");
  // The first to fail says why; ranks that fail because of it have nothing to add.
  const bool first = segment == nullptr || segment->abort(who + ": " + text);
  send({{"type", "error"}, {"code", exit_code(code)}, {"message", text}, {"first", first}});
  return exit_code(code);
}

}  // namespace

int worker_main() {
  Job job;
  std::shared_ptr<Segment> segment;
  try {
    job = job_from_json(Json::parse(text_from_fd(WorkerFds::kJob)));
    die_with_parent(static_cast<pid_t>(job.parent));
    keep_to_own_cores(job);
    segment = Segment::attach(UniqueFd(WorkerFds::kSegment));
    segment->set_identity(job.rank, ::getpid(), job.label + " " + job.device.name);
    if (job.mode == "bench_allreduce") {
      bench_allreduce(job, segment);
      return 0;
    }
    Worker worker(job, segment);
    worker.run();
    return 0;
  } catch (const Error& e) {
    return report_error(segment.get(), job, e.code(), e.message());
  } catch (const cl::Error& e) {
    return report_error(segment.get(), job, ErrorCode::kDevice,
                        str_cat(e.what(), ": ", cl_error_name(e.err())));
  } catch (const std::exception& e) {
    return report_error(segment.get(), job, ErrorCode::kInternal, e.what());
  }
}

}  // namespace netcl::app
