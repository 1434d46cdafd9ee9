// CIFAR, text and synthetic data, and tables with targets.
#include <gtest/gtest.h>

#include <cmath>

#include "apps/netcl_app/formats/cifar.h"
#include "apps/netcl_app/formats/csv.h"
#include "apps/netcl_app/formats/load.h"
#include "apps/netcl_app/formats/synthetic.h"
#include "apps/netcl_app/formats/text.h"
#include "tests/data/data_files.h"

namespace netcl::app {
namespace {

TEST(Cifar, RecordsOfBothKinds) {
  std::string ten = std::string(1, '\x07') + std::string(3072, '\x01') + std::string(1, '\x02') +
                    std::string(3072, '\xff');
  Samples out;
  parse_cifar(ten, "batch.bin", 10, out);
  EXPECT_EQ(out.labels, (std::vector<int32_t>{7, 2}));
  EXPECT_EQ(out.u8.size(), 2 * 3072u);
  EXPECT_EQ(out.u8[3072], 255);
  const std::string hundred = std::string("\x05\x63", 2) + std::string(3072, 'x');
  Samples fine, coarse;
  parse_cifar(hundred, "train.bin", 100, fine);
  parse_cifar(hundred, "train.bin", 20, coarse);
  EXPECT_EQ(fine.labels, (std::vector<int32_t>{99}));
  EXPECT_EQ(coarse.labels, (std::vector<int32_t>{5}));

  EXPECT_EQ(message_of([&] { parse_cifar("", "b", 10, out); }),
            "b: the file is empty; expected CIFAR records");
  EXPECT_NE(message_of([&] { parse_cifar(ten.substr(0, 6000), "b", 10, out); }).find("truncated"),
            std::string::npos);
  ten[3073] = 10;
  EXPECT_EQ(message_of([&] { parse_cifar(ten, "b", 10, out); }),
            "b: sample 1 (from 0) has label 10; expected less than 10 (is this CIFAR in its binary "
            "form?)");
}

TEST(Text, CharactersAndVocabulary) {
  const std::string text =
      "b\xc3\xa4"
      "a\xe2\x82\xac\xf0\x9f\x98\x80\n";
  const std::vector<uint32_t> characters = characters_of(text, "t");
  EXPECT_EQ(characters, (std::vector<uint32_t>{'b', 0xe4, 'a', 0x20ac, 0x1f600, '\n'}));
  const Vocabulary v = Vocabulary::of(characters);
  EXPECT_EQ(v.size(), 6);
  EXPECT_EQ(v.names().front(), "\n");
  const std::vector<int32_t> tokens = v.tokens_of(text, "t");
  EXPECT_EQ(tokens, (std::vector<int32_t>{2, 3, 1, 4, 5, 0}));
  std::string back;
  for (const int32_t token : tokens) back += v.text_of(token);
  EXPECT_EQ(back, text);
  EXPECT_EQ(Vocabulary(v.names(), "c").tokens_of(text, "t"), tokens);
  EXPECT_EQ(message_of([&] { v.tokens_of("ab\naq", "new.txt"); }),
            "new.txt:2:2: the character \"q\" is not among the 6 of the vocabulary that the model "
            "was trained with");
  for (const char* bad : {"ok\n\xff", "\xc3", "\xe0\x80\x80", "\xed\xa0\x80", "\xf4\x90\x80\x80"})
    EXPECT_NE(message_of([&] { characters_of(bad, "t"); }).find("no UTF-8"), std::string::npos);
  EXPECT_EQ(Vocabulary().tokens_of("\xff\x01", "t"), (std::vector<int32_t>{255, 1}));
}

DataConfig text_config(const std::string& path) {
  DataConfig config;
  config.format = DataFormat::kText;
  config.train = path;
  config.text.context = 4;
  config.split = {0.5, 0.5};
  return config;
}

TEST(Text, TheLastPartIsHeldOutAndEveryCharacterCountsOnce) {
  const TempFile file("a.txt", "abcdefghijklmnopqrstuvw");  // 23: 12 for training, 11 held out
  const LoadedData data = load_data(text_config(file.path()));
  EXPECT_EQ(data.train.num_samples(), 3);  // 11 labels in windows of 4
  EXPECT_EQ(data.train.class_names().size(), 23u);
  ASSERT_TRUE(data.test.has_value());
  EXPECT_EQ(data.test->text_tokens(), 11);
  std::vector<int> seen(23, 0);
  int64_t ignored = 0;
  for (int64_t i = 0; i < data.test->num_samples(); ++i) {
    int32_t x[4], y[4];
    data.test->read_input(i, x);
    data.test->read_label(i, y);
    for (int k = 0; k < 4; ++k) {
      if (y[k] == kIgnoredLabel) {
        ++ignored;
      } else {
        ++seen[static_cast<size_t>(y[k])];
        EXPECT_EQ(y[k], x[k] + 1);  // the alphabet: the label follows
      }
    }
  }
  EXPECT_EQ(ignored, 2);
  for (size_t c = 0; c < 23; ++c) EXPECT_EQ(seen[c], c >= 13 ? 1 : 0) << c;
}

TEST(Text, RandomWindowsAreWhole) {
  const TempFile file("b.txt", "abcdefghijklmnopqrstuvw");
  DataConfig config = text_config(file.path());
  config.text.samples_per_epoch = 100;
  const LoadedData data = load_data(config);
  EXPECT_EQ(data.train.epoch_samples(), 100);
  EXPECT_EQ(data.train.num_samples(), 12 - 4);
  int32_t y[4];
  data.train.read_label(7, y);
  EXPECT_EQ(y[3], 11);
  config.text.context = 12;
  EXPECT_NE(message_of([&] { load_data(config); }).find("data.context 12 needs at least 13"),
            std::string::npos);
  const TempFile empty("c.txt", "");
  EXPECT_NE(message_of([&] { load_data(text_config(empty.path())); }).find("empty"),
            std::string::npos);
}

TEST(Text, TokensMustFitTheModel) {
  const TempFile file("d.txt", "abcabcabcabc");
  const LoadedData data = load_data(text_config(file.path()));
  check_labels(data.train, 3, data.train_source);
  EXPECT_EQ(message_of([&] { check_labels(data.train, 2, data.train_source); }),
            file.path() +
                ": token 2 is number 2 of a vocabulary of 3, but the model has 2 outputs; give the "
                "last layer 3 outputs");
  EXPECT_EQ(message_of([&] { check_tokens(data.train, 2, data.train_source); }),
            file.path() +
                ": position 2: the token 2 is outside of the embedding, which has 2 rows, for "
                "tokens 0 to 1; make the embedding larger");
}

TEST(Synthetic, TheSeedMakesTheSamples) {
  SyntheticConfig config;
  config.samples = 60;
  config.classes = 3;
  config.input = {2, 5};
  const Samples a = make_synthetic(config), b = make_synthetic(config);
  EXPECT_EQ(a.f32, b.f32);
  EXPECT_EQ(a.sample_shape, (Shape{2, 5}));
  EXPECT_EQ(a.labels[5], 2);
  config.seed = 1;
  EXPECT_NE(make_synthetic(config).f32, a.f32);
  config.noise = true;
  double sum = 0, squares = 0;
  const Samples noise = make_synthetic(config);
  for (const float v : noise.f32) {
    sum += static_cast<double>(v);
    squares += static_cast<double>(v) * static_cast<double>(v);
  }
  const double n = static_cast<double>(noise.f32.size());
  EXPECT_NEAR(sum / n, 0, 0.1);
  EXPECT_NEAR(squares / n, 0.25, 0.05);
}

TEST(Csv, Targets) {
  DataConfig config;
  config.targets = {{"price", -1}, {"", 0}};
  const Samples s = parse_csv("a,b,price\n1,2,3.5\n4,5,-6\n", config, "t.csv");
  EXPECT_EQ(s.sample_shape, Shape{1});
  EXPECT_EQ(s.u8, (std::vector<uint8_t>{2, 5}));
  EXPECT_EQ(s.targets, (std::vector<float>{3.5f, 1, -6, 4}));
  EXPECT_EQ(s.label_shape, Shape{2});
  EXPECT_EQ(s.count(), 2);
  config.targets = {{"", -1}};
  const Samples one = parse_csv("1,2,3.5\n4,5,-6\n", config, "t.csv");
  EXPECT_EQ(one.targets, (std::vector<float>{3.5f, -6}));
  EXPECT_EQ(one.label_shape, Shape{});
  EXPECT_EQ(message_of([&] { parse_csv("1,2,x3\n4,5,nan\n", config, "t.csv"); }),
            "t.csv:2: column 3 (x3): the value is missing (\"nan\"); expected a number");
  config.targets = {{"", 0}, {"", 1}, {"", 2}};
  EXPECT_EQ(message_of([&] { parse_csv("1,2,3\n", config, "t.csv"); }),
            "t.csv:1: data.target takes all 3 columns; expected at least one feature");
  config.targets = {{"prise", -1}};
  EXPECT_NE(message_of([&] { parse_csv("a,price\n1,2\n", config, "t.csv"); }).find("price"),
            std::string::npos);
}

}  // namespace
}  // namespace netcl::app
