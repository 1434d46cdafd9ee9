// The data section of a training configuration, as plain values.
#ifndef NETCL_APPS_NETCL_APP_FORMATS_DATA_CONFIG_H_
#define NETCL_APPS_NETCL_APP_FORMATS_DATA_CONFIG_H_

#include <cstdint>
#include <optional>
#include <string>
#include <utility>

namespace netcl::app {

enum class DataFormat { kCsv, kTsv, kIdx };
enum class HeaderMode { kAuto, kYes, kNo };

struct DataConfig {
  DataFormat format = DataFormat::kCsv;
  // Absolute paths; "" where not given. Names that end in .gz are unpacked while reading.
  std::string train;
  std::string test;
  std::string train_labels;  // idx
  std::string test_labels;   // idx

  // csv and tsv: the label's column, counted from 0, or from the end when negative (-1 = last);
  // `label_name` (a name in the header) comes first when it is not empty.
  int64_t label = -1;
  std::string label_name;
  HeaderMode header = HeaderMode::kAuto;
  char delimiter = ',';

  // A feature enters the model as raw * scale.
  double scale = 1.0;
  // Without a test file: the parts of the samples that become {train, test}.
  std::optional<std::pair<double, double>> split;
  // Seed of the split (the run's seed).
  uint64_t seed = 0;
};

}  // namespace netcl::app

#endif  // NETCL_APPS_NETCL_APP_FORMATS_DATA_CONFIG_H_
