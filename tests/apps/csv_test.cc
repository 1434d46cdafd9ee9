// Tables: what is read, and the message for each thing that cannot be.
#include "apps/netcl_app/formats/csv.h"

#include <gtest/gtest.h>

#include "tests/data/data_files.h"

namespace netcl::app {
namespace {

using Labels = std::vector<int32_t>;
using Floats = std::vector<float>;
using Bytes = std::vector<uint8_t>;
using Names = std::vector<std::string>;

TEST(Csv, BytesOrFloatsWithTheLabelLast) {
  const Samples bytes = parse_csv("1,2,0\n3,255,1\n", {}, "t.csv");
  EXPECT_EQ(bytes.dtype, DType::kU8);
  EXPECT_EQ(bytes.u8, (Bytes{1, 2, 3, 255}));
  EXPECT_EQ(bytes.labels, (Labels{0, 1}));
  EXPECT_EQ(bytes.sample_shape, (Shape{2}));
  EXPECT_EQ(bytes.lines, (std::vector<int64_t>{1, 2}));
  const Samples floats = parse_csv("1,-2.5e-1,0\n+3,256,1", {}, "t.csv");
  EXPECT_EQ(floats.dtype, DType::kF32);
  EXPECT_EQ(floats.f32, (Floats{1, -0.25f, 3, 256}));
}

TEST(Csv, MarksLineEndsQuotesAndBlanks) {
  const Samples got = parse_csv(
      "\xEF\xBB\xBFsize,\"the \"\"width\"\", mm\",kind\r\n 1.5 ,\"2\",\"a, b\"\r\n\r\n"
      "3,4, \"c\nd\" \r\n5,6,\"a, b\"",
      {}, "t.csv");
  EXPECT_EQ(got.f32, (Floats{1.5f, 2, 3, 4, 5, 6}));
  EXPECT_EQ(got.labels, (Labels{0, 1, 0}));
  EXPECT_EQ(got.class_names, (Names{"a, b", "c\nd"}));
  EXPECT_EQ(got.lines, (std::vector<int64_t>{2, 4, 6}));
  EXPECT_EQ(parse_csv("1,2,0\r3,4,1\r", {}, "t.csv").labels, (Labels{0, 1}));
}

TEST(Csv, LabelByNumberOrName) {
  DataConfig config;
  config.label = 0;
  EXPECT_EQ(parse_csv("7,1,2\n0,3,4\n", config, "t.csv").labels, (Labels{7, 0}));
  config.label = -2;
  EXPECT_EQ(parse_csv("7,1,2\n0,3,4\n", config, "t.csv").labels, (Labels{1, 3}));
  config.label_name = "y";
  EXPECT_EQ(parse_csv("a,y,b\n7,1,2\n", config, "t.csv").labels, (Labels{1}));
  config.label_name = "kind";
  EXPECT_EQ(message_of([&] { parse_csv("a,class,b\n7,1,2\n", config, "t.csv"); }),
            "t.csv:1: there is no column \"kind\" for data.label; known: a, class, b");
  config.label_name = "clas";
  EXPECT_EQ(message_of([&] { parse_csv("a,class,b\n7,1,2\n", config, "t.csv"); }),
            "t.csv:1: there is no column \"clas\" for data.label; did you mean \"class\"?");
}

TEST(Csv, HeaderModes) {
  DataConfig config;
  EXPECT_EQ(parse_csv("a,b,label\n1,2,0\n", config, "t.csv").count(), 1);
  EXPECT_EQ(parse_csv("1,2,cat\n3,4,dog\n", config, "t.csv").class_names, (Names{"cat", "dog"}));
  config.header = HeaderMode::kYes;
  EXPECT_EQ(parse_csv("0,1,2\n1,2,0\n", config, "t.csv").count(), 1);
  config.header = HeaderMode::kNo;
  EXPECT_EQ(message_of([&] { parse_csv("a,b,c\n1,2,0\n", config, "t.csv"); }),
            "t.csv:1: column 1: expected a finite number, found \"a\"");
}

TEST(Csv, TabsAndOtherDelimiters) {
  DataConfig config;
  config.delimiter = '\t';
  EXPECT_EQ(parse_csv("1\t2\t0\n", config, "t.tsv").u8, (Bytes{1, 2}));
  EXPECT_EQ(message_of([&] { parse_csv("1\t\t0\n", config, "t.tsv"); }),
            "t.tsv:1: column 2: the value is missing (\"\"); expected a number");
  config.delimiter = ';';
  EXPECT_EQ(parse_csv("1;2;0\n", config, "t.csv").u8, (Bytes{1, 2}));
}

TEST(Csv, FirstRowOfCountsAndClassNames) {
  const Samples got = parse_csv("2,3,setosa,virginica\n1,2,3,1\n4,5,6,0\n", {}, "t.csv");
  EXPECT_EQ(got.count(), 2);
  EXPECT_EQ(got.class_names, (Names{"setosa", "virginica"}));
  EXPECT_EQ(got.labels, (Labels{1, 0}));
  EXPECT_EQ(message_of([] { parse_csv("3,3,a,b\n1,2,3,1\n4,5,6,0\n", {}, "t.csv"); }),
            "t.csv:1: the first row promises 3 rows; 2 follow");
  EXPECT_EQ(message_of([] { parse_csv("1,3,a,b\n1,2,3,2\n", {}, "t.csv"); }),
            "t.csv:2: label 2; there are 2 named classes: a, b");
}

TEST(Csv, KnownClassesComeFirstAndAreAll) {
  const Samples got = parse_csv("1,2,dog\n3,4,cat\n", {}, "t.csv", {"cat", "dog"});
  EXPECT_EQ(got.labels, (Labels{1, 0}));
  EXPECT_EQ(
      message_of([] {
        parse_csv("1,2,cta\n", {}, "t.csv", {"cat", "dog"});
      }),
      "t.csv:1: column 3: the class \"cta\" does not occur in the training data; did you mean "
      "\"cat\"?");
}

TEST(Csv, BadInputs) {
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"", "t.csv: the file is empty; expected a table"},
      {"\n \r\n", "t.csv: the file is empty; expected a table"},
      {"a,b,c\n", "t.csv: the file has a header and no samples"},
      {"1,2,0\n3,1\n", "t.csv:2: 2 fields; expected 3 as in the first row"},
      {"1,2,0\n3,4,1,5\n", "t.csv:2: 4 fields; expected 3 as in the first row"},
      {"1,2,0\n\n3,x,1\n", "t.csv:3: column 2: expected a finite number, found \"x\""},
      {"w,h,y\n3,1.5mm,1\n", "t.csv:2: column 2 (h): expected a finite number, found \"1.5mm\""},
      {"1,2,0\n3,,1\n", "t.csv:2: column 2: the value is missing (\"\"); expected a number"},
      {"1,2,0\n3,NA,1\n", "t.csv:2: column 2: the value is missing (\"NA\"); expected a number"},
      {"1,2,0\nnan,3,1\n", "t.csv:2: column 1: the value is missing (\"nan\"); expected a number"},
      {"?,2,0\n3,3,1\n", "t.csv:1: column 1: the value is missing (\"?\"); expected a number"},
      {"1,2,0\ninf,3,1\n", "t.csv:2: column 1: expected a finite number, found \"inf\""},
      {"1,2,0\n1e99,3,1\n", "t.csv:2: column 1: expected a finite number, found \"1e99\""},
      {"1,2,0\n3,4,-1\n",
       "t.csv:2: column 3: expected a label that is a whole number of at least 0, found \"-1\""},
      {"1,2,0\n3,4,1.5\n",
       "t.csv:2: column 3: expected a label that is a whole number of at least 0, found \"1.5\""},
      {"1,2,0\n3,4,cat\n",
       "t.csv:2: column 3: expected a label that is a whole number of at least 0, found \"cat\""},
      {"1,2,0\n3,4,\n", "t.csv:2: column 3: the label is missing (\"\")"},
      {"1,2,99999999\n",
       "t.csv:1: column 3: the label \"99999999\" is too large for a class number"},
      {"1,\"2,0\n3,4,1\n", "t.csv:1: column 2: the quote that opens here is never closed"},
      {"1,\"2\"x,0\n",
       "t.csv:1: column 2: text after the closing quote; expected ',' or the end of the line (a "
       "quote inside quotes is written twice)"},
      {"\xFF\xFE,1", "t.csv: the file is UTF-16 text; save it as UTF-8"},
      {"1;2;0\n",
       "t.csv:1: one column (\"1;2;0\"); expected features and a label separated by ',' (see "
       "data.format and data.delimiter)"},
      {"1,2,0\n1,\x01\x02,0\n",
       "t.csv:2: column 2: expected a finite number, found \"\\x01\\x02\""},
  };
  for (const auto& [text, expected] : cases) {
    EXPECT_EQ(message_of([&, t = text] { parse_csv(t, {}, "t.csv"); }), expected);
  }
  DataConfig config;
  config.label = 3;
  EXPECT_EQ(message_of([&] { parse_csv("1,2,0\n", config, "t.csv"); }),
            "t.csv:1: the rows have 3 columns; data.label is 3, expected -3 to 2");
}

}  // namespace
}  // namespace netcl::app
