// Data sets in shared memory: values, sharing with another process, and what is refused.
#include "core/data/dataset.h"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/data/data_files.h"

namespace netcl {
namespace {

const std::vector<uint8_t> kPixels = {0, 16, 255, 4, 5, 6};
const std::vector<int32_t> kLabels = {2, 0, 1};

DatasetSpec spec_of_bytes() {
  DatasetSpec spec;
  spec.dtype = DType::kU8;
  spec.sample_shape = Shape{1, 2};
  spec.num_samples = 3;
  spec.features = kPixels.data();
  spec.labels = kLabels.data();
  spec.class_names = {"a", "", "c"};
  spec.scale = 0.0625f;
  spec.offset = -1.0f;
  return spec;
}

void expect_sample_set(const Dataset& data) {
  EXPECT_EQ(data.dtype(), DType::kU8);
  EXPECT_EQ(data.sample_shape(), (Shape{1, 2}));
  EXPECT_EQ(data.num_samples(), 3);
  EXPECT_EQ(data.num_classes(), 3);
  EXPECT_EQ(data.class_names(), (std::vector<std::string>{"a", "", "c"}));
  float x[2];
  data.read_sample(0, x);
  EXPECT_EQ(x[0], -1.0f);
  EXPECT_EQ(x[1], 0.0f);
  EXPECT_EQ(data.labels()[0], 2);
}

TEST(Dataset, CreateAndAttachShowTheSame) {
  Dataset data = Dataset::create(spec_of_bytes());
  expect_sample_set(data);
  const Dataset attached = Dataset::attach(data.fd());
  expect_sample_set(attached);
  const Dataset moved = std::move(data);
  expect_sample_set(moved);
}

TEST(Dataset, AnotherProcessMapsIt) {
  const Dataset data = Dataset::create(spec_of_bytes());
  const pid_t child = ::fork();
  if (child == 0) {
    const Dataset attached = Dataset::attach(data.fd());
    ::_exit(attached.num_samples() == 3 && attached.labels()[2] == 1 ? 0 : 1);
  }
  int status = -1;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
}

TEST(Dataset, IsSealedAgainstWriting) {
  const Dataset data = Dataset::create(spec_of_bytes());
  EXPECT_LT(::write(data.fd(), "x", 1), 0);
  EXPECT_NE(::ftruncate(data.fd(), 0), 0);
}

TEST(Dataset, SubsetKeepsOrderClassesAndScale) {
  const Dataset part = Dataset::create(spec_of_bytes()).subset({2, 0});
  EXPECT_EQ(part.num_samples(), 2);
  EXPECT_EQ(part.num_classes(), 3);
  EXPECT_EQ(part.labels()[0], 1);
  float x[2];
  part.read_sample(0, x);
  EXPECT_EQ(x[1], 6.0f * 0.0625f - 1.0f);
}

TEST(Dataset, FloatsPassThrough) {
  const std::vector<float> values = {1.5f, -2.25f};
  const std::vector<int32_t> labels = {0, 0};
  DatasetSpec spec;
  spec.sample_shape = Shape{1};
  spec.num_samples = 2;
  spec.features = values.data();
  spec.labels = labels.data();
  spec.num_classes = 5;
  const Dataset data = Dataset::create(spec);
  float x = 0.0f;
  data.read_sample(1, &x);
  EXPECT_EQ(x, -2.25f);
  EXPECT_EQ(data.num_classes(), 5);
}

TEST(Dataset, RefusesBadSpecsAndDescriptors) {
  DatasetSpec empty = spec_of_bytes();
  empty.num_samples = 0;
  EXPECT_EQ(message_of([&] { Dataset::create(empty); }),
            "the data set has no samples; expected at least one");
  const std::vector<int32_t> negative = {0, -3, 1};
  DatasetSpec labels = spec_of_bytes();
  labels.labels = negative.data();
  EXPECT_EQ(message_of([&] { Dataset::create(labels); }),
            "sample 1 has label -3; expected a class number of at least 0");
  DatasetSpec flat = spec_of_bytes();
  flat.sample_shape = Shape{0};
  EXPECT_NE(message_of([&] { Dataset::create(flat); }).find("is empty"), std::string::npos);
  DatasetSpec huge = spec_of_bytes();
  huge.sample_shape = Shape{int64_t{1} << 40, int64_t{1} << 40};
  EXPECT_NE(message_of([&] { Dataset::create(huge); }).find("too large"), std::string::npos);

  EXPECT_NE(message_of([] { Dataset::attach(-1); }).find("holds no data set"), std::string::npos);
  const UniqueFd small(::memfd_create("test", MFD_CLOEXEC));
  EXPECT_NE(message_of([&] { Dataset::attach(small.get()); }).find("too small"), std::string::npos);
  ASSERT_EQ(::ftruncate(small.get(), 8192), 0);
  EXPECT_NE(message_of([&] { Dataset::attach(small.get()); }).find("holds no data set"),
            std::string::npos);
}

TEST(Dataset, TargetsAndSequences) {
  DatasetSpec spec;
  const std::vector<int32_t> tokens = {0, 1, 2, 3, 4, 5};
  const std::vector<int32_t> next = {1, 2, 3, 4, 5, kIgnoredLabel};
  spec.dtype = DType::kI32;
  spec.sample_shape = Shape{3};
  spec.num_samples = 2;
  spec.features = tokens.data();
  spec.labels = next.data();
  spec.label_shape = Shape{3};
  const Dataset text = Dataset::create(spec);
  EXPECT_EQ(text.input_dtype(), DType::kI32);
  EXPECT_EQ(text.num_classes(), 6);
  int32_t x[3], y[3];
  text.read_input(1, x);
  text.read_label(1, y);
  EXPECT_EQ(x[2], 5);
  EXPECT_EQ(y[1], 5);
  EXPECT_EQ(y[2], kIgnoredLabel);

  const std::vector<float> features = {1, 2}, targets = {0.5f, -1, 2, 3};
  DatasetSpec numbers;
  numbers.sample_shape = Shape{1};
  numbers.num_samples = 2;
  numbers.features = features.data();
  numbers.targets = targets.data();
  numbers.label_shape = Shape{2};
  const Dataset data = Dataset::create(numbers);
  EXPECT_EQ(data.label_dtype(), DType::kF32);
  EXPECT_EQ(data.labels(), nullptr);
  EXPECT_EQ(data.targets()[3], 3.0f);
  const Dataset part = Dataset::attach(data.fd()).subset({1});
  EXPECT_EQ(part.targets()[0], 2.0f);
  const std::vector<float> bad = {0, 0, 0, 1.0f / 0.0f};
  numbers.targets = bad.data();
  EXPECT_EQ(message_of([&] { Dataset::create(numbers); }),
            "sample 1 has the target inf (value 1); expected a finite number");
}

TEST(Dataset, WindowsOfAText) {
  const std::vector<int32_t> tokens = {0, 1, 2, 3, 4, 5, 6};
  TextSpec spec;
  spec.tokens = tokens.data();
  spec.num_tokens = 7;
  spec.num_classes = 7;
  spec.class_names = {std::string(1, '\0'), "b", "c", "d", "e", "f", "g"};
  spec.context = 4;
  spec.stride = 4;
  const Dataset whole = Dataset::create_text(spec);
  EXPECT_EQ(whole.num_samples(), 2);
  EXPECT_EQ(whole.epoch_samples(), 2);
  EXPECT_EQ(whole.class_names(), spec.class_names);
  int32_t x[4], y[4];
  whole.read_input(1, x);
  whole.read_label(1, y);
  EXPECT_EQ(std::vector<int32_t>(x, x + 4), (std::vector<int32_t>{4, 5, 6, 0}));
  EXPECT_EQ(std::vector<int32_t>(y, y + 4),
            (std::vector<int32_t>{5, 6, kIgnoredLabel, kIgnoredLabel}));
  spec.stride = 1;
  spec.draws = 100;
  const Dataset drawn = Dataset::attach(Dataset::create_text(spec).fd());
  EXPECT_EQ(drawn.num_samples(), 3);
  EXPECT_EQ(drawn.epoch_samples(), 100);
  spec.num_tokens = 4;
  EXPECT_NE(message_of([&] { Dataset::create_text(spec); }).find("at least 5"), std::string::npos);
  spec.num_tokens = 7;
  spec.num_classes = 6;
  EXPECT_NE(message_of([&] { Dataset::create_text(spec); }).find("token 6"), std::string::npos);
}

}  // namespace
}  // namespace netcl
