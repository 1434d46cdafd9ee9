// JSON with comments, locations, the cursor's messages and --set overrides.
#include "core/base/json_doc.h"

#include <gtest/gtest.h>

#include <functional>

namespace netcl {
namespace {

std::string message_of(const std::function<void()>& action) {
  try {
    action();
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), ErrorCode::kUsage) << e.message();
    return e.message();
  }
  return "(no error)";
}

ConfigView view(const std::string& text) { return ConfigView(JsonDoc::parse(text, "c.json")); }

TEST(JsonDoc, CommentsAndValues) {
  const auto doc = JsonDoc::parse(
      "\xEF\xBB\xBF// top\r\n{ /* a\n comment */ \"a\": [1, -2.5e1, \"x//y /* */\"], // end\n"
      "\"b\": {\"c\": true, \"d\": null}} // bye",
      "c.json");
  EXPECT_EQ(doc->root().dump(), R"({"a":[1,-25.0,"x//y /* */"],"b":{"c":true,"d":null}})");
  EXPECT_EQ(doc->location("/a/1").line, 3);
  EXPECT_EQ(doc->location("/a/1").column, 22);
  EXPECT_EQ(doc->key_location("/b/c").line, 4);
  EXPECT_EQ(doc->key_location("/b/c").column, 7);
}

TEST(JsonDoc, SyntaxErrors) {
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"", "c.json:1:1: the file is empty; expected a JSON value"},
      {"// only\n", "c.json:2:1: the file is empty; expected a JSON value"},
      {"{\"a\": 1,\n \"a\": 2}",
       "c.json:2:2: duplicate key \"a\", first given on line 1; remove one of the two"},
      {"{\"a\": 1,}", "c.json:1:9: expected a key after the comma, found '}' (remove the comma)"},
      {"[1,\n]", "c.json:2:1: expected a value after the comma, found ']' (remove the comma)"},
      {"{\"a\" 1}", "c.json:1:6: expected ':' after \"a\", found \"1\""},
      {"{\"a\": 1 \"b\": 2}", "c.json:1:9: expected ',' or '}', found '\"'"},
      {"{a: 1}", "c.json:1:2: expected a key in double quotes, found \"a\""},
      {"{\"a\": adamw}", "c.json:1:7: expected a value, found adamw (text needs double quotes)"},
      {"{\"a\": 1", "c.json:1:8: the object that starts on line 1 is never closed with '}'"},
      {"\n[1", "c.json:2:3: the list that starts on line 2 is never closed with ']'"},
      {"{\"a\": \"x\n\"}", "c.json:1:7: the text that starts here has no closing '\"'"},
      {"{\"a\": 01}", "c.json:1:7: expected a number, found 01"},
      {"{\"a\": 1e999}", "c.json:1:7: the number 1e999 is too large"},
      {"{\"a\": 1} x", "c.json:1:10: expected the end of the file after the value, found \"x\""},
      {"{ /* \n", "c.json:1:3: the comment that starts here with /* is never closed with */"},
      {"{\"a\": \"\\q\"}",
       "c.json:1:7: text with a bad escape, a control character or bytes that are not UTF-8: "
       "\"\\q\""},
      {std::string(300, '['), "c.json:1:202: nested deeper than 200 levels"},
  };
  for (const auto& [text, expected] : cases) {
    EXPECT_EQ(message_of([&, t = text] { JsonDoc::parse(t, "c.json"); }), expected) << text;
  }
}

TEST(JsonDoc, MissingFileIsAUsageError) {
  EXPECT_NE(message_of([] { JsonDoc::load("no_such_dir/c.json"); }).find("no_such_dir/c.json"),
            std::string::npos);
}

TEST(ConfigView, TypedErrorsNamePlacePathExpectedAndFound) {
  const ConfigView v = view(R"({"a": "ten", "n": 3, "f": 2.5, "big": 1e3, "t": "sdg",
  "list": [{"out": 0}], "o": {"lr": 1}})");
  EXPECT_EQ(v.integer("n"), 3);
  EXPECT_EQ(v.integer("big"), 1000);
  EXPECT_DOUBLE_EQ(v.number("f"), 2.5);
  EXPECT_EQ(v.integer_or("none", 7), 7);
  EXPECT_EQ(v.text_or("none", "x"), "x");
  const std::vector<std::pair<std::function<void()>, std::string>> cases = {
      {[&] { v.integer("a", 1); },
       "c.json:1:7: a: expected a whole number of at least 1, found \"ten\""},
      {[&] { v.integer("f"); }, "c.json:1:27: f: expected a whole number, found 2.5"},
      {[&] { v.integer("n", 4, 9); },
       "c.json:1:19: n: expected a whole number from 4 to 9, found 3"},
      {[&] { v.number("f", 0, 1); }, "c.json:1:27: f: expected a number from 0 to 1, found 2.5"},
      {[&] { v.boolean("n"); }, "c.json:1:19: n: expected true or false, found 3"},
      {[&] {
         v.text("t", {"sgd", "adamw"});
       },
       "c.json:1:49: t: expected one of \"sgd\", \"adamw\", found \"sdg\"; did you mean \"sgd\"?"},
      {[&] { v.list("list")[0].integer("out", 1); },
       "c.json:2:20: list[0].out: expected a whole number of at least 1, found 0"},
      {[&] { v.list("o"); }, "c.json:2:30: o: expected a list, found an object"},
      {[&] { v.object("list"); }, "c.json:2:11: list: expected an object, found a list of 1"},
      {[&] { v.object("o").number("lrr"); },
       "c.json:2:30: o: the key \"lrr\" is missing; is it the one spelt \"lr\"?"},
      {[&] {
         v.object("o").check_keys({"rl", "eps"});
       },
       "c.json:2:31: o.lr: unknown key; did you mean \"rl\"?"},
      {[&] {
         v.object("o").check_keys({"alpha", "beta"});
       },
       "c.json:2:31: o.lr: unknown key; known: alpha, beta"},
      {[&] { view("[1]"); }, "c.json:1:1: expected an object, found a list of 1"},
  };
  for (const auto& [action, expected] : cases) EXPECT_EQ(message_of(action), expected);
}

TEST(JsonDoc, OverridesReplaceValuesAndLocations) {
  const auto doc = JsonDoc::parse(
      R"({"optimizer": {"lr": 1}, "model": {"layers": [{"out": 3}, {"out": 4}]}})", "c.json");
  doc->apply_override("optimizer.lr=0.5");
  doc->apply_override("model.layers[1].out=16");
  doc->apply_override("model.layers.0.out=8");
  doc->apply_override("optimizer.type=adamw");
  doc->apply_override("data.dir=/x=y");
  doc->apply_override("split=[0.5, 0.5]");
  EXPECT_EQ(doc->root().dump(),
            R"({"optimizer":{"lr":0.5,"type":"adamw"},"model":{"layers":[{"out":8},{"out":16}]},)"
            R"("data":{"dir":"/x=y"},"split":[0.5,0.5]})");
  const ConfigView v(doc);
  EXPECT_EQ(message_of([&] { v.object("optimizer").boolean("lr"); }),
            "--set optimizer.lr=0.5: optimizer.lr: expected true or false, found 0.5");
  EXPECT_EQ(message_of([&] {
              v.check_keys({"optimizer", "model", "date", "split"});
            }),
            "--set data.dir=/x=y: data: unknown key; did you mean \"date\"?");
  EXPECT_EQ(message_of([&] { v.list("split")[0].text("x"); }),
            "--set split=[0.5, 0.5]: split[0]: expected an object, found 0.5");
}

TEST(JsonDoc, OverrideErrorsChangeNothing) {
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"lr", "--set lr: expected key=value, such as optimizer.lr=0.01"},
      {"=1", "--set =1: expected key=value, such as optimizer.lr=0.01"},
      {"optimzer.lr=1",
       "--set optimzer.lr=1: optimzer: there is no such key; did you mean \"optimizer\"?"},
      {"layers[2].out=1",
       "--set layers[2].out=1: layers has 2 elements, [0] to [1]; there is no [2]"},
      {"layers.x=1",
       "--set layers.x=1: layers is a list of 2; expected a number from 0, found \"x\""},
      {"layers[x]=1",
       "--set layers[x]=1: cannot read the path \"layers[x]\"; expected names joined by dots, with "
       "[n] for list elements: optimizer.lr, model.layers[2].out"},
      {"optimizer..lr=1",
       "--set optimizer..lr=1: cannot read the path \"optimizer..lr\"; expected names joined by "
       "dots, with [n] for list elements: optimizer.lr, model.layers[2].out"},
      {"optimizer.lr.x=1", "--set optimizer.lr.x=1: optimizer.lr is 1; it has no \"x\""},
  };
  for (const auto& [text, expected] : cases) {
    const auto doc = JsonDoc::parse(R"({"optimizer": {"lr": 1}, "layers": [1, 2]})", "c.json");
    const std::string before = doc->root().dump();
    EXPECT_EQ(message_of([&, t = text] { doc->apply_override(t); }), expected);
    EXPECT_EQ(doc->root().dump(), before);
  }
}

}  // namespace
}  // namespace netcl
