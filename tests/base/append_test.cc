// Lines that several writers append: none is lost, none is mixed with another.
#include "core/base/append.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <set>
#include <sstream>
#include <thread>
#include <vector>

#include "core/base/file.h"

namespace netcl {
namespace {

namespace fs = std::filesystem;

fs::path fresh(const std::string& name) {
  const fs::path path = fs::path(::testing::TempDir()) / "append" / name;
  fs::remove(path);
  return path;
}

TEST(AppendLine, ManyWritersLoseNothing) {
  const fs::path path = fresh("many.txt");
  std::vector<std::thread> writers;
  for (int w = 0; w < 4; ++w) {
    writers.emplace_back([&path, w] {
      for (int i = 0; i < 50; ++i)
        append_line(path, std::string(1000, static_cast<char>('a' + w)) + std::to_string(i),
                    ErrorCode::kUsage);
    });
  }
  for (std::thread& writer : writers) writer.join();
  std::istringstream lines(read_file(path, ErrorCode::kUsage));
  std::set<std::string> seen;
  for (std::string line; std::getline(lines, line);) {
    if (line.empty()) continue;
    EXPECT_EQ(line.find_first_not_of(line[0]), 1000u);
    EXPECT_TRUE(seen.insert(line).second);
  }
  EXPECT_EQ(seen.size(), 200u);
}

TEST(AppendLine, ALineThatWasCutOffIsNotContinued) {
  const fs::path path = fresh("cut.txt");
  fs::create_directories(path.parent_path());
  write_file_atomic(path, "whole\nha", ErrorCode::kUsage);
  append_line(path, "next", ErrorCode::kUsage);
  append_line(path, "last", ErrorCode::kUsage);
  EXPECT_EQ(read_file(path, ErrorCode::kUsage), "whole\nha\nnext\nlast\n");
}

TEST(AppendLine, AFileThatCannotBeWrittenIsAnErrorWithItsName) {
  try {
    append_line("/proc/none/file", "line", ErrorCode::kCheckpoint);
    FAIL();
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), ErrorCode::kCheckpoint);
    EXPECT_NE(e.message().find("/proc/none/file: cannot be written"), std::string::npos);
  }
  EXPECT_THROW(append_line("/dev/full", "line", ErrorCode::kCheckpoint), Error);
}

}  // namespace
}  // namespace netcl
