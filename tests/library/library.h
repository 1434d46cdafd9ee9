// What a test of the library needs: a Runtime with the project's plugins, for the whole suite, and
// the toy problem of tests/distributed as a program would hold it.
#ifndef NETCL_TESTS_LIBRARY_LIBRARY_H_
#define NETCL_TESTS_LIBRARY_LIBRARY_H_

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "core/data/batches.h"
#include "core/distributed/batch.h"
#include "core/distributed/device_manager.h"
#include "core/runtime/runtime.h"

namespace netcl {
namespace testing {

// Runfiles are links; a plugin whose library is a link to elsewhere is refused.
inline std::unique_ptr<Runtime> make_runtime() {
  RuntimeOptions options;
  for (const auto& entry : std::filesystem::directory_iterator("plugins/dir")) {
    const auto manifest = entry.path() / "plugin.json";
    options.plugins.paths.push_back(std::filesystem::canonical(manifest).parent_path());
  }
  std::sort(options.plugins.paths.begin(), options.plugins.paths.end());
  return std::make_unique<Runtime>(std::move(options));
}

// One Runtime a suite: programs are built once, and it is gone before drivers clean up.
class LibraryTest : public ::testing::Test {
 protected:
  static void SetUpTestSuite() { runtime_ = make_runtime(); }
  static void TearDownTestSuite() { runtime_.reset(); }
  static Runtime& runtime() { return *runtime_; }
  // n queues of the first processor.
  static std::vector<std::shared_ptr<Queue>> queues(size_t n) {
    return DeviceManager(*runtime_).queues("cpu:0/" + std::to_string(n));
  }

 private:
  static inline std::unique_ptr<Runtime> runtime_;
};

// Three clouds of points in eight dimensions.
struct ToyBatch {
  ToyBatch(int64_t rows, uint64_t seed) {
    for (int64_t i = 0; i < rows; ++i) {
      const auto label = static_cast<int32_t>(random_bits(seed, 1, static_cast<uint64_t>(i)) % 3);
      y.push_back(label);
      for (int64_t d = 0; d < 8; ++d) {
        const uint64_t bits = random_bits(seed, 2, static_cast<uint64_t>(i * 8 + d));
        const double noise = static_cast<double>(bits >> 11) * 0x1p-52 - 1;
        x.push_back(static_cast<float>((d % 3 == label ? 1.5 : 0) + noise));
      }
    }
  }
  Batch batch() const { return {x, y}; }

  std::vector<float> x;
  std::vector<int32_t> y;
};

// Twenty batches of 32 rows, of which every fourth is a last one of 13.
inline std::vector<ToyBatch> toy_steps() {
  std::vector<ToyBatch> out;
  for (uint64_t i = 0; i < 20; ++i) out.emplace_back(i % 4 == 3 ? 13 : 32, i);
  return out;
}

inline double largest_difference(const std::vector<float>& a, const std::vector<float>& b) {
  EXPECT_EQ(a.size(), b.size());
  double out = 0;
  for (size_t i = 0; i < std::min(a.size(), b.size()); ++i) {
    const double difference = std::fabs(static_cast<double>(a[i]) - static_cast<double>(b[i]));
    out = std::isnan(difference) ? INFINITY : std::max(out, difference);
  }
  return out;
}

// The words of the Error that `body` throws; fails if it throws none or another code.
template <typename Body>
std::string error_of(ErrorCode code, Body&& body) {
  try {
    body();
  } catch (const Error& e) {
    EXPECT_EQ(static_cast<int>(e.code()), static_cast<int>(code)) << e.message();
    return e.message();
  }
  ADD_FAILURE() << "no error";
  return "";
}

inline void expect_has(const std::string& text, const std::string& part) {
  EXPECT_NE(text.find(part), std::string::npos) << text << "\nlacks: " << part;
}

}  // namespace testing
}  // namespace netcl

#endif  // NETCL_TESTS_LIBRARY_LIBRARY_H_
