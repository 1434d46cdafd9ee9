#include "apps/netcl_app/formats/synthetic.h"

#include "core/data/batches.h"

namespace netcl::app {
namespace {

constexpr uint64_t kCentres = 0x63656e747265ull, kNoise = 0x6e6f697365ull;  // streams
constexpr double kWidth = 0.5;
constexpr uint64_t kAdded = 12;  // uniform numbers whose sum is nearly a bell of width 1

double uniform(uint64_t seed, uint64_t stream, uint64_t index) {
  return static_cast<double>(random_bits(seed, stream, index) >> 11) * 0x1p-53;
}

}  // namespace

Samples make_synthetic(const SyntheticConfig& config) {
  Samples out;
  out.path = "synthetic data";
  out.sample_shape = Shape(config.input);
  const auto elements = static_cast<uint64_t>(out.sample_shape.num_elements());
  const auto classes = static_cast<uint64_t>(config.classes);
  for (uint64_t i = 0; i < static_cast<uint64_t>(config.samples); ++i) {
    const uint64_t label = i % classes;
    out.labels.push_back(static_cast<int32_t>(label));
    for (uint64_t e = 0; e < elements; ++e) {
      double bell = -static_cast<double>(kAdded) / 2;
      for (uint64_t k = 0; k < kAdded; ++k)
        bell += uniform(config.seed, kNoise, (i * elements + e) * kAdded + k);
      const double centre =
          config.noise ? 0 : 2 * uniform(config.seed, kCentres, label * elements + e) - 1;
      out.f32.push_back(static_cast<float>(centre + kWidth * bell));
    }
  }
  return out;
}

}  // namespace netcl::app
