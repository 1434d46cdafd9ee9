// What a rank says: its results, its account, its checkpoints.
#include <algorithm>
#include <cmath>
#include <filesystem>

#include "apps/netcl_app/explain.h"
#include "apps/netcl_app/metric_values.h"
#include "apps/netcl_app/model_setup.h"
#include "apps/netcl_app/rank_worker.h"
#include "apps/netcl_app/trace_file.h"
#include "apps/netcl_app/tuned_setup.h"

namespace netcl::app {

Json RankWorker::group_devices() const {
  Json out = Json::array();
  for (size_t r = 0; r < job_.labels.size(); ++r)
    out.push_back(job_.labels[r] + " " + job_.devices[r].name);
  return out;
}

Json RankWorker::metrics_of(const Sums& sums) const {
  return metric_values(sums, config_.metrics, train_.class_names());
}

void RankWorker::send_losses(Json message) {
  message["step"] = last_step_;
  message["losses"] = losses_;
  message["seconds"] = step_seconds_;
  losses_.clear();
  step_seconds_.clear();
  say_(message);
}

void RankWorker::end_of_epoch(const EpochReport& report) {
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
  say_(message);
}

void RankWorker::write_checkpoints(const EpochReport& report) {
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

void RankWorker::say_scaled_rate() const {
  if (job_.rank != 0 || job_.generation > 0 || !config_.schedule.scale_lr_by_devices) return;
  say_({{"type", "note"},
        {"text", str_cat("learning rate ", config_.optimizer.lr, " x ", job_.n_places,
                         " workers = ", learning_rate_of(config_, job_.n_places),
                         " (schedule.scale_lr_by_devices)")}});
}

void RankWorker::ready() {
  say_({{"type", "ready"},
        {"launches_per_step", replica_->launches_per_step(trainer_->first_pass_rows())},
        {"workspace_bytes", replica_->train_graph().workspace_bytes()},
        {"parameters", graphs_.num_parameters()},
        {"num_outputs", graphs_.num_outputs},
        {"first_step", trainer_->steps_done()},
        {"kernels", kernels_.chosen()},
        {"questions", questions_json(kernels_)},
        {"programs_built", device_->programs().num_built()},
        {"programs_from_disk", device_->programs().num_from_disk()}});
}

void RankWorker::evaluate() {
  const Dataset& data = test_ ? *test_ : train_;
  const std::optional<Sums> sums = trainer_->evaluate(data);
  NETCL_CHECK(sums, ErrorCode::kInterrupted, "interrupted");
  Json message = {{"type", "done"}, {"stopped", "finished"}, {"metrics", metrics_of(*sums)}};
  message["samples"] = data.num_samples();
  say_(message);
}

void RankWorker::explain() {
  Json message = {{"type", "done"}, {"stopped", "finished"}};
  message["plan"] = plan_json(*replica_, trainer_->first_pass_rows());
  say_(message);
}

void RankWorker::finish_trace() {
  if (!trace_) return;
  trace_->finish(queue_->cl());
  send_trace(say_, *trace_);
}

Json RankWorker::account_json(const ShardAccount& account) const {
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

Json RankWorker::account_message(const RankAccount& account) {
  return {{"samples", account.samples},
          {"share", account.share},
          {"seconds", account.seconds},
          {"busy_seconds", account.busy_seconds}};
}

void RankWorker::done(StopReason reason) {
  Json message = account_message(trainer_->account());
  message["type"] = "done";
  message["stopped"] = reason == StopReason::kFinished   ? "finished"
                       : reason == StopReason::kMaxSteps ? "max_steps"
                                                         : "interrupted";
  if (job_.rank == 0 && job_.n_places > 1)
    message["account"] = account_json(trainer_->shard_account());
  say_(message);
}

}  // namespace netcl::app
