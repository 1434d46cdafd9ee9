#include "apps/netcl_app/data_checks.h"

namespace netcl::app {

void check_data(const TrainConfig& config, const LoadedData& data, const StepGraphs& graphs) {
  const LossSpec& loss = config.loss.spec;
  const auto check = [&](const Dataset& set, const DataSource& source) {
    check_labels(set, graphs.num_outputs, source, loss.ignore_index);
    check_tokens(set, graphs.vocabulary, source);
    check_targets(set, loss.type, loss.log_target, source);
  };
  check(data.train, data.train_source);
  if (data.test) check(*data.test, data.test_source);
}

}  // namespace netcl::app
