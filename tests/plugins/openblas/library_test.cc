// The library is opened at run time and says why where it cannot serve; products in every form, cut
// into blocks; who calls it, and how. With a fake library, so that no other is needed.
#include "plugins/kernels/openblas/library.h"

#include <dlfcn.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <string>
#include <thread>
#include <vector>

#include "core/abi/netcl_plugin.hpp"
#include "plugins/kernels/openblas/crew.h"
#include "plugins/kernels/openblas/product.h"

namespace netcl::openblas {
namespace {

const std::string kFolder = "tests/plugins/openblas/";

std::string refusal(const std::string& file) {
  try {
    const Library library((kFolder + file).c_str());
  } catch (const plugin::Decline& e) {
    return e.what();
  }
  return "";
}

int counter(const std::string& file, const char* name) {
  void* handle = dlopen((kFolder + file).c_str(), RTLD_NOW | RTLD_NOLOAD);
  return reinterpret_cast<int (*)()>(dlsym(handle, name))();
}

TEST(Library, SaysWhyItDoesNotServe) {
  EXPECT_NE(refusal("nobody.so").find("nobody.so: cannot open shared object file"),
            std::string::npos)
      << refusal("nobody.so");
  EXPECT_NE(refusal("nobody.so").find("install it"), std::string::npos);
  EXPECT_NE(refusal("fake_without.so").find("has no function cblas_sgemm"), std::string::npos)
      << refusal("fake_without.so");
  EXPECT_NE(refusal("fake_wide.so").find("takes integers of 64 bits"), std::string::npos)
      << refusal("fake_wide.so");
}

TEST(Library, KnowsItselfAndHowManyMayCall) {
  const Library many((kFolder + "fake.so").c_str()), one((kFolder + "fake_serial.so").c_str());
  EXPECT_EQ(many.name(), "1.2.3-Fake");
  EXPECT_EQ(many.max_callers(), 64);
  EXPECT_EQ(one.name(), "1.2.3-Fake");
  EXPECT_EQ(one.max_callers(), 1);
}

// Numbers of which sums are exact.
std::vector<float> whole_numbers(int64_t count, int64_t step) {
  std::vector<float> out;
  for (int64_t i = 0; i < count; ++i) out.push_back(static_cast<float>((i * step) % 7 - 3));
  return out;
}

void expect_right(const Product& of, const Library& library, Crew* crew) {
  const auto a = whole_numbers(std::max(of.batch * of.a_batch, of.m * of.k), 5);
  const auto b = whole_numbers(std::max(of.batch * of.b_batch, of.n * of.k), 3);
  const auto bias = whole_numbers(of.n, 2);
  std::vector<float> y(static_cast<size_t>(of.batch * of.m * of.n), -1e9f);
  crew->run(of.num_pieces(), [&](size_t piece) {
    of.compute(piece, library, a.data(), b.data(), bias.data(), y.data());
  });
  const auto at = [](const std::vector<float>& v, int64_t i) { return v[static_cast<size_t>(i)]; };
  for (int64_t z = 0; z < of.batch; ++z) {
    for (int64_t i = 0; i < of.m; ++i) {
      for (int64_t j = 0; j < of.n; ++j) {
        float sum = at(bias, j);
        for (int64_t l = 0; l < of.k; ++l) {
          sum += at(a, z * of.a_batch + (of.a_transposed ? l * of.m + i : i * of.k + l)) *
                 at(b, z * of.b_batch + (of.b_transposed ? j * of.k + l : l * of.n + j));
        }
        if (of.relu && sum < 0) sum = 0;
        ASSERT_EQ(at(y, (z * of.m + i) * of.n + j), sum) << z << " " << i << " " << j;
      }
    }
  }
}

TEST(Product, IsRightInEveryFormAndCut) {
  const Library library((kFolder + "fake.so").c_str());
  Crew crew(3);
  crew.start();
  for (const bool a_transposed : {false, true}) {
    for (const bool b_transposed : {false, true}) {
      for (const int64_t k : {0, 1, 13}) {
        SCOPED_TRACE(::testing::Message() << a_transposed << b_transposed << " K " << k);
        const int64_t m = 19, n = 23;
        expect_right({m, n, k, 1, 0, 0, a_transposed, b_transposed, true, 4, 8}, library, &crew);
        expect_right({m, n, k, 3, m * k, 0, a_transposed, b_transposed, false, 64, 64}, library,
                     &crew);
        expect_right({m, n, k, 3, m * k, n * k, a_transposed, b_transposed, false, 5, 23}, library,
                     &crew);
      }
    }
  }
  EXPECT_EQ(counter("fake.so", "fake_blas_wrong"), 0);
  EXPECT_LE(counter("fake.so", "fake_blas_most"), 3);
}

TEST(Product, ALibraryWithoutThreadsIsCalledByOneAtATime) {
  const Library library((kFolder + "fake_serial.so").c_str());
  std::vector<std::thread> callers;
  for (int t = 0; t < 4; ++t) {
    callers.emplace_back([&] {
      Crew crew(1);
      for (int i = 0; i < 20; ++i)
        expect_right({9, 9, 9, 1, 0, 0, false, false, false, 4, 4}, library, &crew);
    });
  }
  for (std::thread& caller : callers) caller.join();
  EXPECT_EQ(counter("fake_serial.so", "fake_blas_wrong"), 0);
  EXPECT_EQ(counter("fake_serial.so", "fake_blas_most"), 1);
}

}  // namespace
}  // namespace netcl::openblas
