// The data section of a training configuration, as plain values.
#ifndef NETCL_APPS_NETCL_APP_FORMATS_DATA_CONFIG_H_
#define NETCL_APPS_NETCL_APP_FORMATS_DATA_CONFIG_H_

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace netcl::app {

enum class DataFormat { kCsv, kTsv, kIdx, kNpy, kNpz, kCifar, kText, kSynthetic };
enum class HeaderMode { kAuto, kYes, kNo };

// A column of a table: its name in the header, or without one its number (-1 is the last).
struct ColumnRef {
  std::string name;
  int64_t index = -1;
};

// format text: samples are windows of `context` units, labelled with the unit after each.
struct TextConfig {
  bool bytes = false;  // a unit is a byte; otherwise a character (a code point)
  int64_t context = 128;
  int64_t stride = 0;             // units between two windows; 0: the context
  int64_t samples_per_epoch = 0;  // random windows an epoch; 0: every window once
};

// format synthetic: samples made from a seed.
struct SyntheticConfig {
  bool noise = false;  // labels that say nothing of the features; otherwise clouds, one a class
  int64_t samples = 1024;
  int64_t classes = 10;
  std::vector<int64_t> input;  // shape of one sample
  uint64_t seed = 0;
};

struct DataConfig {
  DataFormat format = DataFormat::kCsv;
  // Absolute paths; "" where not given. Names that end in .gz are unpacked while reading.
  std::string train;
  std::string test;
  std::string train_labels;             // idx, npy
  std::string test_labels;              // idx, npy
  std::vector<std::string> more_train;  // cifar: files after `train`

  // csv and tsv: the label's column, counted from 0, or from the end when negative (-1 = last);
  // `label_name` (a name in the header) comes first when it is not empty.
  int64_t label = -1;
  std::string label_name;
  HeaderMode header = HeaderMode::kAuto;
  char delimiter = ',';
  // Regression: these columns are the target, in this order; the label's is a feature then.
  std::vector<ColumnRef> targets;

  // npz: names of the arrays; the test ones in `test`, or in `train` where there is no such file.
  std::string features = "x", labels = "y", test_features, test_array_labels;
  bool tokens = false;         // npy, npz: whole numbers are tokens, not quantities
  bool regression = false;     // npy, npz: whole numbers as labels are targets, not classes
  int64_t cifar_classes = 10;  // 10, 100, or 20 for the coarse labels of CIFAR-100
  TextConfig text;
  SyntheticConfig synthetic;

  // A feature enters the model as raw * scale.
  double scale = 1.0;
  // Without a test file: the parts of the samples that become {train, test}.
  std::optional<std::pair<double, double>> split;
  // Seed of the split (the run's seed).
  uint64_t seed = 0;
};

}  // namespace netcl::app

#endif  // NETCL_APPS_NETCL_APP_FORMATS_DATA_CONFIG_H_
