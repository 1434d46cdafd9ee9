// The questions that a search answers: one from the command line, or those of a training run.
#ifndef NETCL_APPS_NETCL_APP_TUNE_QUESTIONS_H_
#define NETCL_APPS_NETCL_APP_TUNE_QUESTIONS_H_

#include <string>
#include <vector>

#include "core/ops/op.h"
#include "core/runtime/tuned_record.h"

namespace netcl::app {

struct WeightedQuestion {
  TunedQuestion question;
  double weight = 1;  // about how much of the time it takes
};

// What a run asked (environment.json of a run directory, or that file), the weightiest first.
// Errors: kUsage for a run that has none.
std::vector<WeightedQuestion> questions_of_run(const std::string& run);

// A question with its row and complete attributes. Errors: kUsage.
struct OpenQuestion {
  explicit OpenQuestion(const TunedQuestion& question);
  KernelQuestion get() const { return {row, in, out, attrs}; }

  const OpRow& row;
  std::vector<TensorDesc> in, out;
  Attrs attrs;
};

// "120s", "2m", "1h" or "120". Units: seconds. Errors: kUsage.
double seconds_from(const std::string& text, const std::string& option);

}  // namespace netcl::app

#endif  // NETCL_APPS_NETCL_APP_TUNE_QUESTIONS_H_
