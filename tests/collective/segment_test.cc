// The control segment and waiting on shared words.
#include "core/collective/segment.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstring>
#include <string>
#include <thread>
#include <vector>

#include "core/base/error.h"
#include "core/collective/futex.h"
#include "core/collective/segment_layout.h"

namespace netcl {
namespace {

TEST(Futex, ReturnsAtOnceWhenTheWordHasChanged) {
  std::atomic<uint32_t> word{1};
  EXPECT_TRUE(futex_wait(word, 0, 10'000'000'000u));
}

TEST(Futex, TimesOut) {
  std::atomic<uint32_t> word{0};
  const uint64_t start = monotonic_ns();
  while (futex_wait(word, 0, 2'000'000)) {
  }
  EXPECT_GE(monotonic_ns() - start, 2'000'000u);
}

TEST(Futex, AWakeEndsTheWait) {
  std::atomic<uint32_t> word{0};
  std::thread waker([&] {
    word.store(1);
    futex_wake_all(word);
  });
  while (word.load() == 0) futex_wait(word, 0, 10'000'000'000u);
  waker.join();
}

TEST(Futex, NoSpinningWhenWaitersFillTheMachine) { EXPECT_EQ(spin_budget(100'000), 0u); }

TEST(Segment, AttachSeesWhatTheOtherSideWrites) {
  const auto supervisor = Segment::create(3);
  const auto worker = Segment::attach(UniqueFd(fcntl(supervisor->fd(), F_DUPFD_CLOEXEC, 0)));
  EXPECT_EQ(worker->n_ranks(), 3u);
  worker->set_identity(2, 4711, "Some Device");
  worker->set_phase(2, "compiling");
  worker->set_step(2, 17);
  CollectiveNote note;
  note.sequence = 9;
  note.count = 1000;
  std::strcpy(note.name, "bucket 3");
  worker->set_collective(2, note);
  const RankState s = supervisor->state(2);
  EXPECT_EQ(s.pid, 4711);
  EXPECT_EQ(s.device, "Some Device");
  EXPECT_EQ(s.phase, "compiling");
  EXPECT_EQ(s.step, 17);
  EXPECT_EQ(s.ticks, 4u);
  EXPECT_GT(s.heartbeat_ns, 0u);
  EXPECT_EQ(s.collective.sequence, 9u);
  EXPECT_STREQ(s.collective.name, "bucket 3");
  EXPECT_EQ(supervisor->state(1).ticks, 0u);
}

TEST(Segment, TheFirstReasonToAbortWins) {
  const auto segment = Segment::create(2);
  EXPECT_FALSE(segment->aborted());
  EXPECT_TRUE(segment->abort("rank 1 was killed"));
  EXPECT_FALSE(segment->abort("too late"));
  EXPECT_EQ(segment->aborted().value(), "rank 1 was killed");
}

TEST(Segment, LongTextIsCutNotOverrun) {
  const auto segment = Segment::create(1);
  segment->abort(std::string(10'000, 'x'));
  EXPECT_EQ(segment->aborted().value(), std::string(511, 'x'));
  segment->set_identity(0, 1, std::string(1000, 'd'));
  EXPECT_EQ(segment->state(0).device, std::string(127, 'd'));
}

TEST(Segment, TheFlightRecorderKeepsTheLast64) {
  const auto segment = Segment::create(2);
  for (int i = 0; i < 100; ++i) segment->record(1, "event " + std::to_string(i));
  const std::vector<FlightEvent> events = segment->flight(1);
  ASSERT_EQ(events.size(), 64u);
  EXPECT_EQ(events.front().text, "event 36");
  EXPECT_EQ(events.back().text, "event 99");
  EXPECT_EQ(events.back().number, 99u);
  EXPECT_TRUE(segment->flight(0).empty());
}

TEST(Segment, TextIsNeverTorn) {
  // One rank rewrites its phase; a reader sees one of the two texts whole, never a mixture.
  const auto segment = Segment::create(1);
  segment->set_phase(0, std::string(50, 'a'));
  std::thread writer([&] {
    for (int i = 0; i < 20'000; ++i) segment->set_phase(0, std::string(50, i % 2 == 0 ? 'a' : 'b'));
    segment->set_step(0, 1);
  });
  while (segment->state(0).step == 0) {
    const std::string phase = segment->state(0).phase;
    ASSERT_EQ(phase, std::string(50, phase[0]));
  }
  writer.join();
}

TEST(Segment, RefusesWhatIsNoSegment) {
  EXPECT_THROW(Segment::create(0), Error);
  EXPECT_THROW(Segment::create(kMaxRanks + 1), Error);
  EXPECT_THROW(Segment::attach(UniqueFd()), Error);
  UniqueFd other(memfd_create("other", MFD_CLOEXEC));
  ASSERT_EQ(ftruncate(other.get(), 1 << 20), 0);
  EXPECT_THROW(Segment::attach(std::move(other)), Error);
}

TEST(Segment, BlocksBeginAtCacheLines) {
  EXPECT_EQ(sizeof(segment_layout::Header) % 64, 0u);
  EXPECT_EQ(sizeof(segment_layout::RankBlock) % 64, 0u);
}

}  // namespace
}  // namespace netcl
