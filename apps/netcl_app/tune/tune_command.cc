// netcl-app tune: searches the variants of kernel sets and their settings for the fastest right one
// and keeps it as a tuned record.
#include <signal.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <iomanip>
#include <iostream>
#include <sstream>

#include "apps/netcl_app/commands.h"
#include "apps/netcl_app/op_arguments.h"
#include "apps/netcl_app/probe.h"
#include "apps/netcl_app/tune/questions.h"
#include "apps/netcl_app/tune/tune_check_command.h"
#include "apps/netcl_app/tune/tuner.h"
#include "core/base/json_doc.h"
#include "core/base/text.h"
#include "core/distributed/selectors.h"

namespace netcl::app {
namespace fs = std::filesystem;

namespace {

struct TuneOptions : OpOptions {
  std::string from_run, budget = "120s", candidate_timeout = "30s", out;
  bool again = false;
};

volatile sig_atomic_t g_stop = 0;  // set by a signal, the only thing that a handler may do

void stop(int) { g_stop = 1; }

void take_stop_signals() {
  struct sigaction action {};
  action.sa_handler = stop;
  for (const int number : {SIGINT, SIGTERM, SIGHUP}) {
    struct sigaction old {};
    if (::sigaction(number, nullptr, &old) == 0 && old.sa_handler == SIG_IGN) continue;  // nohup
    ::sigaction(number, &action, nullptr);
  }
}

std::string plain(const std::string& text) {
  std::string out = to_lower(text);
  for (char& c : out) {
    const bool keep = (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_' || c == '.';
    if (!keep) c = '_';
  }
  return out;
}

// Where records go. Errors: kUsage without a home, kCheckpoint if nothing can be written there.
fs::path record_file(const TuneOptions& options, const DeviceInfo& device) {
  fs::path out = options.out;
  if (out.empty()) {
    const fs::path directory = user_tuned_dir();
    NETCL_CHECK(!directory.empty(), ErrorCode::kUsage,
                "there is no home directory for tuned records; name a file with --out");
    const std::string arch = device.arch.empty() ? "" : "-" + plain(device.arch);
    out = directory / (plain(device.vendor) + arch + ".jsonl");
  }
  out = fs::absolute(out);
  std::error_code ignored;
  fs::create_directories(out.parent_path(), ignored);
  NETCL_CHECK(std::ofstream(out, std::ios::app).good(), ErrorCode::kCheckpoint, out.string(),
              ": tuned records cannot be written there; name another file with --out");
  return out;
}

class Tuning {
 public:
  explicit Tuning(const TuneOptions& options)
      : options_(options),
        questions_(find_questions()),
        budget_(seconds_from(options.budget, "--budget")),
        log_(stderr_logger(options.quiet)),
        devices_(probe_devices().require_devices()),
        device_(resolve_selectors(options.device, devices_)[0].device),
        plugins_(options.plugin_options(), devices_, log_),
        choice_(plugins_, {}),
        out_(record_file(options, device_)) {
    for (const Manifest* manifest : plugins_.manifests("kernels")) sets_[manifest->id] = manifest;
    for (const std::string& id : options.kernels) {
      std::vector<std::string> ids;
      for (const auto& [known, manifest] : sets_) ids.push_back(known);
      NETCL_CHECK(sets_.count(id) > 0, ErrorCode::kPlugin, "--kernels ", id,
                  ": no such kernel set serves", suggest(id, ids));
    }
  }

  int run() {
    take_stop_signals();
    std::vector<WeightedQuestion> open;
    for (const WeightedQuestion& question : questions_) {
      if (const auto known = from_record(question.question)) {
        results_.push_back(*known);
      } else {
        open.push_back(question);
      }
    }
    if (!open.empty()) search(open);
    print();
    const auto count = [&](auto&& holds) {
      return std::count_if(results_.begin(), results_.end(), holds);
    };
    if (g_stop != 0) {
      const auto kept = count([](const TuneResult& r) { return !r.record.empty(); });
      std::cerr << "interrupted; there are records of " << kept << " of " << questions_.size()
                << " questions\n";
      return exit_code(ErrorCode::kInterrupted);
    }
    const bool wrong = count([](const TuneResult& r) { return r.default_fails; }) > 0;
    return wrong ? exit_code(ErrorCode::kPlugin) : 0;
  }

 private:
  std::vector<WeightedQuestion> find_questions() const {
    NETCL_CHECK(options_.op.empty() != options_.from_run.empty(), ErrorCode::kUsage,
                "tune: expected --op with --shape, or --from-run with a run directory");
    if (!options_.from_run.empty()) return questions_of_run(options_.from_run);
    const OpArguments op = table_op_arguments(options_);
    return {{tuned_question(op.op.name, op.in, op.attrs), 1}};
  }

  void say(const std::string& text) const {
    if (!options_.quiet) std::cerr << text << std::endl;
  }

  // A record that was made before: of this content, measured against every kernel set there is.
  std::optional<TuneResult> from_record(const TunedQuestion& question) {
    if (options_.again) return std::nullopt;
    if (!store_) {
      std::vector<TunedFile> files = find_tuned_files(plugins_);
      std::error_code error;
      const bool listed = std::any_of(files.begin(), files.end(),
                                      [&](const TunedFile& f) { return f.path == out_; });
      if (!listed) files.push_back({out_, fs::file_size(out_, error), ""});
      store_.emplace(std::move(files), log_);
    }
    const std::vector<std::string> sets = choice_.sets(device_, OpenQuestion(question).get());
    for (const TunedMatch& match : match_records(store_->near(question), question,
                                                 tuned_device(device_), tuned_software(device_))) {
      const TunedRecord& record = match.stored->record;
      if (match.level != TunedLevel::kExact) break;
      const auto set = sets_.find(record.plugin);
      if (set == sets_.end()) continue;
      if (contents_.of(*set->second, find_op(question.op)).kernels != record.content) continue;
      if (!measured_against(record, sets)) continue;
      TuneResult out;
      out.question = question;
      out.usual = {record.default_plugin, record.default_variant, record.default_us};
      out.best = {record.plugin, record.variant, record.median_us};
      out.from_record = true;
      out.record = match.stored->place;
      say(str_cat(question.op, " ", question.shapes(), ": tuned before (", out.record,
                  "); --again searches once more"));
      return out;
    }
    return std::nullopt;
  }

  bool measured_against(const TunedRecord& record, const std::vector<std::string>& sets) const {
    const auto has = [](const std::vector<std::string>& list, const std::string& id) {
      return std::find(list.begin(), list.end(), id) != list.end();
    };
    return std::all_of(sets.begin(), sets.end(), [&](const std::string& id) {
      const bool wanted = options_.kernels.empty() || has(options_.kernels, id);
      return !wanted || has(record.kernel_sets, id);
    });
  }

  void search(const std::vector<WeightedQuestion>& open) {
    TunerOptions options;
    options.device = device_;
    options.only = options_.kernels;
    options.out = out_;
    options.again = options_.again;
    options.timeout_seconds = seconds_from(options_.candidate_timeout, "--candidate-timeout");
    options.plugins = options_.plugin_options();
    options.say = [this](const std::string& text) { say(text); };
    options.stop = [] { return g_stop != 0; };
    options.content = [this](const std::string& plugin, const OpRow& op) -> const PluginContent& {
      return contents_.of(*sets_.at(plugin), op);
    };
    Tuner tuner(std::move(options), log_);
    double left = budget_, weight = 0;
    for (const WeightedQuestion& question : open) weight += question.weight;
    for (size_t i = 0; i < open.size() && g_stop == 0; ++i) {
      // By weight, but nobody gets less than half of an even share.
      const double even = left / static_cast<double>(open.size() - i);
      const double share = std::max(left * open[i].weight / weight, even / 2);
      results_.push_back(tuner.tune(open[i].question, std::min(left, share)));
      left = std::max(0.1, left - results_.back().seconds);
      weight -= open[i].weight;
    }
  }

  static Json document_of(const TuneResult& r) {
    Json shapes = Json::array();
    for (const TensorDesc& desc : r.question.in) shapes.push_back(desc.shape.dims());
    const auto timed = [](const TunedTime& t) {
      return Json{{"plugin", t.plugin}, {"variant", t.variant}, {"time_us", t.us}};
    };
    Json out = {{"op", r.question.op},
                {"shape", shapes},
                {"dtype", r.question.in.empty() ? "" : dtype_name(r.question.in[0].dtype)},
                {"attributes", Json::parse(r.question.attributes)},
                {"default", timed(r.usual)},
                {"best", timed(r.best)},
                {"candidates", r.candidates},
                {"tried", r.tried},
                {"failed", r.failed},
                {"complete", r.complete || r.from_record},
                {"seconds", r.seconds},
                {"from_record", r.from_record},
                {"record", r.record.empty() ? Json() : Json(r.record)}};
    out["best"]["speedup"] = r.best.us > 0 ? Json(r.usual.us / r.best.us) : Json();
    return out;
  }

  static std::string line_of(const TuneResult& r) {
    std::ostringstream out;
    out << r.question.op << " " << r.question.shapes() << ": " << r.best.plugin << "/"
        << r.best.variant << std::fixed << std::setprecision(1) << "  " << r.best.us << " us, "
        << std::setprecision(2) << r.usual.us / r.best.us << "x the default " << r.usual.plugin
        << "/" << r.usual.variant;
    if (r.from_record) {
      out << " (by a record)";
    } else {
      out << " (" << r.tried << " of " << r.candidates << " candidates tried, " << r.failed
          << " failed, "
          << (r.complete    ? ""
              : g_stop != 0 ? "interrupted, "
                            : "budget spent, ")
          << std::setprecision(1) << r.seconds << " s)";
    }
    return out.str();
  }

  void print() const {
    Json document = {{"device", device_.selector},
                     {"device_name", device_.name},
                     {"results", Json::array()},
                     {"skipped", Json::array()},
                     {"stopped", g_stop != 0 ? "interrupted" : "finished"}};
    for (const TuneResult& r : results_) {
      if (!r.skipped.empty()) {
        document["skipped"].push_back(
            {{"op", r.question.op}, {"shape", r.question.shapes()}, {"why", r.skipped}});
      } else if (r.best.us > 0) {
        document["results"].push_back(document_of(r));
      }
      if (options_.json) continue;
      if (!r.skipped.empty()) {
        std::cout << r.question.op << " " << r.question.shapes() << ": " << r.skipped << "\n";
      } else if (r.best.us > 0) {
        std::cout << line_of(r) << "\n";
      }
    }
    if (options_.json) std::cout << document.dump(2) << "\n";
  }

  const TuneOptions& options_;
  const std::vector<WeightedQuestion> questions_;
  const double budget_;
  const Logger log_;
  const std::vector<DeviceInfo> devices_;
  const DeviceInfo device_;
  PluginHost plugins_;
  const KernelChoice choice_;
  const fs::path out_;
  std::map<std::string, const Manifest*> sets_;  // by id
  PluginContents contents_;
  std::optional<TunedStore> store_;
  std::vector<TuneResult> results_;
};

}  // namespace

void add_tune_command(CLI::App& app, Run& run) {
  auto options = std::make_shared<TuneOptions>();
  CLI::App* command = app.add_subcommand(
      "tune", "Search for the fastest right kernels and keep them as tuned records");
  command->footer(
      "Example: netcl-app tune --op matmul --shape 512,512,512 --device cpu:0 --budget 60s");
  add_question_options(*command, *options);
  command->add_option("--from-run", options->from_run,
                      "Tune everything that a training run computes: its run directory");
  command->add_option("--budget", options->budget, "At most this long in all: 120s, 2m, 1h")
      ->capture_default_str();
  command
      ->add_option("--candidate-timeout", options->candidate_timeout,
                   "A candidate that takes longer is ended and not tried again")
      ->capture_default_str();
  command->add_option("--kernels", options->kernels, "Search these kernel sets alone")
      ->delimiter(',');
  command->add_option("--out", options->out,
                      "File for the records (default: in the user's data directory)");
  command->add_flag("--again", options->again,
                    "Search even if there is a record, also what failed before");
  add_common(*command, *options);
  add_tune_check(*command, run);
  command->callback([options, command, &run] {
    if (command->get_subcommands().empty()) run = [options] { return Tuning(*options).run(); };
  });
}

}  // namespace netcl::app
