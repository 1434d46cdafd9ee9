#include "apps/netcl_app/bench_values.h"

#include <cstring>

#include "core/base/error.h"
#include "core/tensor/half.h"

namespace netcl::app {

namespace {

// SplitMix64 (Steele, Lea and Flood, 2014).
uint64_t next_random(uint64_t& state) {
  uint64_t z = (state += 0x9e3779b97f4a7c15u);
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
  return z ^ (z >> 31);
}

// A sign, 23 random bits and an exponent from 2^-8 to 2^7.
float float_of(uint64_t random) {
  const auto sign = static_cast<uint32_t>(random >> 63) << 31;
  const auto exponent = static_cast<uint32_t>(119 + ((random >> 32) & 15)) << 23;
  const uint32_t bits = sign | exponent | (static_cast<uint32_t>(random) & 0x7fffffu);
  float out;
  std::memcpy(&out, &bits, sizeof(out));
  return out;
}

float load_float(DType dtype, const uint8_t* at) {
  uint16_t bits;
  float out;
  if (dtype == DType::kF32) {
    std::memcpy(&out, at, sizeof(out));
    return out;
  }
  std::memcpy(&bits, at, sizeof(bits));
  return dtype == DType::kF16 ? f16_to_float(bits) : bf16_to_float(bits);
}

void store_float(DType dtype, float value, uint8_t* at) {
  if (dtype == DType::kF32) {
    std::memcpy(at, &value, sizeof(value));
    return;
  }
  const uint16_t bits = dtype == DType::kF16 ? f16_from_float(value) : bf16_from_float(value);
  std::memcpy(at, &bits, sizeof(bits));
}

}  // namespace

Bytes random_values(DType dtype, uint64_t count, uint64_t seed) {
  const size_t element = size_of(dtype);
  Bytes out(count * element);
  uint64_t state = seed;
  for (uint64_t i = 0; i < count; ++i) {
    const uint64_t random = next_random(state);
    if (is_float(dtype)) {
      store_float(dtype, float_of(random), out.data() + i * element);
    } else {
      std::memcpy(out.data() + i * element, &random, element);
    }
  }
  return out;
}

RankOrderSum::RankOrderSum(DType dtype, uint64_t count) : dtype_(dtype), count_(count) {
  NETCL_CHECK(dtype != DType::kBool, ErrorCode::kUsage, "bool cannot be added up; choose a number");
  if (is_float(dtype)) {
    floats_.resize(count);
  } else {
    integers_.resize(count);
  }
}

void RankOrderSum::add(const Bytes& values) {
  const size_t element = size_of(dtype_);
  NETCL_CHECK(values.size() == count_ * element, ErrorCode::kInternal, "a rank's values have ",
              values.size(), " bytes; expected ", count_ * element);
  for (uint64_t i = 0; i < count_; ++i) {
    const uint8_t* at = values.data() + i * element;
    if (is_float(dtype_)) {
      const float x = load_float(dtype_, at);
      floats_[i] = first_ ? x : floats_[i] + x;
    } else {
      uint64_t x = 0;
      std::memcpy(&x, at, element);  // little-endian: the low bytes are all that a sum needs
      integers_[i] += x;
    }
  }
  first_ = false;
}

Bytes RankOrderSum::result() const {
  const size_t element = size_of(dtype_);
  Bytes out(count_ * element);
  for (uint64_t i = 0; i < count_; ++i) {
    uint8_t* at = out.data() + i * element;
    if (is_float(dtype_)) {
      store_float(dtype_, floats_[i], at);
    } else {
      std::memcpy(at, &integers_[i], element);
    }
  }
  return out;
}

}  // namespace netcl::app
