#include "core/verify/sample_cases.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <limits>

#include "core/base/error.h"

namespace netcl {

namespace {

constexpr std::array<int64_t, 17> kPrimes = {1,  2,  3,  5,  7,  11, 13, 17, 23,
                                             29, 37, 43, 53, 61, 67, 71, 79};
constexpr size_t kLargePrimes = 5;

// What rounding adds up to grows with the number of terms; the row's cases are small.
constexpr double kUsualElements = 1024, kMostGrowth = 64, kTolerance = 5e-6;

int64_t odd_size(int64_t size) {
  if (size > kPrimes.back())  // by the power of two, so that different large sizes mostly differ
    return kPrimes[kPrimes.size() - kLargePrimes +
                   static_cast<size_t>(std::log2(size)) % kLargePrimes];
  int64_t out = size;
  for (const int64_t prime : kPrimes) out = prime <= size ? prime : out;
  return out;
}

using Resize = std::function<int64_t(int64_t)>;

std::vector<TensorDesc> resized(std::vector<TensorDesc> in, const Resize& resize) {
  for (TensorDesc& desc : in) {
    for (size_t d = 0; d < desc.shape.rank(); ++d) desc.shape[d] = resize(desc.shape[d]);
  }
  return in;
}

bool takes(const OpRow& row, const std::vector<TensorDesc>& in, const Attrs& attrs) {
  try {
    row.infer({row, in, attrs});
    return true;
  } catch (const Error&) {
    return false;
  }
}

std::optional<std::vector<TensorDesc>> replaced(const OpRow& row, const std::vector<TensorDesc>& in,
                                                const Attrs& attrs, const Resize& resize) {
  int64_t first = -1;
  for (const TensorDesc& desc : in) {
    if (first < 0 && desc.shape.rank() > 0) first = desc.shape[0];
  }
  const Resize first_alone = [&](int64_t size) { return size == first ? resize(size) : size; };
  for (const Resize& way : {resize, first_alone}) {
    std::vector<TensorDesc> out = resized(in, way);
    if (!(out == in) && takes(row, out, attrs)) return out;
  }
  return std::nullopt;
}

bool random_values_do(const OpCase& c, size_t n_in) {
  return c.in.size() == n_in && c.fixed.empty();
}

}  // namespace

std::optional<OpCase> sample_case(const OpRow& row, const std::vector<TensorDesc>& in,
                                  const Attrs& attrs) {
  const auto example = std::find_if(row.cases.begin(), row.cases.end(), [&](const OpCase& c) {
    return random_values_do(c, in.size());
  });
  if (example == row.cases.end()) return std::nullopt;
  OpCase out;
  out.in = in;
  out.attrs = attrs;
  out.low = example->low;
  out.high = example->high;
  int64_t smallest = std::numeric_limits<int64_t>::max();
  double most = 0;
  for (const TensorDesc& desc : in) {
    most = std::max(most, static_cast<double>(desc.shape.num_elements()));
    if (!is_float(desc.dtype)) continue;
    for (const int64_t size : desc.shape.dims())
      smallest = std::min(smallest, std::max<int64_t>(size, 1));
  }
  for (size_t i = 0; i < in.size(); ++i) {
    const int64_t usual = i < example->int_high.size() ? example->int_high[i] : 10;
    out.int_high.push_back(std::max<int64_t>(1, std::min(usual, smallest)));
  }
  const double base = example->tolerance > 0 ? example->tolerance : kTolerance;
  out.tolerance = base * std::clamp(std::sqrt(most / kUsualElements), 1.0, kMostGrowth);
  return out;
}

std::optional<std::vector<TensorDesc>> odd_shapes(const OpRow& row,
                                                  const std::vector<TensorDesc>& in,
                                                  const Attrs& attrs) {
  return replaced(row, in, attrs, odd_size);
}

std::optional<std::vector<TensorDesc>> edge_shapes(const OpRow& row,
                                                   const std::vector<TensorDesc>& in,
                                                   const Attrs& attrs) {
  return replaced(row, in, attrs, [](int64_t size) { return std::min<int64_t>(size, 1); });
}

double reference_cost(const OpRow& row, const std::vector<TensorDesc>& in,
                      const std::vector<TensorDesc>& out) {
  double all = 0, product = 1;
  for (const auto* list : {&in, &out}) {
    for (size_t i = 0; i < list->size(); ++i) {
      const auto n = static_cast<double>((*list)[i].shape.num_elements());
      all += n;
      if (i < (list == &in ? 2u : 1u)) product *= n;
    }
  }
  // M K, K N and M N elements of a product are M N K multiplications.
  const bool may_be_product = in.size() >= 2 && row.family != "elementwise";
  return may_be_product ? std::max(all, std::sqrt(product)) : all;
}

}  // namespace netcl
