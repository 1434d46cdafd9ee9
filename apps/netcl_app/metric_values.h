// What the sums of an evaluation mean: the metrics that people ask for, as JSON and as a table.
// Threads: values.
#ifndef NETCL_APPS_NETCL_APP_METRIC_VALUES_H_
#define NETCL_APPS_NETCL_APP_METRIC_VALUES_H_

#include <string>
#include <vector>

#include "core/base/json_doc.h"
#include "core/distributed/trainer.h"

namespace netcl::app {

// {"loss", "accuracy", "top5", "perplexity", "mse", "mae", "confusion": [[..]], "per_class":
// [{"class", "precision", "recall", "f1", "support"}], "macro_precision", "macro_recall",
// "macro_f1"}, as far as `metrics` asks for them and the sums hold them. Rows of the confusion
// matrix are the labels' classes, columns the guesses. A class without guesses has precision 0;
// macro averages run over the classes that occur as label or guess.
Json metric_values(const Sums& sums, const std::vector<std::string>& metrics,
                   const std::vector<std::string>& class_names);

// Without matrices and tables: what fits a line of a log.
Json scalar_metrics(const Json& metrics);

// Lines for people: the scalars, then the classes, and the matrix if it is small.
std::string metric_table(const Json& metrics);

}  // namespace netcl::app

#endif  // NETCL_APPS_NETCL_APP_METRIC_VALUES_H_
