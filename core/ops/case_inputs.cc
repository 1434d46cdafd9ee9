#include "core/ops/case_inputs.h"

#include <algorithm>
#include <cmath>

#include "core/base/error.h"
#include "core/ops/reference/philox.h"
#include "core/tensor/half.h"

namespace netcl {

namespace {

// Uniform in [0, 1), element `e` of stream `stream`.
double draw(uint64_t seed, uint32_t stream, uint64_t e) {
  const PhiloxKey key{static_cast<uint32_t>(seed), static_cast<uint32_t>(seed >> 32)};
  const PhiloxCounter counter{static_cast<uint32_t>(e), static_cast<uint32_t>(e >> 32), stream, 0};
  return philox_uniform(philox4x32(counter, key)[0]);
}

HostTensor draw_tensor(const TensorDesc& desc, double low, double high, uint64_t seed,
                       uint32_t stream) {
  HostTensor t{desc, std::vector<double>(static_cast<size_t>(desc.shape.num_elements()))};
  for (size_t e = 0; e < t.data.size(); ++e) {
    const double x = low + (high - low) * draw(seed, stream, e);
    t.data[e] = is_float(desc.dtype) ? rounded_to(desc.dtype, x) : std::floor(x);
  }
  return t;
}

}  // namespace

std::vector<OpCase> typed_cases(const OpRow& row, DType dtype) {
  std::vector<OpCase> out;
  if (dtype == DType::kF32) return row.cases;
  if (!row.half_storage) return out;
  for (OpCase c : row.cases) {
    if (c.f32_only) continue;
    bool changed = false;
    for (size_t i = 0; i < c.in.size(); ++i) {
      const bool fixed = std::count(row.always_f32.begin(), row.always_f32.end(), i) > 0;
      if (c.in[i].dtype != DType::kF32 || fixed) continue;
      c.in[i].dtype = dtype;
      changed = true;
    }
    if (changed) out.push_back(std::move(c));
  }
  return out;
}

std::vector<HostTensor> case_inputs(const OpCase& c, uint64_t seed) {
  std::vector<HostTensor> out;
  for (size_t i = 0; i < c.in.size(); ++i) {
    const TensorDesc& desc = c.in[i];
    const bool real = is_float(desc.dtype);
    const double high = real                    ? c.high
                        : i < c.int_high.size() ? static_cast<double>(c.int_high[i])
                                                : 0;
    out.push_back(draw_tensor(desc, real ? c.low : 0, high, seed, static_cast<uint32_t>(i)));
  }
  for (const auto& [i, values] : c.fixed) {
    NETCL_CHECK(i < out.size() && values.size() == out[i].data.size(), ErrorCode::kInternal,
                "the fixed values of input ", i, " do not fit it");
    for (size_t e = 0; e < values.size(); ++e) {
      out[i].data[e] = rounded_to(c.in[i].dtype, values[e]);
    }
  }
  return out;
}

HostTensor random_tensor(const TensorDesc& desc, double low, double high, uint64_t seed) {
  return draw_tensor(desc, low, high, seed, 0x7e57u);
}

HostTensor random_tensor(const Shape& shape, double low, double high, uint64_t seed) {
  return random_tensor(TensorDesc{DType::kF32, shape}, low, high, seed);
}

}  // namespace netcl
