// Set-up exchanges and shared memory, with ranks as threads.
#include "core/collective/bootstrap.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <cstring>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "core/base/error.h"
#include "core/collective/futex.h"
#include "core/collective/memory_limit.h"

namespace netcl {
namespace {

constexpr uint64_t kMinute = 60'000'000'000u;

void on_ranks(const std::shared_ptr<Segment>& segment,
              const std::function<void(Bootstrap&)>& body) {
  std::vector<std::thread> threads;
  for (uint32_t r = 0; r < segment->n_ranks(); ++r) {
    threads.emplace_back([&, r] {
      Bootstrap boot(segment, r, kMinute);
      body(boot);
    });
  }
  for (std::thread& t : threads) t.join();
}

std::string error_of(const std::function<void()>& body) {
  try {
    body();
  } catch (const Error& e) {
    return e.message();
  }
  return "no error";
}

class BootstrapRanks : public ::testing::TestWithParam<uint32_t> {};

TEST_P(BootstrapRanks, ExchangeGathersInRankOrderManyTimes) {
  const auto segment = Segment::create(GetParam());
  on_ranks(segment, [](Bootstrap& boot) {
    for (uint32_t round = 0; round < 200; ++round) {
      const uint32_t mine = round * 100 + boot.rank();
      std::vector<uint32_t> all(boot.n_ranks());
      boot.exchange(&mine, sizeof(mine), all.data());
      for (uint32_t r = 0; r < boot.n_ranks(); ++r) ASSERT_EQ(all[r], round * 100 + r);
    }
  });
}

TEST_P(BootstrapRanks, SharedMemoryIsZeroAndSeenByAll) {
  const auto segment = Segment::create(GetParam());
  on_ranks(segment, [](Bootstrap& boot) {
    for (int round = 0; round < 3; ++round) {
      const size_t count = 5000;
      auto* memory = static_cast<uint32_t*>(boot.shared_memory(count * boot.n_ranks() * 4));
      ASSERT_EQ(reinterpret_cast<uintptr_t>(memory) % 4096, 0u);
      for (size_t i = 0; i < count; ++i) ASSERT_EQ(memory[boot.rank() * count + i], 0u);
      for (size_t i = 0; i < count; ++i) memory[boot.rank() * count + i] = boot.rank() + 1;
      boot.exchange(nullptr, 0, nullptr);
      for (uint32_t r = 0; r < boot.n_ranks(); ++r) {
        for (size_t i = 0; i < count; ++i) ASSERT_EQ(memory[r * count + i], r + 1);
      }
    }
  });
}

INSTANTIATE_TEST_SUITE_P(Ranks, BootstrapRanks, ::testing::Values(1, 2, 3, 5, 8));

TEST(Bootstrap, MemoryGoesBackWhenTheLastRankLeaves) {
  const auto segment = Segment::create(3);
  const auto blocks = [&] {
    struct stat info {};
    fstat(segment->fd(), &info);
    return info.st_blocks;
  };
  const auto before = blocks();
  for (int i = 0; i < 3; ++i) {
    on_ranks(segment, [&](Bootstrap& boot) {
      boot.shared_memory(8 << 20);
      ASSERT_GE(blocks(), before + (8 << 20) / 512);
      boot.exchange(nullptr, 0, nullptr);
    });
    EXPECT_EQ(blocks(), before);
  }
}

TEST(Bootstrap, ATimeoutNamesTheMissingRanks) {
  const auto segment = Segment::create(4);
  const std::string text = error_of([&] {
    std::thread present([&] {
      Bootstrap boot(segment, 2, 30'000'000);
      EXPECT_THROW(boot.exchange(nullptr, 0, nullptr), Error);
    });
    Bootstrap boot(segment, 0, 30'000'000);
    try {
      boot.exchange(nullptr, 0, nullptr);
    } catch (...) {
      present.join();
      throw;
    }
  });
  EXPECT_NE(text.find("30 ms"), std::string::npos) << text;
  EXPECT_NE(text.find("1, 3"), std::string::npos) << text;
}

TEST(Bootstrap, AbortWakesAWaiterWithTheReason) {
  const auto segment = Segment::create(2);
  uint64_t aborted_at = 0;
  std::thread killer([&] {
    while (segment->state(0).ticks == 0) std::this_thread::yield();
    aborted_at = monotonic_ns();
    segment->abort("rank 1 was killed by signal 9");
  });
  Bootstrap boot(segment, 0, kMinute);
  segment->tick(0);
  const std::string text = error_of([&] { boot.exchange(nullptr, 0, nullptr); });
  const uint64_t woken_at = monotonic_ns();
  killer.join();
  EXPECT_NE(text.find("rank 1 was killed by signal 9"), std::string::npos) << text;
  EXPECT_LT(woken_at - aborted_at, 50'000'000u);
  EXPECT_EQ(boot.status().value(), "rank 1 was killed by signal 9");
}

TEST(Bootstrap, DifferentSizesAreAnErrorOnSomeRankThatNamesBoth) {
  const auto segment = Segment::create(2);
  std::vector<std::string> texts(2);
  on_ranks(segment, [&](Bootstrap& boot) {
    const uint64_t mine = 0;
    std::vector<uint64_t> all(2);
    texts[boot.rank()] =
        error_of([&] { boot.exchange(&mine, boot.rank() == 0 ? 8 : 4, all.data()); });
  });
  EXPECT_NE(texts[0].find("rank 1 sends 4 bytes but rank 0 sends 8"), std::string::npos)
      << texts[0];
  EXPECT_NE(texts[1].find("rank 0 sends 8 bytes but rank 1 sends 4"), std::string::npos)
      << texts[1];
}

TEST(Bootstrap, MemoryThatIsNotThereIsAnErrorOnEveryRank) {
  // Found before a page is touched: the kernel would end processes, not refuse.
  ASSERT_LT(available_memory_bytes(), uint64_t{1} << 45);
  const auto segment = Segment::create(2);
  std::vector<std::string> texts(2);
  on_ranks(segment, [&](Bootstrap& boot) {
    texts[boot.rank()] = error_of([&] { boot.shared_memory(uint64_t{1} << 45); });
  });
  for (const std::string& text : texts) {
    EXPECT_NE(text.find("cannot allocate"), std::string::npos) << text;
  }
  // The channel still works.
  on_ranks(segment, [](Bootstrap& boot) { EXPECT_NE(boot.shared_memory(4096), nullptr); });
}

}  // namespace
}  // namespace netcl
