// The order of a search: whole small spaces, samples and neighbours of large ones.
#include <gtest/gtest.h>

#include <cmath>
#include <set>

#include "apps/netcl_app/tune/search.h"

namespace netcl::app {
namespace {

VariantSpace space(const std::string& variant, std::vector<Tunable> tunables) {
  return {"set", variant, std::move(tunables)};
}

std::vector<std::string> all(Search* search) {
  std::vector<std::string> out;
  while (const auto candidate = search->next()) out.push_back(candidate->variant);
  return out;
}

TEST(Search, ASmallSpaceIsTriedWholeDefaultsFirst) {
  Search search({space("a", {{"R", {4, 8}, 2}, {"D", {1, 2}, 1}}), space("b", {})});
  EXPECT_EQ(search.size(), 7u);
  EXPECT_TRUE(search.whole());
  EXPECT_EQ(all(&search), (std::vector<std::string>{"a", "b", "a(R=4)", "a(R=8)", "a(D=2)",
                                                    "a(R=4,D=2)", "a(R=8,D=2)"}));
}

// 16 values of each of three knobs; the best lies where all are in the middle.
class LargeSpace : public ::testing::Test {
 protected:
  static Search make() {
    std::vector<int64_t> values;
    for (int64_t v = 0; v < 16; ++v) values.push_back(v);
    return Search({space("a", {{"X", values, 0}, {"Y", values, 15}, {"Z", values, 0}})});
  }
  static double cost(const Candidate& c) {
    double out = 0;
    for (size_t t = 1; t < c.place.size(); ++t)
      out += std::abs(static_cast<double>(c.place[t]) - 8);
    return out;
  }
  // Names tried, in order; *best: the least cost.
  static std::vector<std::string> climb(double* best) {
    Search search = make();
    std::vector<std::string> out;
    *best = 1e9;
    while (const auto candidate = search.next()) {
      out.push_back(candidate->variant);
      if (cost(*candidate) >= *best) continue;
      *best = cost(*candidate);
      search.best(*candidate);
    }
    return out;
  }
};

TEST_F(LargeSpace, NeighboursLeadToTheBest) {
  double best = 0;
  const std::vector<std::string> tried = climb(&best);
  EXPECT_EQ(best, 0);
  EXPECT_LT(tried.size(), 200u);  // of 4096
  EXPECT_EQ(tried[0], "a");
  EXPECT_EQ(std::set<std::string>(tried.begin(), tried.end()).size(), tried.size());
}

TEST_F(LargeSpace, TheSameAnswersGiveTheSameOrder) {
  double one = 0, two = 0;
  EXPECT_EQ(climb(&one), climb(&two));
}

TEST_F(LargeSpace, WithoutABestItEnds) {
  Search search = make();
  EXPECT_LE(all(&search).size(), Search::kSample + 1);
}

TEST(SearchOfNothing, Ends) {
  Search search({});
  EXPECT_EQ(search.size(), 0u);
  EXPECT_FALSE(search.next());
}

}  // namespace
}  // namespace netcl::app
