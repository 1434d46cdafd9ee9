// Snapshots: what is whole, what is not, and that a smaller group's count.
#include "core/distributed/snapshot.h"

#include <gtest/gtest.h>

#include "core/base/error.h"

namespace netcl {
namespace {

SnapshotSizes sizes() { return {{5, 3}, 2, 3}; }

// One rank's part of a snapshot whose values tell rank and step.
void write(Snapshots& snapshots, uint32_t slot, uint32_t rank, int64_t step, uint32_t n_ranks,
           uint32_t generation = 0, bool commit = true) {
  snapshots.begin(slot, rank);
  const auto value = static_cast<float>(step);
  if (rank == 0) {
    const std::vector<float> first(5, value), second(3, -value);
    snapshots.put(slot, 0, 0, first.data(), 5);
    snapshots.put(slot, 1, 0, second.data(), 3);
    snapshots.put_text(slot, "step " + std::to_string(step));
  }
  snapshots.put_own(slot, rank, {value, static_cast<float>(rank)},
                    {static_cast<double>(rank), static_cast<double>(step)});
  if (commit) snapshots.commit(slot, rank, n_ranks, step, generation);
}

class SnapshotTest : public ::testing::Test {
 protected:
  UniqueFd fd_ = Snapshots::create();
  Snapshots writer_{fd_.get()};
  Snapshots supervisor_{fd_.get()};  // maps the head only

  void SetUp() override { writer_.reserve(sizes()); }
};

TEST_F(SnapshotTest, IsWholeOnceAllRanksHaveMarkedIt) {
  EXPECT_FALSE(supervisor_.newest());
  for (const uint32_t rank : {2u, 0u}) write(writer_, 0, rank, 7, 3);
  EXPECT_FALSE(supervisor_.newest());
  write(writer_, 0, 1, 7, 3);
  const auto found = supervisor_.newest();
  ASSERT_TRUE(found);
  EXPECT_EQ(found->slot, 0u);
  EXPECT_EQ(found->step, 7);
  EXPECT_EQ(found->n_ranks, 3u);
}

TEST_F(SnapshotTest, ReadsBackWhatWasWritten) {
  for (const uint32_t rank : {0u, 1u, 2u}) write(writer_, 1, rank, 4, 3);
  Snapshots reader(fd_.get());
  reader.reserve(sizes());
  EXPECT_EQ(reader.arena(1, 0), std::vector<float>(5, 4.0f));
  EXPECT_EQ(reader.arena(1, 1), std::vector<float>(3, -4.0f));
  EXPECT_EQ(reader.own(1, 2), (std::vector<float>{4, 2}));
  EXPECT_EQ(reader.own_numbers(1, 1)[0], 1.0);
  EXPECT_EQ(reader.text(1), "step 4");
}

TEST_F(SnapshotTest, RanksMayWriteRangesOfAnArena) {
  const std::vector<float> values = {1, 2, 3, 4, 5};
  writer_.put(0, 0, 0, values.data(), 2);
  writer_.put(0, 0, 2, values.data() + 2, 3);
  EXPECT_EQ(writer_.arena(0, 0), values);
  EXPECT_THROW(writer_.put(0, 0, 3, values.data(), 3), Error);
}

TEST_F(SnapshotTest, AHalfWrittenOneLeavesTheOneBefore) {
  for (const uint32_t rank : {0u, 1u, 2u}) write(writer_, 0, rank, 3, 3);
  for (const uint32_t rank : {0u, 1u, 2u}) write(writer_, 1, rank, 9, 3);
  EXPECT_EQ(supervisor_.newest()->step, 9);
  write(writer_, 0, 0, 20, 3);                       // rank 0 has written step 20,
  write(writer_, 0, 1, 20, 3, 0, /*commit=*/false);  // rank 1 died in the middle
  ASSERT_TRUE(supervisor_.newest());
  EXPECT_EQ(supervisor_.newest()->step, 9);
}

TEST_F(SnapshotTest, MarksOfAnotherGenerationDoNotCount) {
  for (const uint32_t rank : {0u, 1u, 2u}) write(writer_, 0, rank, 3, 3);
  for (const uint32_t rank : {0u, 2u}) write(writer_, 1, rank, 9, 3);  // rank 1 died
  // The next generation of two ranks comes to step 9 again; its rank 1 is the first to write.
  write(writer_, 1, 1, 9, 2, /*generation=*/1);
  EXPECT_EQ(supervisor_.newest()->step, 3);
  write(writer_, 1, 0, 9, 2, 1);
  EXPECT_EQ(supervisor_.newest()->step, 9);
  EXPECT_EQ(supervisor_.newest()->n_ranks, 2u);
}

TEST_F(SnapshotTest, MarksOnce) {
  EXPECT_TRUE(writer_.mark_once(3));
  EXPECT_FALSE(supervisor_.mark_once(3));
  EXPECT_TRUE(supervisor_.mark_once(4));
}

TEST_F(SnapshotTest, RefusesTooLongATextAndForeignMemory) {
  EXPECT_THROW(writer_.put_text(0, std::string(Snapshots::kTextBytes + 1, 'x')), Error);
  EXPECT_THROW(supervisor_.arena(0, 0), Error);  // has not reserved
}

}  // namespace
}  // namespace netcl
