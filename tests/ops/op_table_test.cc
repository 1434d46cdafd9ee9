// The table is complete, and a row that lacks any part is caught.
#include <gtest/gtest.h>

#include <functional>

#include "core/base/error.h"
#include "core/ops/op.h"

namespace netcl {
namespace {

std::string check_error(const std::vector<OpRow>& rows) {
  try {
    check_op_table(rows);
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), ErrorCode::kInternal);
    return e.message();
  }
  return "";
}

TEST(OpTableTest, IsComplete) { EXPECT_EQ(check_error(op_table()), ""); }

TEST(OpTableTest, CatchesARowThatLacksAPart) {
  struct Damage {
    const char* op;
    std::function<void(OpRow&)> harm;
    const char* message;
  };
  const std::vector<Damage> damages = {
      {"add", [](OpRow& r) { r.name.clear(); }, "a name"},
      {"add", [](OpRow& r) { r.infer = nullptr; }, "a shape rule"},
      {"add", [](OpRow& r) { r.reference = nullptr; }, "a double-precision reference"},
      {"add", [](OpRow& r) { r.cases.clear(); }, "test cases"},
      {"add", [](OpRow& r) { r.facts = nullptr; }, "kernel facts"},
      {"add", [](OpRow& r) { r.expression.clear(); }, "an OpenCL expression"},
      {"matmul", [](OpRow& r) { r.expression = "x0"; }, "the family of its expression"},
      {"add", [](OpRow& r) { r.min_in = 3; }, "number of inputs"},
      {"clamp", [](OpRow& r) { r.attrs.clear(); }, "the attribute of its parameter min"},
      {"clamp", [](OpRow& r) { r.parameters.push_back("max"); }, "room for its parameters"},
      {"add", [](OpRow& r) { r.cases[0].in.pop_back(); }, "it has 1 inputs"},
      {"add", [](OpRow& r) { r.cases[0].in[0].dtype = DType::kI32; }, "no int_high"},
      {"sgd_step", [](OpRow& r) { r.cases[0].fixed[0].second.pop_back(); }, "do not fit"},
      {"sgd_step", [](OpRow& r) { r.aliases.pop_back(); }, "aliases name 1 of 2 outputs"},
      {"matmul", [](OpRow& r) { r.cases[0].in[0].shape = Shape{2}; }, "rank 2"},
  };
  for (const Damage& damage : damages) {
    OpRow row = find_op(damage.op);
    damage.harm(row);
    EXPECT_NE(check_error({row}).find(damage.message), std::string::npos)
        << damage.op << ": wanted \"" << damage.message << "\", got \"" << check_error({row})
        << "\"";
  }
}

TEST(OpTableTest, CatchesTwins) {
  EXPECT_NE(check_error({find_op("add"), find_op("add")}).find("appears twice"), std::string::npos);
}

TEST(OpTableTest, NamesTheNearestOp) {
  try {
    find_op("matmull");
    FAIL();
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), ErrorCode::kUsage);
    EXPECT_EQ(e.message(), "unknown op \"matmull\"; did you mean \"matmul\"?");
  }
}

TEST(OpTableTest, EveryRowHasAnEmptyCase) {
  for (const OpRow& row : op_table()) {
    bool empty = false;
    for (const OpCase& c : row.cases) {
      const Attrs attrs = complete_attrs(row, c.attrs);
      std::vector<TensorDesc> all = row.infer({row, c.in, attrs});
      all.insert(all.end(), c.in.begin(), c.in.end());  // a reduction of nothing has results
      for (const TensorDesc& d : all) empty = empty || d.shape.num_elements() == 0;
    }
    EXPECT_TRUE(empty) << row.name;
  }
}

}  // namespace
}  // namespace netcl
