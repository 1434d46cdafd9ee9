// Every piece is done once, by no more threads than the device has, whoever calls.
#include "plugins/kernels/openblas/crew.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <set>

namespace netcl::openblas {
namespace {

// Counts what is done, and how many are at it at the same time.
class Counted {
 public:
  explicit Counted(size_t pieces) : times_(new std::atomic<int>[pieces]()), pieces_(pieces) {}
  void run(Crew* crew) {
    crew->run(pieces_, [this](size_t i) {
      const int now = ++now_;
      for (int seen = most_; now > seen && !most_.compare_exchange_weak(seen, now);) {
      }
      ++times_[i];
      std::this_thread::yield();
      --now_;
    });
  }
  bool each(int times) const {
    return std::all_of(times_.get(), times_.get() + pieces_,
                       [&](const std::atomic<int>& t) { return t == times; });
  }
  int most() const { return most_; }

 private:
  std::unique_ptr<std::atomic<int>[]> times_;
  const size_t pieces_;
  std::atomic<int> now_{0}, most_{0};
};

TEST(Crew, DoesEveryPieceOnce) {
  for (const int threads : {1, 2, 5}) {
    Crew crew(threads);
    crew.start();
    crew.start();
    for (const size_t pieces : {0, 1, 2, 7, 100}) {
      Counted counted(pieces);
      for (int i = 1; i <= 50; ++i) {
        counted.run(&crew);
        ASSERT_TRUE(counted.each(i)) << threads << " threads, " << pieces << " pieces";
      }
      EXPECT_LE(counted.most(), threads);
    }
  }
}

TEST(Crew, ThatWasNotStartedLeavesAllToTheCaller) {
  Crew crew(4);
  Counted counted(9);
  counted.run(&crew);
  EXPECT_TRUE(counted.each(1));
  EXPECT_EQ(counted.most(), 1);
}

TEST(Crew, HelpsWhileTheCallerIsAtIt) {
  Crew crew(3);
  crew.start();
  // Three pieces that end together: with fewer threads none would.
  std::atomic<int> begun{0};
  crew.run(3, [&](size_t) {
    ++begun;
    while (begun < 3) std::this_thread::yield();
  });
  EXPECT_EQ(begun, 3);
}

TEST(Crew, ServesSeveralCallers) {
  Crew crew(3);
  crew.start();
  Counted all(40);
  constexpr int kCallers = 3, kRuns = 60;
  std::vector<std::thread> callers;
  for (int c = 0; c < kCallers; ++c) {
    callers.emplace_back([&] {
      for (int i = 0; i < kRuns; ++i) all.run(&crew);
    });
  }
  for (std::thread& caller : callers) caller.join();
  EXPECT_TRUE(all.each(kCallers * kRuns));
}

}  // namespace
}  // namespace netcl::openblas
