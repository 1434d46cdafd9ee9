// The run's directory: its name, its files, and where it cannot be written.
#include "apps/netcl_app/run_dir.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <functional>

#include "core/base/error.h"
#include "core/base/file.h"

namespace netcl::app {
namespace {

namespace fs = std::filesystem;

std::string message_of(const std::function<void()>& action) {
  try {
    action();
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), ErrorCode::kCheckpoint) << e.message();
    return e.message();
  }
  return "(no error)";
}

class RunDirTest : public testing::Test {
 protected:
  RunDirTest() : root_((fs::path(testing::TempDir()) / "netcl_run_dir_test").lexically_normal()) {
    fs::remove_all(root_);
    fs::create_directories(root_);
  }
  ~RunDirTest() override { fs::remove_all(root_); }
  fs::path root_;
};

TEST_F(RunDirTest, NamesCarryTheTimeAndASuffixIfTaken) {
  const std::time_t now = 1700000000;  // 14 or 15 November 2023, whatever the time zone
  const fs::path first = RunDir::create(root_, "digits", now).path();
  EXPECT_EQ(first.parent_path(), root_ / "runs");
  const std::string name = first.filename().string();
  ASSERT_EQ(name.size(), std::string("digits-20231114-221320").size());
  EXPECT_EQ(name.substr(0, 13), "digits-202311");
  EXPECT_EQ(RunDir::create(root_, "digits", now).path().string(), first.string() + "-2");
  EXPECT_EQ(RunDir::create(root_, "digits", now).path().string(), first.string() + "-3");
  const fs::path odd = RunDir::create(root_, "../a b", now).path();
  EXPECT_EQ(odd.parent_path(), root_ / "runs");
  EXPECT_EQ(odd.filename().string().substr(0, 7), "_._a_b-");
  EXPECT_TRUE(fs::is_directory(first / "checkpoints"));
}

TEST_F(RunDirTest, WritesConfigEnvironmentAndMetrics) {
  const fs::path path = root_ / "deep" / "out";
  const std::string lines = "{\"step\":1,\"loss\":0.5}\n{\"step\":2,\"loss\":0.25}\n";
  {
    RunDir run = RunDir::open(path);
    run.write_config({{"epochs", 2}});
    run.write_environment({{"version", "0"}});
    run.append_metrics({{"step", 1}, {"loss", 0.5}});
    run.append_metrics({{"step", 2}, {"loss", 0.25}});
    EXPECT_EQ(read_file(path / "config.json", ErrorCode::kInternal), "{\n  \"epochs\": 2\n}\n");
    EXPECT_EQ(read_file(path / "metrics.jsonl", ErrorCode::kInternal), lines);
    EXPECT_TRUE(fs::exists(path / "environment.json"));
    for (const bool resume : {false, true}) {
      EXPECT_EQ(
          message_of([&] { RunDir::open(path, resume); }),
          path.string() + ": another run writes to it now; choose another directory with --out");
    }
    EXPECT_EQ(read_file(path / "metrics.jsonl", ErrorCode::kInternal), lines);
  }
  write_file_atomic(path / "checkpoints" / "last.safetensors", "x", ErrorCode::kInternal);
  EXPECT_EQ(message_of([&] { RunDir::open(path); }),
            path.string() +
                ": holds a run already; choose another directory with --out, or go on with it: "
                "--resume " +
                path.string());
  RunDir::open(path, /*resume=*/true).append_metrics({{"step", 3}});
  EXPECT_EQ(read_file(path / "metrics.jsonl", ErrorCode::kInternal), lines + "{\"step\":3}\n");
}

TEST_F(RunDirTest, ARunWithoutACheckpointIsBegunAnew) {
  const fs::path path = root_ / "early";
  RunDir::open(path).append_metrics({{"step", 1}});
  RunDir::open(path).append_metrics({{"step", 2}});
  EXPECT_EQ(read_file(path / "metrics.jsonl", ErrorCode::kInternal), "{\"step\":2}\n");
}

TEST_F(RunDirTest, ErrorsNameThePath) {
  write_file_atomic(root_ / "file", "x", ErrorCode::kInternal);
  const std::string under = (root_ / "file" / "out").string();
  EXPECT_EQ(message_of([&] { RunDir::open(under); }),
            under + ": the directory cannot be made: Not a directory; choose another with --out");
  EXPECT_NE(message_of([&] { RunDir::create(root_ / "file", "a", 0); }).find("file/runs"),
            std::string::npos);
}

TEST_F(RunDirTest, FullDiskIsAnErrorThatNamesTheFile) {
  if (::access("/dev/full", W_OK) != 0) GTEST_SKIP() << "no /dev/full here";
  fs::create_directories(root_ / "out");
  fs::create_symlink("/dev/full", root_ / "out" / "metrics.jsonl");
  RunDir run = RunDir::open(root_ / "out");
  EXPECT_EQ(message_of([&] {
              run.append_metrics({{"step", 1}});
            }),
            (root_ / "out" / "metrics.jsonl").string() +
                ": cannot be written: No space left on device; free some space, then go on with "
                "--resume");
}

}  // namespace
}  // namespace netcl::app
