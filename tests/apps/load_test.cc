// Loading: the real digits, splits, test files, and the checks against a model.
#include "apps/netcl_app/formats/load.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "tests/data/data_files.h"

namespace netcl::app {
namespace {

DataConfig digits(uint64_t seed) {
  DataConfig config;
  config.train = "apps/examples/data/digits.csv.gz";
  config.scale = 0.0625;
  config.split = {0.8, 0.2};
  config.seed = seed;
  return config;
}

TEST(Load, DigitsSplitBySeed) {
  const LoadedData data = load_data(digits(1));
  ASSERT_TRUE(data.test.has_value());
  EXPECT_EQ(data.train.num_samples(), 1438);
  EXPECT_EQ(data.test->num_samples(), 359);
  EXPECT_EQ(data.train.num_classes(), 10);
  EXPECT_EQ(data.train.sample_shape(), (Shape{64}));
  EXPECT_EQ(data.train.dtype(), DType::kU8);
  std::vector<float> x(64);
  data.train.read_sample(0, x.data());
  EXPECT_LE(*std::max_element(x.begin(), x.end()), 1.0f);

  std::set<int64_t> rows(data.train_source.rows.begin(), data.train_source.rows.end());
  rows.insert(data.test_source.rows.begin(), data.test_source.rows.end());
  EXPECT_EQ(rows.size(), 1797u);
  EXPECT_EQ(load_data(digits(1)).test_source.rows, data.test_source.rows);
  EXPECT_NE(load_data(digits(2)).test_source.rows, data.test_source.rows);
  check_labels(data.train, 10, data.train_source);
  check_input(data.train, Shape{8, 8}, data.train_source);
}

TEST(Load, WithoutSplitEverythingTrains) {
  DataConfig config = digits(1);
  config.split.reset();
  const LoadedData data = load_data(config);
  EXPECT_EQ(data.train.num_samples(), 1797);
  EXPECT_FALSE(data.test.has_value());
  config.split = {0.5, 0.0};
  EXPECT_FALSE(load_data(config).test.has_value());
}

TEST(Load, TestFileSharesClasses) {
  const TempFile train("train.csv", "1,2,cat\n3,4,dog\n");
  const TempFile test("test.csv", "5,6,dog\n");
  DataConfig config;
  config.train = train.path();
  config.test = test.path();
  const LoadedData data = load_data(config);
  EXPECT_EQ(data.test->labels()[0], 1);
  EXPECT_EQ(data.test->num_classes(), 2);
  EXPECT_EQ(data.train.class_names(), (std::vector<std::string>{"cat", "dog"}));

  const TempFile wide("wide.csv", "5,6,7,dog\n");
  config.test = wide.path();
  EXPECT_EQ(message_of([&] { load_data(config); }),
            wide.path() + ": a test sample has shape [3], a training sample (" + train.path() +
                ") [2]; expected the same");
}

TEST(Load, OneSampleCannotBeSplit) {
  const TempFile one("one.csv", "1,2,0\n");
  DataConfig config;
  config.train = one.path();
  EXPECT_EQ(load_data(config).train.num_samples(), 1);
  config.split = {0.8, 0.2};
  EXPECT_EQ(message_of([&] { load_data(config); }),
            one.path() +
                ": 1 sample split into 0.8 and 0.2 leaves 1 for training and 0 for the "
                "test; add samples or change data.split");
}

TEST(Load, LabelsAndInputsAreCheckedAgainstTheModel) {
  const TempFile file("labels.csv", "x,y,label\n1,2,1\n3,4,3\n\n5,6,2\n");
  DataConfig config;
  config.train = file.path();
  const LoadedData data = load_data(config);
  check_labels(data.train, 4, data.train_source);
  EXPECT_EQ(message_of([&] { check_labels(data.train, 3, data.train_source); }),
            file.path() +
                ":3: labels reach 3 but the model has 3 outputs, for labels 0 to 2: they "
                "look 1-based; subtract 1 from every label");
  EXPECT_EQ(
      message_of([&] { check_labels(data.train, 2); }),
      "sample 1: labels reach 3 but the model has 2 outputs, for labels 0 to 1; give the last "
      "layer 4 outputs or check data.label");
  EXPECT_EQ(message_of([&] { check_input(data.train, Shape{3}, data.train_source); }),
            file.path() + ": a sample has shape [2] (2 values) but model.input [3] takes 3");
}

TEST(Load, MissingFile) {
  DataConfig config;
  config.train = "no_such_dir/a.csv";
  EXPECT_EQ(message_of([&] { load_data(config); }),
            "no_such_dir/a.csv: cannot be opened: No such file or directory");
}

}  // namespace
}  // namespace netcl::app
