// Records of steps between ranks that keep in step by a collective, which an exchange stands for.
#include "core/distributed/step_times.h"

#include <gtest/gtest.h>

#include <thread>

#include "core/base/error.h"

namespace netcl {
namespace {

constexpr uint64_t kMinute = 60'000'000'000u;

TEST(StepTimesTest, EveryRankReadsTheSameOneStepLater) {
  constexpr uint32_t kRanks = 3;
  constexpr int64_t kSteps = 2000;
  const auto segment = Segment::create(kRanks);
  std::vector<std::thread> threads;
  for (uint32_t r = 0; r < kRanks; ++r) {
    threads.emplace_back([&, r] {
      Bootstrap boot(segment, r, kMinute);
      StepTimes times(boot);
      for (int64_t step = 1; step <= kSteps; ++step) {
        uint8_t mine = 0;
        std::vector<uint8_t> all(kRanks);
        boot.exchange(&mine, 1, all.data());  // the step's collective
        times.write(step, {step * 10 + r, 0.5 * static_cast<double>(step), r + 1.0});
        if (step == 1) continue;
        const std::vector<StepTime> read = times.read(step - 1);
        ASSERT_EQ(read.size(), kRanks);
        for (uint32_t other = 0; other < kRanks; ++other) {
          ASSERT_EQ(read[other].rows, (step - 1) * 10 + other);
          ASSERT_EQ(read[other].busy_seconds, 0.5 * static_cast<double>(step - 1));
          ASSERT_EQ(read[other].step_seconds, other + 1.0);
        }
      }
    });
  }
  for (std::thread& t : threads) t.join();
}

TEST(StepTimesTest, AStoppedGroupEndsTheWait) {
  const auto segment = Segment::create(2);
  std::thread other([&] {
    Bootstrap boot(segment, 1, kMinute);
    StepTimes times(boot);
    segment->abort("rank 1 has gone");
  });
  Bootstrap boot(segment, 0, kMinute);
  StepTimes times(boot);
  times.write(1, {});
  try {
    times.read(1);
    ADD_FAILURE();
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), ErrorCode::kTraining);
    EXPECT_NE(e.message().find("rank 1 has gone"), std::string::npos);
  }
  other.join();
}

}  // namespace
}  // namespace netcl
