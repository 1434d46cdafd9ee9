// Programs are built once, found again on disk, rebuilt when their entry is damaged, and never
// depend on the disk.
#include "core/cl/program_cache.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <mutex>
#include <thread>

#include "core/base/file.h"
#include "tests/ops/device_fixture.h"

namespace netcl {
namespace testing {
namespace {
namespace fs = std::filesystem;

constexpr const char* kTwice =
    "__kernel void twice(__global float* x) { x[get_global_id(0)] *= FACTOR; }\n";

class ProgramCacheTest : public ::testing::Test {
 protected:
  ProgramCacheTest() : directory_(fs::path(::testing::TempDir()) / "program_cache_test") {
    fs::remove_all(directory_);
  }
  ~ProgramCacheTest() override { fs::remove_all(directory_); }

  ProgramCache cache(const fs::path& directory) {
    const Device& device = shared_device().device();
    return ProgramCache(device.info(), device.context(), device.cl_device(), directory,
                        Logger([this](LogLevel level, const std::string& text) {
                          const std::lock_guard<std::mutex> lock(mutex_);
                          if (level >= LogLevel::kWarning) warnings_.push_back(text);
                        }));
  }
  std::vector<fs::path> entries() const {
    std::vector<fs::path> out;
    for (const auto& entry : fs::directory_iterator(directory_)) out.push_back(entry.path());
    return out;
  }
  // Runs the program on 21.
  static float run(const cl::Program& program) {
    DeviceFixture& f = shared_device();
    Tensor x = Tensor::from_floats(f.queue(), Shape{1}, {21});
    cl::Kernel kernel(program, "twice");
    kernel.setArg(0, x.buffer());
    f.queue()->cl().enqueueNDRangeKernel(kernel, cl::NullRange, cl::NDRange(1), cl::NullRange);
    f.queue()->finish();  // the tensor does not know of a kernel enqueued behind its back
    return x.item();
  }

  fs::path directory_;
  std::mutex mutex_;
  std::vector<std::string> warnings_;
};

TEST_F(ProgramCacheTest, BuildsOnce) {
  ProgramCache c = cache("");
  size_t ticks = 0;
  c.set_progress([&] { ++ticks; });
  const cl::Program first = c.get(kTwice, "-DFACTOR=2.0f");
  EXPECT_EQ(c.get(kTwice, "-DFACTOR=2.0f")(), first());
  EXPECT_EQ(c.num_built(), 1u);
  EXPECT_EQ(ticks, 2u);
  EXPECT_EQ(run(c.get(kTwice, "-DFACTOR=3.0f")), 63);  // other options are another program
  EXPECT_EQ(c.num_built(), 2u);
  EXPECT_EQ(c.num_from_disk(), 0u);
}

TEST_F(ProgramCacheTest, FindsItsEntryAgain) {
  cache(directory_).get(kTwice, "-DFACTOR=2.0f");
  ASSERT_EQ(entries().size(), 1u);
  ProgramCache second = cache(directory_);
  EXPECT_EQ(run(second.get(kTwice, "-DFACTOR=2.0f")), 42);
  EXPECT_EQ(second.num_built(), 0u);
  EXPECT_EQ(second.num_from_disk(), 1u);
  second.get(kTwice, "-DFACTOR=4.0f");
  EXPECT_EQ(second.num_built(), 1u);
  EXPECT_EQ(entries().size(), 2u);
  EXPECT_TRUE(warnings_.empty());
}

TEST_F(ProgramCacheTest, RebuildsADamagedEntry) {
  cache(directory_).get(kTwice, "-DFACTOR=2.0f");
  const fs::path entry = entries().at(0);
  const std::string good = read_file(entry, ErrorCode::kInternal);
  std::vector<std::string> damaged = {"", good.substr(0, 10), good.substr(0, good.size() - 1),
                                      good + "x"};
  for (const size_t at : {size_t{0}, size_t{9}, size_t{17}, size_t{25}, good.size() - 1}) {
    damaged.push_back(good);
    damaged.back()[at] = static_cast<char>(damaged.back()[at] ^ 1);
  }
  for (const std::string& bytes : damaged) {
    std::ofstream(entry, std::ios::binary) << bytes;
    ProgramCache c = cache(directory_);
    EXPECT_EQ(run(c.get(kTwice, "-DFACTOR=2.0f")), 42);
    EXPECT_EQ(c.num_built(), 1u);
    EXPECT_EQ(cache(directory_).num_built(), 0u);
    ProgramCache repaired = cache(directory_);
    repaired.get(kTwice, "-DFACTOR=2.0f");
    EXPECT_EQ(repaired.num_from_disk(), 1u) << "the entry was not written anew";
  }
  ASSERT_FALSE(warnings_.empty());
  EXPECT_NE(warnings_[0].find("is damaged and will be rebuilt"), std::string::npos);
}

// As devices of one process have: each its own cache, over one directory.
TEST_F(ProgramCacheTest, CachesOfOneProcessShareADirectory) {
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i)
    threads.emplace_back([this] { cache(directory_).get(kTwice, "-DFACTOR=6.0f"); });
  for (std::thread& thread : threads) thread.join();
  EXPECT_TRUE(warnings_.empty()) << warnings_[0];
  ASSERT_EQ(entries().size(), 1u);
  ProgramCache again = cache(directory_);
  EXPECT_EQ(run(again.get(kTwice, "-DFACTOR=6.0f")), 126);
  EXPECT_EQ(again.num_from_disk(), 1u);
}

TEST_F(ProgramCacheTest, WarnsOnceWhereItCannotWrite) {
  fs::create_directories(directory_);
  std::ofstream(directory_ / "file") << "in the way";
  ProgramCache c = cache(directory_ / "file" / "cache");
  EXPECT_EQ(run(c.get(kTwice, "-DFACTOR=2.0f")), 42);
  EXPECT_EQ(run(c.get(kTwice, "-DFACTOR=5.0f")), 105);
  ASSERT_EQ(warnings_.size(), 1u);
  EXPECT_NE(warnings_[0].find("not kept on disk"), std::string::npos);
}

TEST_F(ProgramCacheTest, AFailedBuildShowsCompilerAndSource) {
  try {
    const std::string pages(1000, 'x');
    cache("").get("#define LONG " + pages + "\n__kernel void broken() { nonsense; }\n", "-DA=1");
    FAIL();
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), ErrorCode::kDevice);
    for (const char* part : {"nonsense", "options: -DA=1", "compiler:", "source:"})
      EXPECT_NE(e.message().find(part), std::string::npos) << e.message();
    // What is wrong comes first.
    EXPECT_LT(e.message().find("compiler:"), e.message().find("options:"));
    EXPECT_LT(e.message().find("options:"), e.message().find("source:"));
    EXPECT_EQ(e.message().find(std::string(200, 'x')), std::string::npos) << e.message();
  }
}

}  // namespace
}  // namespace testing
}  // namespace netcl
