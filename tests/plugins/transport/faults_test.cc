// The host transport when ranks disagree, come late, give up or die; broadcast and barrier.
#include <gtest/gtest.h>

#include <atomic>
#include <cstring>
#include <limits>
#include <string>
#include <thread>
#include <vector>

#include "tests/plugins/transport/rank.h"

namespace netcl::testing {
namespace {

constexpr uint64_t kMinuteMs = 60'000;

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

void expect_mismatch(const std::function<netcl_coll(Rank&, const netcl_bucket&)>& make,
                     const std::string& side0, const std::string& side2) {
  TestDevice device;
  on_ranks(device, 3, staged(4096, true), kMinuteMs, [&](Rank& rank) {
    const netcl_bucket bucket = rank.bucket(128 * 1024);
    const std::vector<char> zero(bucket.bytes);
    cl_event written = rank.write(bucket, 0, zero.data(), zero.size());
    clWaitForEvents(1, &written);
    clReleaseEvent(written);
    const Status s = status_of([&] { rank.wait(rank.post(make(rank, bucket))); });
    EXPECT_EQ(s.code, static_cast<netcl_rc>(NETCL_E_STATE)) << s.text;
    EXPECT_TRUE(contains(s.text, side0)) << s.text;
    EXPECT_TRUE(contains(s.text, side2)) << s.text;
    // Nothing was added: the result is untouched.
    std::vector<char> got(bucket.bytes, 1);
    rank.read(bucket, 0, got.data(), got.size());
    EXPECT_EQ(got, zero);
    const Status later = status_of([&] { rank.post(Rank::barrier()); });
    EXPECT_EQ(later.code, static_cast<netcl_rc>(NETCL_E_STATE));
  });
}

TEST(Mismatch, CountIsNamedOnEveryRank) {
  expect_mismatch(
      [](Rank& rank, const netcl_bucket& b) {
        return Rank::all_reduce(b, 0, rank.rank() == 2 ? 999 : 9000, NETCL_F32, NETCL_SUM);
      },
      "rank 0 posts all_reduce \"test\" (number 1, sum, f32, 9000 elements",
      "rank 2 posts all_reduce \"test\" (number 1, sum, f32, 999 elements");
}

TEST(Mismatch, OperationTypeNameAndKindAreNamed) {
  expect_mismatch(
      [](Rank& rank, const netcl_bucket& b) {
        return Rank::all_reduce(b, 0, 100, NETCL_F32, rank.rank() == 2 ? NETCL_MAX : NETCL_SUM);
      },
      "rank 0 posts all_reduce \"test\" (number 1, sum",
      "rank 2 posts all_reduce \"test\" (number 1, max");
  expect_mismatch(
      [](Rank& rank, const netcl_bucket& b) {
        return Rank::all_reduce(b, 0, 100, rank.rank() == 2 ? NETCL_I32 : NETCL_F32, NETCL_SUM);
      },
      "sum, f32, 100", "sum, i32, 100");
  expect_mismatch(
      [](Rank& rank, const netcl_bucket& b) {
        return Rank::all_reduce(b, 0, 100, NETCL_F32, NETCL_SUM, rank.rank() == 2 ? "two" : "one");
      },
      "rank 0 posts all_reduce \"one\"", "rank 2 posts all_reduce \"two\"");
  expect_mismatch(
      [](Rank& rank, const netcl_bucket& b) {
        return rank.rank() == 2 ? Rank::barrier("end")
                                : Rank::all_reduce(b, 0, 100, NETCL_F32, NETCL_SUM);
      },
      "rank 0 posts all_reduce", "rank 2 posts barrier \"end\"");
}

TEST(Mismatch, KindRootAndPartsAreNamed) {
  static constexpr uint64_t kParts[] = {20, 30, 50}, kOthers[] = {20, 50, 30};
  expect_mismatch(
      [](Rank& rank, const netcl_bucket& b) {
        netcl_coll c = Rank::all_reduce(b, 0, 100, NETCL_F32, NETCL_SUM);
        if (rank.rank() == 2) c.kind = NETCL_REDUCE_SCATTER;
        return c;
      },
      "rank 0 posts all_reduce \"test\"",
      "rank 2 posts reduce_scatter \"test\" (number 1, sum, f32, 100 elements at byte 0 of 131072, "
      "parts 34+33+33)");
  for (const uint32_t kind :
       {NETCL_REDUCE_SCATTER, NETCL_ALL_GATHER, NETCL_SCATTER, NETCL_GATHER}) {
    expect_mismatch(
        [kind](Rank& rank, const netcl_bucket& b) {
          netcl_coll c = Rank::all_reduce(b, 0, 100, NETCL_F32, NETCL_SUM);
          c.kind = kind;
          c.counts = rank.rank() == 2 ? kOthers : kParts;
          return c;
        },
        "parts 20+30+50)", "parts 20+50+30)");
  }
  expect_mismatch(
      [](Rank& rank, const netcl_bucket& b) {
        netcl_coll c = Rank::all_reduce(b, 0, 100, NETCL_F32, 0);
        c.kind = NETCL_SCATTER;
        c.root = rank.rank() == 2 ? 1 : 0;
        return c;
      },
      "scatter \"test\" (number 1, root 0", "scatter \"test\" (number 1, root 1");
  expect_mismatch(
      [](Rank& rank, const netcl_bucket& b) {
        netcl_coll c = Rank::all_reduce(b, 0, 100, NETCL_F32, NETCL_SUM);
        if (rank.rank() == 2) c.flags = NETCL_COLL_OVERLAPPED;
        return c;
      },
      "rank 0 posts all_reduce", "of 131072, overlapped)");
}

TEST(Arguments, PartsRootsAndWeightsAreRefused) {
  TestDevice device;
  on_ranks(device, 1, host_transport::Options{}, kMinuteMs, [](Rank& rank) {
    const netcl_bucket b = rank.bucket(1000);
    const auto text = [&](netcl_coll c) {
      const Status s = status_of([&] { rank.post(c); });
      EXPECT_EQ(s.code, static_cast<netcl_rc>(NETCL_E_ARG)) << s.text;
      return s.text;
    };
    netcl_coll c = Rank::all_reduce(b, 0, 100, NETCL_F32, NETCL_SUM);
    c.kind = NETCL_REDUCE_SCATTER;
    const uint64_t too_few[] = {99}, too_many[] = {101};
    c.counts = too_few;
    EXPECT_TRUE(contains(text(c), "the ranks' parts have 99 elements, not 100"));
    c.counts = too_many;
    EXPECT_TRUE(contains(text(c), "the ranks' parts have more than 100"));
    c.counts = nullptr;
    c.kind = NETCL_GATHER;
    c.root = 1;
    EXPECT_TRUE(contains(text(c), "root 1 of 1 ranks"));
    c.kind = 8;
    EXPECT_TRUE(contains(text(c), "kind 8 is not known"));
    c = Rank::all_reduce(b, 0, 100, NETCL_F32, NETCL_MEAN);
    c.weight = -1;
    EXPECT_TRUE(contains(text(c), "the weight -1.0"));
    c.weight = std::numeric_limits<double>::infinity();
    EXPECT_TRUE(contains(text(c), "no finite number"));
    c = Rank::all_reduce(b, 0, 100, NETCL_I32, NETCL_MEAN);
    c.weight = 2;
    EXPECT_TRUE(contains(text(c), "the mean of integers has no weights but 1"));
  });
}

TEST(Arguments, AreRefusedBeforeAnythingIsPosted) {
  TestDevice device;
  on_ranks(device, 1, host_transport::Options{}, kMinuteMs, [](Rank& rank) {
    const netcl_bucket b = rank.bucket(1000);
    const auto code = [&](netcl_coll c) { return status_of([&] { rank.post(c); }).code; };
    const auto arg = static_cast<netcl_rc>(NETCL_E_ARG);
    EXPECT_EQ(code(Rank::all_reduce(b, 0, 251, NETCL_F32, NETCL_SUM)), arg);
    EXPECT_EQ(code(Rank::all_reduce(b, 2, 1, NETCL_F32, NETCL_SUM)), arg);
    EXPECT_EQ(code(Rank::all_reduce(b, 4, ~uint64_t{0} / 4, NETCL_F32, NETCL_SUM)), arg);
    EXPECT_EQ(code(Rank::all_reduce(b, 0, 1, NETCL_BOOL, NETCL_SUM)), arg);
    EXPECT_EQ(code(Rank::all_reduce(b, 0, 1, NETCL_F32, 9)), arg);
    EXPECT_EQ(code(Rank::all_reduce(b, 0, 1, 99, NETCL_SUM)), arg);
    EXPECT_EQ(status_of([&] { rank.wait(1); }).code, arg);
    rank.wait(rank.post(Rank::all_reduce(b, 0, 250, NETCL_F32, NETCL_SUM)));
  });
}

TEST(Timeout, NamesTheLateRankAndTheCollective) {
  host_transport::Options exchange = staged(16 * 1024, false);
  exchange.on_devices = true;
  exchange.kernels = reduce_kernels_dir();
  for (const host_transport::Options& options : {host_transport::Options{}, exchange}) {
    TestDevice device;
    std::atomic<int> done{0};
    on_ranks(device, 3, options, 100, [&](Rank& rank) {
      const netcl_bucket b = rank.bucket(1 << 20);
      if (rank.rank() == 1) {
        while (done.load() < 2) std::this_thread::yield();
        return;
      }
      const Status s = status_of([&] {
        rank.wait(rank.post(Rank::all_reduce(b, 0, 100'000, NETCL_F32, NETCL_SUM, "bucket 3")));
      });
      ++done;
      EXPECT_EQ(s.code, static_cast<netcl_rc>(NETCL_E_TIMEOUT)) << s.text;
      EXPECT_TRUE(contains(s.text, "100 ms in all_reduce \"bucket 3\" (number 1) for rank 1;"))
          << s.text;
    });
  }
}

TEST(Abort, WakesThisRankAndTellsThePeers) {
  TestDevice device;
  on_ranks(device, 3, host_transport::Options{}, kMinuteMs, [](Rank& rank) {
    const netcl_bucket b = rank.bucket(1 << 20);
    if (rank.rank() == 2) {
      rank.abort("out of memory in backward");
      EXPECT_EQ(status_of([&] { rank.post(Rank::barrier()); }).code,
                static_cast<netcl_rc>(NETCL_E_CANCELLED));
      return;
    }
    const Status s = status_of(
        [&] { rank.wait(rank.post(Rank::all_reduce(b, 0, 1000, NETCL_F32, NETCL_SUM))); });
    EXPECT_EQ(s.code, static_cast<netcl_rc>(NETCL_E_PEER)) << s.text;
    EXPECT_TRUE(contains(s.text, "out of memory in backward")) << s.text;
  });
}

TEST(Abort, WakesAWaiterOfTheSameRank) {
  TestDevice device;
  on_ranks(device, 2, host_transport::Options{}, kMinuteMs, [](Rank& rank) {
    const netcl_bucket b = rank.bucket(1024);
    rank.bucket(1 << 20);
    if (rank.rank() == 1) return;  // never posts; its end is not waited for
    const uint64_t ticket = rank.post(Rank::all_reduce(b, 0, 16, NETCL_F32, NETCL_SUM));
    std::thread other([&] { rank.abort("stop"); });
    const Status s = status_of([&] { rank.wait(ticket); });
    other.join();
    EXPECT_EQ(s.code, static_cast<netcl_rc>(NETCL_E_CANCELLED)) << s.text;
    EXPECT_TRUE(contains(s.text, "stop")) << s.text;
  });
}

TEST(HostAbort, TheSegmentsReasonReachesEveryWaiter) {
  TestDevice device;
  const auto segment = Segment::create(3);
  std::vector<std::thread> threads;
  std::atomic<int> posted{0};
  for (uint32_t r = 0; r < 3; ++r) {
    threads.emplace_back([&, r] {
      Rank rank(device, segment, r, host_transport::Options{}, kMinuteMs);
      const netcl_bucket b = rank.bucket(1 << 20);
      if (r == 1) {
        while (posted.load() < 2) std::this_thread::yield();
        segment->abort("worker 1 was killed by signal 9 (SIGKILL)");
        return;
      }
      const uint64_t ticket = rank.post(Rank::all_reduce(b, 0, 1000, NETCL_F32, NETCL_SUM));
      ++posted;
      const Status s = status_of([&] { rank.wait(ticket); });
      EXPECT_EQ(s.code, static_cast<netcl_rc>(NETCL_E_PEER));
      EXPECT_EQ(s.text, "worker 1 was killed by signal 9 (SIGKILL)");
    });
  }
  for (std::thread& t : threads) t.join();
}

TEST(Broadcast, EveryRootReachesEveryRank) {
  TestDevice device;
  for (const bool zero_copy : {true, false}) {
    on_ranks(device, 3, staged(4096, zero_copy), kMinuteMs, [](Rank& rank) {
      for (const uint64_t bytes : {1000u, 200'000u}) {
        const netcl_bucket b = rank.bucket(bytes);
        for (uint32_t root = 0; root < 3; ++root) {
          std::vector<uint8_t> mine(bytes);
          for (size_t i = 0; i < bytes; ++i) mine[i] = static_cast<uint8_t>(i * 7 + rank.rank());
          netcl_coll c = Rank::all_reduce(b, 0, bytes, NETCL_U8, 0);
          c.kind = NETCL_BROADCAST;
          c.root = root;
          cl_event ready = rank.write(b, 0, mine.data(), bytes);
          c.ready = ready;
          rank.wait(rank.post(c));
          clReleaseEvent(ready);
          std::vector<uint8_t> got(bytes);
          rank.read(b, 0, got.data(), bytes);
          for (size_t i = 0; i < bytes; ++i) {
            ASSERT_EQ(got[i], static_cast<uint8_t>(i * 7 + root)) << i;
          }
        }
      }
    });
  }
}

TEST(Barrier, NobodyLeavesBeforeAllHaveCome) {
  TestDevice device;
  std::atomic<uint32_t> arrived{0};
  on_ranks(device, 5, host_transport::Options{}, kMinuteMs, [&](Rank& rank) {
    for (uint32_t round = 1; round <= 50; ++round) {
      ++arrived;
      rank.wait(rank.post(Rank::barrier()));
      ASSERT_GE(arrived.load(), 5 * round);
    }
  });
}

TEST(Bits, DoNotDependOnChunksWaysOrThreads) {
  TestDevice device;
  std::vector<uint32_t> first;
  for (const uint64_t chunk : {64u, 1000u, 4096u, 1u << 20}) {
    for (const uint32_t threads : {0u, 3u}) {
      const bool zero_copy = threads == 0 && chunk != 1000;
      host_transport::Options options = staged(chunk, zero_copy);
      options.reducers = threads;
      on_ranks(device, 4, options, kMinuteMs, [&](Rank& rank) {
        const uint64_t count = 30'011;
        const netcl_bucket b = rank.bucket(count * 4);
        std::vector<float> mine(count);
        for (size_t i = 0; i < count; ++i) {
          mine[i] = 1.0f / static_cast<float>(i * 4 + rank.rank() + 1);
        }
        netcl_coll c = Rank::all_reduce(b, 0, count, NETCL_F32, NETCL_SUM);
        cl_event ready = rank.write(b, 0, mine.data(), count * 4);
        c.ready = ready;
        rank.wait(rank.post(c));
        clReleaseEvent(ready);
        std::vector<uint32_t> got(count);
        rank.read(b, 0, got.data(), count * 4);
        if (rank.rank() != 0) return;
        if (first.empty()) first = got;
        EXPECT_EQ(got, first) << "chunk " << chunk << " threads " << threads;
      });
    }
  }
}

TEST(Accept, DeclinesRanksOnSeveralMachines) {
  const netcl_host host = make_fake_host();
  host_transport::HostTransport transport(&host);
  const auto* api =
      static_cast<const netcl_transport_api*>(transport.query(NETCL_TRANSPORT_INTERFACE));
  EXPECT_EQ(transport.query("netcl.kernels/1"), nullptr);
  netcl_member members[3] = {{0, 0, 0, 0}, {1, 0, 1, 1}, {2, 1, 2, 2}};
  netcl_group_spec spec{};
  spec.size = sizeof(spec);
  spec.n_ranks = 3;
  spec.members = members;
  netcl_call call;
  auto* self = reinterpret_cast<netcl_plugin*>(static_cast<plugin::Plugin*>(&transport));
  EXPECT_EQ(api->accept(self, &call, &spec), static_cast<netcl_rc>(NETCL_DECLINE));
  EXPECT_TRUE(contains(call.text, "ranks 0 and 2")) << call.text;
  spec.n_ranks = 2;
  EXPECT_EQ(api->accept(self, &call, &spec), static_cast<netcl_rc>(NETCL_OK));
}

}  // namespace
}  // namespace netcl::testing
