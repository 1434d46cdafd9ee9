// Reading tuned records: what is one, what is none and why, and files of both.
#include "core/runtime/tuned_record.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <random>

#include "core/base/error.h"
#include "core/runtime/tuned_store.h"
#include "tests/runtime/tuned_records.h"

namespace netcl {
namespace testing {
namespace {

TEST(TunedRecord, ALineGivesTheRecordBack) {
  const TunedRecord record = matmul_record({512, 256, 128}, "fast", "tile(M=4)", 12.5);
  const TunedLine read = read_tuned_line(tuned_line(record));
  ASSERT_TRUE(read.record) << read.why;
  EXPECT_EQ(tuned_line(*read.record), tuned_line(record));
  EXPECT_EQ(read.record->question.text(), record.question.text());
  EXPECT_EQ(read.record->question.shapes(), "512x256 256x128");
  EXPECT_TRUE(read.record->device.same_model(record.device));
  EXPECT_EQ(read.record->kernel_sets, record.kernel_sets);
  EXPECT_DOUBLE_EQ(read.record->speedup(), record.default_us / 12.5);
}

// A part of a good line, what stands there instead, and the words that must be said.
struct Damage {
  const char* name;
  std::string part, instead, words;
};

class DamagedLine : public ::testing::TestWithParam<Damage> {};

TEST_P(DamagedLine, SaysWhy) {
  std::string line = tuned_line(matmul_record({8, 8, 8}, "fast", "tile", 12.5));
  const Damage& damage = GetParam();
  const size_t at = line.find(damage.part);
  ASSERT_NE(at, std::string::npos) << damage.part << " in " << line;
  line.replace(at, damage.part.size(), damage.instead);
  const TunedLine read = read_tuned_line(line);
  EXPECT_FALSE(read.record);
  EXPECT_NE(read.why.find(damage.words), std::string::npos) << read.why;
}

INSTANTIATE_TEST_SUITE_P(
    All, DamagedLine,
    ::testing::Values(
        Damage{"CutOff", "\"date\"", "", "not JSON"},
        Damage{"NoObject", "{\"op\"", "[{\"op\"", "not JSON"},
        Damage{"NoOp", "\"op\":\"matmul\"", "\"up\":\"matmul\"", "\"op\" is missing"},
        Damage{"OpNoText", "\"op\":\"matmul\"", "\"op\":3", "\"op\" must be text"},
        Damage{"UnknownType", "\"f32\"", "\"f33\"", "f33"},
        Damage{"FewerTypes", "[\"f32\",\"f32\"]", "[\"f32\"]", "1 \"dtypes\" for 2 \"shapes\""},
        Damage{"NegativeSize", "[8,8]", "[8,-8]", "\"shapes\" must be an integer from 0"},
        Damage{"HugeSize", "[8,8]", "[1099511627776,1099511627776]", "elements"},
        Damage{"ManyDims", "[8,8]", "[1,1,1,1,1,1,1,1,1]", "dimensions"},
        Damage{"ZeroTime", "\"median_us\":12.5", "\"median_us\":0", "no time that was measured"},
        Damage{"NegativeTime", "\"median_us\":12.5", "\"median_us\":-3", "no time"},
        Damage{"HugeTime", "\"median_us\":12.5", "\"median_us\":1e300", "no time"},
        Damage{"InfiniteTime", "\"median_us\":12.5", "\"median_us\":1e999", "not JSON"},
        Damage{"NoNumber", "\"median_us\":12.5", "\"median_us\":NaN", "not JSON"},
        Damage{"TimeAsText", "\"median_us\":12.5", "\"median_us\":\"fast\"", "must be a number"},
        Damage{"NoVariant", "\"variant\":\"tile\"", "\"variant\":\"\"", "\"variant\" has 0"},
        Damage{"NestedAttribute", "\"attributes\":{}", "\"attributes\":{\"a\":{\"b\":1}}",
               "number"},
        Damage{"TinyTime", "\"median_us\":12.5", "\"median_us\":1e-300",
               "no time that was measured"},
        Damage{"TinyDefault", "\"median_us\":20.0", "\"median_us\":1e-5", "no time"},
        Damage{"UnknownOp", "\"op\":\"matmul\"", "\"op\":\"matmull\"",
               "there is no op \"matmull\"; did you mean \"matmul\"?"},
        Damage{"TwiceAKey", "\"variant\":\"tile\"", "\"variant\":\"tile\",\"variant\":\"vec\"",
               "\"variant\" is given twice"},
        Damage{"TwiceAnInnerKey", "\"vendor\":\"acme\"", "\"vendor\":\"a\",\"vendor\":\"acme\"",
               "\"vendor\" is given twice"},
        Damage{"OneInput", "[\"f32\",\"f32\"],\"shapes\":[[8,8],[8,8]]",
               "[\"f32\"],\"shapes\":[[8,8]]", "matmul has 2 to "},
        Damage{"OtherShapes", "[[8,8],[8,8]]", "[[8,8],[9,8]]", "matmul: "},
        Damage{"OtherTypes", "[\"f32\",\"f32\"]", "[\"f32\",\"i32\"]", "matmul: "},
        Damage{"OtherAttributes", "\"attributes\":{}", "\"attributes\":{\"alfa\":1}", "alfa"},
        Damage{"HugeOutput", "[[8,8],[8,8]]", "[[1099511627776,1],[1,1099511627776]]", "output 0"},
        Damage{"MoreThanTheDevice", "\"max_alloc_bytes\":0", "\"max_alloc_bytes\":255",
               "has 256 bytes; the record's device allocates at most 255"},
        Damage{"NoCheck", "\"check\"", "\"chuck\"", "\"check\" is missing"}),
    [](const auto& one) { return one.param.name; });

TEST(TunedRecord, DeepAndLongLinesAreRefusedAtOnce) {
  EXPECT_NE(read_tuned_line(std::string(60000, '[')).why.find("nested"), std::string::npos);
  EXPECT_NE(read_tuned_line(std::string(70000, ' ')).why.find("bytes"), std::string::npos);
  EXPECT_FALSE(read_tuned_line("").record);
}

TEST(TunedRecord, NoBytesMakeItFail) {
  const std::string good = tuned_line(matmul_record({8, 8, 8}, "fast", "tile", 12.5));
  std::mt19937 bits(20240229);
  for (int round = 0; round < 3000; ++round) {
    std::string line = good;
    for (int i = 0; i < 4; ++i) {
      const size_t at = bits() % line.size();
      if (bits() % 3 == 0) line.erase(at, bits() % 9);
      if (line.empty()) break;
      line[at % line.size()] = static_cast<char>(bits());
    }
    const TunedLine read = read_tuned_line(line);
    EXPECT_NE(read.record.has_value(), !read.why.empty());
    if (read.record) {
      EXPECT_TRUE(read_tuned_line(tuned_line(*read.record)).record);
    }
  }
}

TEST(TunedQuestionTest, AttributesThatMeanTheSameAreEqual) {
  const Attrs one = {{"alpha", 1.0}, {"axis", int64_t{2}}},
              two = {{"axis", int64_t{2}}, {"alpha", int64_t{1}}};
  EXPECT_EQ(tuned_question("op", {}, one).text(), tuned_question("op", {}, two).text());
  const TunedQuestion question =
      tuned_question("op", {{DType::kF32, Shape{2, 3}}},
                     {{"axes", std::vector<int64_t>{0, 1}}, {"eps", 1e-5}, {"mode", "tanh"}});
  const TunedQuestion back = question_from_json(question_json(question));
  EXPECT_EQ(back.text(), question.text());
  const Attrs attrs = attrs_of(back);
  EXPECT_EQ(attrs.integers("axes"), (std::vector<int64_t>{0, 1}));
  EXPECT_DOUBLE_EQ(attrs.number("eps"), 1e-5);
  EXPECT_EQ(attrs.text("mode"), "tanh");
}

class TunedStoreTest : public ::testing::Test {
 protected:
  // A file of these lines; `plugin`: whose.
  TunedFile file(const std::string& name, const std::string& text, const std::string& plugin = "") {
    const std::filesystem::path path = std::filesystem::path(::testing::TempDir()) / name;
    std::ofstream(path, std::ios::binary) << text;
    return {path, text.size(), plugin};
  }
  TunedStore store(std::vector<TunedFile> files) {
    return TunedStore(std::move(files),
                      Logger([this](LogLevel, const std::string& text) { said_.push_back(text); }));
  }
  static std::vector<const StoredRecord*> near(TunedStore& s,
                                               const std::vector<int64_t>& mkn = {8, 8, 8}) {
    return s.near(matmul_record(mkn, "", "", 1).question);
  }
  static std::string line(double us, const std::string& plugin = "fast") {
    return tuned_line(matmul_record({8, 8, 8}, plugin, "tile", us)) + "\n";
  }
  std::vector<std::string> said_;
};

TEST_F(TunedStoreTest, ADamagedLineIsNamedAndTheRestIsUsed) {
  const std::string other = tuned_line(matmul_record({9, 9, 9}, "fast", "tile", 7)) + "\n";
  const TunedFile f =
      file("damaged.jsonl", "nothing\n\n" + line(5) + "{\"op\":\"matmul\",\"dtypes\":3}\n" + other);
  TunedStore s = store({f});
  ASSERT_EQ(near(s).size(), 2u);
  EXPECT_EQ(near(s)[0]->place, f.path.string() + ":3");
  EXPECT_EQ(near(s)[1]->place, f.path.string() + ":5");
  ASSERT_EQ(said_.size(), 2u);
  EXPECT_EQ(said_[0].rfind(f.path.string() + ":1: not JSON", 0), 0u) << said_[0];
  EXPECT_EQ(said_[1].rfind(f.path.string() + ":4: \"dtypes\"", 0), 0u) << said_[1];
  TunedQuestion other_op = matmul_record({8, 8, 8}, "", "", 1).question;
  other_op.op = "softmax";
  EXPECT_TRUE(s.near(other_op).empty());
}

TEST_F(TunedStoreTest, WhatCanNeverBeAskedIsNamedAtOnce) {
  const auto changed = [](const std::string& part, const std::string& instead) {
    std::string out = line(5);
    return out.replace(out.find(part), part.size(), instead);
  };
  TunedStore s =
      store({file("never.jsonl", changed("\"matmul\"", "\"matmull\"") +
                                     changed("[\"f32\",\"f32\"]", "[\"f32\"]") +
                                     changed("[[8,8],[8,8]]", "[[8,8]]") +
                                     changed("[[8,8],", "[[1048576,1048576,1048576],") + line(6))});
  TunedQuestion other_op = matmul_record({8, 8, 8}, "", "", 1).question;
  other_op.op = "softmax";
  EXPECT_TRUE(s.near(other_op).empty());
  EXPECT_EQ(said_.size(), 3u);
  ASSERT_EQ(near(s).size(), 1u);
  ASSERT_EQ(said_.size(), 4u);  // the second could have been asked
  for (const std::string& text : said_)
    EXPECT_NE(text.find("; this tuned record is not used"), std::string::npos) << text;
  EXPECT_NE(said_[0].find("never.jsonl:1: there is no op \"matmull\""), std::string::npos)
      << said_[0];
  EXPECT_NE(said_[1].find(":3: 2 \"dtypes\" for 1 \"shapes\""), std::string::npos) << said_[1];
  EXPECT_NE(said_[2].find(":4: \"shapes\": more than"), std::string::npos) << said_[2];
  EXPECT_NE(said_[3].find(":2: 1 \"dtypes\" for 2 \"shapes\""), std::string::npos) << said_[3];
}

TEST_F(TunedStoreTest, TheLastOfTwoStands) {
  TunedStore s = store({file("twice.jsonl", line(5) + line(6))});
  ASSERT_EQ(near(s).size(), 1u);
  EXPECT_DOUBLE_EQ(near(s)[0]->record.median_us, 6);
}

TEST_F(TunedStoreTest, ALineWrittenByHandIsRead) {
  std::string spaced = line(5);
  spaced.replace(0, 5, "{ \"op\"");
  TunedStore s = store({file("hand.jsonl", spaced)});
  EXPECT_EQ(near(s).size(), 1u);
  EXPECT_TRUE(said_.empty());
}

TEST_F(TunedStoreTest, OnlyTheBytesThatThereWereCount) {
  TunedFile f = file("grown.jsonl", line(5));
  std::ofstream(f.path, std::ios::app) << line(6);
  TunedStore s = store({f});
  ASSERT_EQ(near(s).size(), 1u);
  EXPECT_DOUBLE_EQ(near(s)[0]->record.median_us, 5);
}

TEST_F(TunedStoreTest, APluginSpeaksOfItselfAlone) {
  TunedStore s = store({file("shipped.jsonl", line(5, "other") + line(6), "fast")});
  ASSERT_EQ(near(s).size(), 1u);
  EXPECT_EQ(near(s)[0]->record.plugin, "fast");
  EXPECT_FALSE(near(s)[0]->user);
  ASSERT_EQ(said_.size(), 1u);
  EXPECT_NE(said_[0].find("of plugin other in the directory of fast"), std::string::npos);
}

TEST_F(TunedStoreTest, ShapesThatAreFarAreNotRead) {
  const auto of = [](const std::vector<int64_t>& mkn) {
    return tuned_line(matmul_record(mkn, "fast", "tile", 5)) + "\n";
  };
  std::string damaged = of({1000, 1000, 1000});
  damaged.replace(damaged.find("\"check\""), 7, "\"chuck\"");
  TunedStore s =
      store({file("far.jsonl", of({8, 8, 8}) + of({16, 8, 8}) + damaged + of({0, 8, 8}))});
  EXPECT_EQ(near(s).size(), 2u);
  EXPECT_TRUE(said_.empty());
  EXPECT_TRUE(near(s, {1000, 1000, 1000}).empty());
  EXPECT_EQ(said_.size(), 1u);  // once, however often it is asked about
  EXPECT_TRUE(near(s, {1000, 1000, 1000}).empty());
  EXPECT_EQ(said_.size(), 1u);
  EXPECT_EQ(near(s, {0, 8, 8}).size(), 1u);
}

TEST_F(TunedStoreTest, AFileThatIsGoneIsAWarning) {
  TunedStore s = store({{"/nowhere/x.jsonl", 10, ""}});
  EXPECT_TRUE(near(s).empty());
  EXPECT_EQ(said_.size(), 1u);
}

}  // namespace
}  // namespace testing
}  // namespace netcl
