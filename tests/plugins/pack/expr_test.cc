// The expression language: values, and errors with their columns.
#include "plugins/pack/expr.h"

#include <gtest/gtest.h>

#include "plugins/pack/template.h"

namespace netcl {
namespace pack {
namespace {

const Scope& scope() {
  static const Scope names = {{"M", int64_t{7}},    {"N", int64_t{16}},
                              {"zero", int64_t{0}}, {"big", INT64_MAX},
                              {"least", INT64_MIN}, {"mode", std::string("dense")},
                              {"cl_khr_fp64", int64_t{1}}};
  return names;
}

struct ValueCase {
  const char* text;
  int64_t value;
};

class ExprValues : public ::testing::TestWithParam<ValueCase> {};

TEST_P(ExprValues, Evaluates) {
  EXPECT_EQ(Expr::parse(GetParam().text).integer(scope()), GetParam().value) << GetParam().text;
}

INSTANTIATE_TEST_SUITE_P(
    Table, ExprValues,
    ::testing::Values(
        ValueCase{"1 + 2 * 3", 7}, ValueCase{"(1 + 2) * 3", 9}, ValueCase{"10 - 4 - 3", 3},
        ValueCase{"100 / 7 / 2", 7}, ValueCase{"-7 / 2", -3}, ValueCase{"-7 % 2", -1},
        ValueCase{"2 - -3", 5}, ValueCase{"M * N", 112}, ValueCase{"M % 4 + N", 19},
        ValueCase{"ceil_div(M, 2)", 4}, ValueCase{"ceil_div(8, 2)", 4},
        ValueCase{"ceil_div(0, 5)", 0}, ValueCase{"ceil_div(-7, 2)", -3},
        ValueCase{"min(3, M, 5)", 3}, ValueCase{"max(3, M, 5)", 7}, ValueCase{"M < N", 1},
        ValueCase{"M >= N", 0}, ValueCase{"M <= 7 && N > 7", 1}, ValueCase{"M != 7", 0},
        ValueCase{"!M", 0}, ValueCase{"!zero", 1}, ValueCase{"!(M == 7) || N", 1},
        ValueCase{"1 + 1 == 2", 1}, ValueCase{"1 < 2 == 1", 1}, ValueCase{"0 || 0 && 1", 0},
        ValueCase{"M > 5 ? 10 : 20", 10}, ValueCase{"zero ? 1 : M ? 2 : 3", 2},
        ValueCase{"mode == 'dense'", 1}, ValueCase{"mode != \"strided\"", 1},
        ValueCase{"(mode == 'x' ? 'a' : 'b') == 'b'", 1},
        // An extension that the device lacks is no unknown name.
        ValueCase{"cl_khr_fp64", 1}, ValueCase{"cl_khr_fp16 || M == 7 && !cl_khr_fp6", 1},
        // What is not needed is not evaluated.
        ValueCase{"zero && 1 / zero", 0}, ValueCase{"1 || nothing", 1},
        ValueCase{"zero == 0 ? 5 : 1 / zero", 5}, ValueCase{"9223372036854775807", INT64_MAX}));

struct ErrorCase {
  const char* text;
  size_t position;
  const char* part;
};

class ExprErrors : public ::testing::TestWithParam<ErrorCase> {};

TEST_P(ExprErrors, NameTheColumn) {
  try {
    Expr::parse(GetParam().text).integer(scope());
    FAIL() << GetParam().text << " was accepted";
  } catch (const ExprError& e) {
    EXPECT_EQ(e.position(), GetParam().position) << e.what();
    EXPECT_NE(std::string(e.what()).find(GetParam().part), std::string::npos) << e.what();
  }
}

INSTANTIATE_TEST_SUITE_P(
    Table, ExprErrors,
    ::testing::Values(
        ErrorCase{"", 0, "expected a number"}, ErrorCase{"1 +", 3, "expected a number"},
        ErrorCase{"1 2", 2, "expected an operator"}, ErrorCase{"(1", 2, "expected ')'"},
        ErrorCase{"1 ? 2", 5, "expected ':'"}, ErrorCase{"M # 2", 2, "unexpected"},
        ErrorCase{"2x", 0, "start with a digit"}, ErrorCase{"1 + 'a", 4, "not closed"},
        ErrorCase{"9223372036854775808", 0, "64 bits"},
        ErrorCase{"1 + nothing", 4, "unknown name nothing"},
        ErrorCase{"M / zero", 2, "division by zero"}, ErrorCase{"M % zero", 2, "division by zero"},
        ErrorCase{"1 + ceil_div(M, zero)", 4, "division by zero"},
        ErrorCase{"big + 1", 4, "64 bits"}, ErrorCase{"big * 2", 4, "64 bits"},
        ErrorCase{"least - 1", 6, "64 bits"}, ErrorCase{"-least", 0, "64 bits"},
        ErrorCase{"least / -1", 6, "64 bits"}, ErrorCase{"least % -1", 6, "64 bits"},
        ErrorCase{"mode + 1", 0, "an integer is wanted"},
        ErrorCase{"mode == 1", 5, "compared with an integer"},
        ErrorCase{"floor(1, 2)", 0, "unknown function"}, ErrorCase{"ceil_div(1)", 0, "two values"},
        ErrorCase{"min(1)", 0, "two or more"}));

TEST(Expr, RefusesDeepNesting) {
  EXPECT_THROW(Expr::parse(std::string(10000, '(') + "1"), ExprError);
  EXPECT_THROW(Expr::parse(std::string(10000, '-') + "1"), ExprError);
}

TEST(Expr, ExplainsItsNames) {
  EXPECT_EQ(Expr::parse("N % 4 == 0 && M > 8 && mode == 'x'").explain(scope()),
            "M=7 N=16 mode=dense");
  EXPECT_EQ(Expr::parse("cl_khr_fp16 || cl_khr_fp64").explain(scope()),
            "cl_khr_fp16=0 cl_khr_fp64=1");
}

TEST(Template, FillsNamesAndExpressions) {
  EXPECT_EQ(Template::parse("a $mode ${M + 1}$$ $N.x").fill(scope()), "a dense 8$ 16.x");
  EXPECT_EQ(Template::parse("${mode == 'dense' ? 'yes' : 'no'}").fill(scope()), "yes");
  EXPECT_THROW(Template::parse("$"), ExprError);
  EXPECT_THROW(Template::parse("${M"), ExprError);
  EXPECT_THROW(Template::parse("$nothing").fill(scope()), ExprError);
}

}  // namespace
}  // namespace pack
}  // namespace netcl
