// What a benchmark of collectives adds up, and the result that is right: an oracle of plain loops
// that shares no code with any transport.
#ifndef NETCL_APPS_NETCL_APP_BENCH_VALUES_H_
#define NETCL_APPS_NETCL_APP_BENCH_VALUES_H_

#include <cstdint>
#include <vector>

#include "core/tensor/shape.h"

namespace netcl::app {

using Bytes = std::vector<uint8_t>;

// The same `count` elements for the same seed: floats of both signs and of many magnitudes, none
// of them infinite or no number; any integers.
Bytes random_values(DType dtype, uint64_t count, uint64_t seed);

// Adds elements up in the order of the ranks, ((x0 + x1) + x2) ...: 16-bit floats in f32, rounded
// once at the end; integers wrap. Errors: kUsage for bool.
class RankOrderSum {
 public:
  RankOrderSum(DType dtype, uint64_t count);
  // The next rank's elements.
  void add(const Bytes& values);
  Bytes result() const;

 private:
  const DType dtype_;
  uint64_t count_;
  bool first_ = true;
  std::vector<float> floats_;       // of float types
  std::vector<uint64_t> integers_;  // of integers, modulo 2^64
};

}  // namespace netcl::app

#endif  // NETCL_APPS_NETCL_APP_BENCH_VALUES_H_
