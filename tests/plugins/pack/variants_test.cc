// Reading variants.json: what is understood, and that every error names file and place.
#include "plugins/pack/variants.h"

#include <gtest/gtest.h>

#include "core/abi/netcl_plugin.hpp"

namespace netcl {
namespace pack {
namespace {

std::string with_variant(const std::string& members) {
  return R"({"ops": {"matmul": [{)" + members + "}]}}";
}
std::string with_launch(const std::string& members) {
  return with_variant(R"("id": "v", "scratch": ["4"], "launches": [{)" + members + "}]");
}

TEST(Variants, ReadsEverything) {
  const VariantFile file = read_variants(with_variant(R"json(
      "id": "v", "needs": "words", "when": "M > 1", "prefer": 1, "let": {"b": "M", "a": "b + 1"},
      "scratch": ["a * 4"],
      "launches": [{"if": "a", "sources": ["x.cl", "y.cl"], "entry": "k_$mode",
                    "defines": {"F(x)": "$mode", "T": 4}, "options": "-w",
                    "args": ["in0", "in2?", "out0", "scratch0", "local:4 * a", "i32:M", "i64:M",
                             "f32:p", "i32x8:dims"],
                    "global": ["M", 2], "local": [1, "1"]}])json"),
                                         "variants.json");
  const VariantSpec& v = file.ops.at("matmul").at(0);
  EXPECT_EQ(v.id, "v");
  ASSERT_EQ(v.let.size(), 2u);
  EXPECT_EQ(v.let[0].first, "b");  // in the file's order
  const LaunchSpec& launch = v.launches.at(0);
  ASSERT_EQ(launch.args.size(), 9u);
  EXPECT_EQ(launch.args[1].kind, uint32_t{NETCL_ARG_INPUT});
  EXPECT_EQ(launch.args[1].index, 2u);
  EXPECT_TRUE(launch.args[1].optional);
  EXPECT_EQ(launch.args[8].name, "dims");
  EXPECT_EQ(launch.defines[0].first, "F(x)");
}

TEST(Variants, OneListServesSeveralOps) {
  const std::string launch =
      R"("launches": [{"sources": ["x.cl"], "entry": "k", "args": [], "global": [1]}])";
  const VariantFile file =
      read_variants(R"({"ops": {"sum mean": [{"id": "v", )" + launch + "}]}}", "f");
  EXPECT_EQ(file.ops.count("sum"), 1u);
  EXPECT_EQ(file.ops.count("mean"), 1u);
}

std::string longer_than(size_t length) {
  std::string out;
  while (out.size() <= length) out += "+1";
  return out;
}

struct BadFile {
  std::string text;
  const char* message;
};

TEST(Variants, ErrorsNameFileAndPlace) {
  const std::string k = R"("sources": ["a.cl"], "entry": "k", "args": )";
  const BadFile cases[] = {
      {"{", "set/variants.json: not JSON: "},
      {"[]", "top level: expected an object"},
      {R"({"ops": {}, "ops": {}})", "the key \"ops\" is given twice"},
      {R"({"ops": {"matmul": [{"id": "v", "id": "w"}]}})", "the key \"id\" is given twice"},
      {std::string(100000, '['), "nested deeper than 100 levels"},
      {R"({"ops": {"a": [{"id": "v", "when": 1e999}]}})", "not JSON: "},
      {std::string(5 << 20, ' '), "5242880 bytes; such a file has at most 4194304"},
      {with_variant(R"("id": "v", "when": "1)" + longer_than(Expr::kMaxLength) + "\""),
       "ops.matmul[0].when: the expression has "},
      {with_variant(R"("id": "v", "tunables": {"ROWS": {"values": [1]}})"),
       "ops.matmul[0].tunables.ROWS: member \"default\" is missing"},
      {with_variant(R"("id": "v", "tunables": {"ROWS": {"values": [], "default": 1}})"),
       "ops.matmul[0].tunables.ROWS.values: expected at least one value"},
      {with_variant(R"("id": "v", "tunables": {"ROWS": {"values": [1.5], "default": 1}})"),
       "ops.matmul[0].tunables.ROWS.values[0]: expected a whole number"},
      {with_variant(R"("id": "v", "tunables": {"8S": {"values": [1], "default": 1}})"),
       "ops.matmul[0].tunables.8S: expected a name"},
      {"{}", "top level: expected \"ops\", \"families\" or \"files\""},
      {R"({"op": {}})", "op: unknown member; known: files, ops, families"},
      {R"({"ops": {"matmul": []}})", "ops.matmul: expected at least one variant"},
      {R"({"ops": {"matmul": {}}})", "ops.matmul: expected an array"},
      {with_variant(""), "ops.matmul[0]: member \"id\" is missing"},
      {with_variant(R"("id": 3)"), "ops.matmul[0].id: expected text"},
      {with_variant(R"("id": "v", "launches": [])"), "ops.matmul[0].launches: expected at least"},
      {with_variant(R"("id": "v", "wenn": "1")"), "ops.matmul[0].wenn: unknown member"},
      {with_variant(R"("id": "v", "when": "M >")"), "ops.matmul[0].when: expected a number"},
      {with_launch(R"("sources": ["/x.cl"])"), "launches[0].sources[0]: expected a file in"},
      {with_launch(k + R"(["in"])"), "launches[0].args[0]: unknown argument 'in'"},
      {with_launch(k + R"(["scratch1"])"), "args[0]: the variant has 1 scratch buffers"},
      {with_launch(k + R"(["i32:M +"])"),
       "args[0]: expected a number, a name or '(', at column 4 of `M +`"},
      {with_launch(k + R"(["out0?"])"), "'?' is for in, f32: and i32x8: only"},
      {with_launch(k + R"([], "global": [])"), "launches[0].global: expected 1 to 3 sizes"},
      {with_launch(k + R"([], "global": [1], "local": [1, 1])"),
       "launches[0].local: expected as many sizes as in global"},
      {with_launch(R"("sources": ["a.cl"], "entry": "$", "args": [], "global": [1])"),
       "launches[0].entry: expected a name or '{' after '$'"},
  };
  for (const BadFile& bad : cases) {
    try {
      read_variants(bad.text, "set/variants.json");
      ADD_FAILURE() << "accepted: " << bad.text;
    } catch (const plugin::Failure& e) {
      const std::string what = e.what();
      EXPECT_EQ(what.rfind("set/variants.json: ", 0), 0u) << what;
      EXPECT_NE(what.find(bad.message), std::string::npos) << what << "\nwanted " << bad.message;
    }
  }
}

}  // namespace
}  // namespace pack
}  // namespace netcl
