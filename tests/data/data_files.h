// What tests of data formats share: the message of a refusal, and files that go away. Threads: one.
#ifndef NETCL_TESTS_DATA_DATA_FILES_H_
#define NETCL_TESTS_DATA_DATA_FILES_H_

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <functional>
#include <string>

#include "core/base/error.h"

namespace netcl {

// The message of the kData error that `action` throws.
inline std::string message_of(const std::function<void()>& action) {
  try {
    action();
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), ErrorCode::kData) << e.message();
    return e.message();
  }
  return "(no error)";
}

// A file of the running test; removed at the end of its life.
class TempFile {
 public:
  TempFile(const std::string& name, const std::string& content)
      : path_(::testing::TempDir() + "/netcl_" +
              ::testing::UnitTest::GetInstance()->current_test_info()->name() + "_" + name) {
    std::ofstream(path_, std::ios::binary) << content;
  }
  ~TempFile() { std::filesystem::remove(path_); }
  TempFile(const TempFile&) = delete;
  TempFile& operator=(const TempFile&) = delete;
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

}  // namespace netcl

#endif  // NETCL_TESTS_DATA_DATA_FILES_H_
