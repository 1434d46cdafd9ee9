// The prefetcher's order, its end, its errors and its stop.
#include "core/data/prefetcher.h"

#include <gtest/gtest.h>

#include <atomic>
#include <future>

#include "core/base/error.h"

namespace netcl {
namespace {

struct Slots {
  explicit Slots(size_t n) : x(n) {
    for (float& value : x) slots.push_back({&value, nullptr, 0, 0});
  }
  std::vector<float> x;
  std::vector<BatchSlot> slots;
};

Prefetcher::Fill count_to(int64_t end) {
  return [end](BatchSlot& slot) {
    if (slot.step >= end) return false;
    *static_cast<float*>(slot.x) = static_cast<float>(slot.step) * 2.0f;
    slot.count = slot.step + 1;
    return true;
  };
}

TEST(Prefetcher, HandsOutEveryBatchInOrder) {
  for (const size_t ring : {1u, 2u, 5u}) {
    Slots memory(ring);
    Prefetcher prefetcher(memory.slots, count_to(100));
    for (int64_t i = 0; i < 100; ++i) {
      const BatchSlot* slot = prefetcher.acquire();
      ASSERT_NE(slot, nullptr);
      EXPECT_EQ(slot->step, i);
      EXPECT_EQ(slot->count, i + 1);
      EXPECT_EQ(*static_cast<float*>(slot->x), static_cast<float>(i) * 2.0f);
      prefetcher.release();
    }
    EXPECT_EQ(prefetcher.acquire(), nullptr);
    EXPECT_EQ(prefetcher.acquire(), nullptr);
  }
}

TEST(Prefetcher, SeveralSlotsMayBeHeld) {
  Slots memory(3);
  Prefetcher prefetcher(memory.slots, count_to(7));
  const BatchSlot* first = prefetcher.acquire();
  const BatchSlot* second = prefetcher.acquire();
  const BatchSlot* third = prefetcher.acquire();
  EXPECT_EQ(first->step, 0);
  EXPECT_EQ(second->step, 1);
  EXPECT_EQ(third->step, 2);
  EXPECT_THROW(prefetcher.acquire(), Error);
  prefetcher.release();
  EXPECT_EQ(prefetcher.acquire()->step, 3);
  for (int i = 0; i < 3; ++i) prefetcher.release();
  EXPECT_THROW(prefetcher.release(), Error);
}

TEST(Prefetcher, AllSlotsHeldAtTheEndIsTheEnd) {
  Slots memory(2);
  Prefetcher prefetcher(memory.slots, count_to(1));
  EXPECT_NE(prefetcher.acquire(), nullptr);
  EXPECT_EQ(prefetcher.acquire(), nullptr);
}

TEST(Prefetcher, ErrorsReachTheConsumerAfterTheBatchesBefore) {
  Slots memory(4);
  Prefetcher prefetcher(memory.slots, [](BatchSlot& slot) -> bool {
    if (slot.step == 2) fail(ErrorCode::kData, "row 17 is bad");
    return true;
  });
  EXPECT_EQ(prefetcher.acquire()->step, 0);
  EXPECT_EQ(prefetcher.acquire()->step, 1);
  for (int i = 0; i < 2; ++i) {
    try {
      prefetcher.acquire();
      ADD_FAILURE();
    } catch (const Error& e) {
      EXPECT_EQ(e.code(), ErrorCode::kData);
      EXPECT_EQ(e.message(), "row 17 is bad");
    }
  }
}

TEST(Prefetcher, StopsWhileTheRingIsFull) {
  Slots memory(2);
  std::atomic<int> fills{0};
  std::promise<void> full;
  {
    Prefetcher prefetcher(memory.slots, [&](BatchSlot&) {
      if (++fills == 2) full.set_value();
      return true;
    });
    full.get_future().wait();
  }
  EXPECT_EQ(fills, 2);
}

TEST(Prefetcher, NeedsASlot) { EXPECT_THROW(Prefetcher({}, count_to(1)), Error); }

}  // namespace
}  // namespace netcl
