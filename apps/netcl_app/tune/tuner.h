// Tuner: finds the fastest right variant for one question after the other, and keeps what it finds.
//
// Every candidate is compiled, checked and timed in a child process. What a candidate came to is
// kept at once (core/runtime/tuned_verdicts.h), so that one that takes the child down, or the
// machine, is not tried again. When this process is ended, the candidate is not to blame.
// Threads: one.
#ifndef NETCL_APPS_NETCL_APP_TUNE_TUNER_H_
#define NETCL_APPS_NETCL_APP_TUNE_TUNER_H_

#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "apps/netcl_app/tune/child_process.h"
#include "apps/netcl_app/tune/search.h"
#include "core/runtime/tuned_kernels.h"

namespace netcl::app {

struct TunerOptions {
  DeviceInfo device;
  std::vector<std::string> only;  // kernel sets to search; none: all
  std::filesystem::path out;      // where records go
  bool again = false;             // also what ended its process before
  double timeout_seconds = 30;    // for one candidate
  PluginOptions plugins;
  std::function<void(const std::string&)> say;  // lines for people
  std::function<bool()> stop;                   // the user wants no more
  // Of a kernel set's kernels for an op.
  std::function<const PluginContent&(const std::string& plugin, const OpRow& op)> content;
};

struct TunedTime {
  std::string plugin, variant;
  double us = 0;
};

struct TuneResult {
  TunedQuestion question;
  TunedTime usual, best;
  size_t candidates = 0, tried = 0, failed = 0;  // failed: wrong, or took the process down
  double seconds = 0;
  bool complete = false;  // all that was to be tried was
  bool from_record = false;
  bool default_fails = false;  // its check; nothing was searched
  std::string record;          // the file, "" if there is none
  std::string skipped;         // why nothing was searched, or ""
};

class Tuner {
 public:
  Tuner(TunerOptions options, Logger log);

  // Searches for at most `budget_seconds`. What was found by then, or until the user stops it, is
  // kept. Errors: kDevice, kCheckpoint if the record cannot be written.
  TuneResult tune(const TunedQuestion& question, double budget_seconds);

 private:
  struct Timed {
    Candidate candidate;
    double us = 0, against_us = 0, spread = 0;
  };
  std::string key(const std::string& plugin, const std::string& variant,
                  const TunedQuestion& question) const;
  Json attempt(const Candidate& candidate, const Json& against, int samples) const;
  // Times the candidate beside the best; nullopt if it does not serve, is wrong or fails.
  std::optional<Timed> time(const Candidate& candidate, const std::optional<Timed>& best,
                            TuneResult* result);
  void skip(const Candidate& candidate, const std::string& why, TuneResult* result);
  // True if all was tried before the deadline.
  bool search(Search* search, double deadline, std::optional<Timed>* best, TuneResult* result);
  // The best beside the default once more; where it is no faster, the default is the best.
  void measure_again(Timed* best, TuneResult* result);
  // Writes the record.
  void finish(Timed best, const Json& described, TuneResult* result);

  const TunerOptions options_;
  TunedVerdicts verdicts_;
  TuneChild child_;
  Json context_;  // the question, for a child that has to begin anew
};

}  // namespace netcl::app

#endif  // NETCL_APPS_NETCL_APP_TUNE_TUNER_H_
