// The order in which kernel sets are asked.
#include "core/runtime/kernel_rank.h"

#include <gtest/gtest.h>

#include <iterator>

namespace netcl {
namespace {

TEST(KernelRankTest, YieldingThenSpecificityThenPriority) {
  const KernelRank order[] = {{false, 1, 0}, {false, 0, 3}, {false, 0, 0}, {false, 0, -4},
                              {true, 2, 0},  {true, 1, 9},  {true, 1, 0},  {true, 0, 0}};
  const size_t n = std::size(order);
  for (size_t i = 0; i < n; ++i) {
    for (size_t j = 0; j < n; ++j)
      EXPECT_EQ(order[i].before(order[j]), i < j) << order[i].str() << " | " << order[j].str();
  }
}

TEST(KernelRankTest, TheBestProvisionThatServesCounts) {
  Provision everywhere, on_cpus, elsewhere, other;
  everywhere.op = on_cpus.op = elsewhere.op = "matmul";
  other.op = "add";
  on_cpus.yields = true;
  on_cpus.match = {nlohmann::ordered_json::parse(R"({"type": "cpu"})")};
  elsewhere.match = {nlohmann::ordered_json::parse(R"({"type": "gpu"})")};
  Manifest manifest;
  DeviceInfo cpu;
  cpu.type = "cpu";
  const auto matmul = [](const Provision& p) { return p.op == "matmul"; };
  std::string reason;
  manifest.provides = {other};
  EXPECT_FALSE(rank_of(manifest, cpu, matmul, &reason));
  EXPECT_EQ(reason, "its manifest does not offer the op");
  manifest.provides = {elsewhere, other};
  EXPECT_FALSE(rank_of(manifest, cpu, matmul, &reason));
  EXPECT_EQ(reason, R"(type is "cpu", wanted "gpu")");
  manifest.provides = {on_cpus, elsewhere};
  ASSERT_TRUE(rank_of(manifest, cpu, matmul));
  EXPECT_EQ(rank_of(manifest, cpu, matmul)->specificity, 1);
  manifest.provides = {on_cpus, everywhere};
  EXPECT_FALSE(rank_of(manifest, cpu, matmul)->yields);
}

}  // namespace
}  // namespace netcl
