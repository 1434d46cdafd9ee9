#include "core/verify/host_bytes.h"

#include <cstring>

#include "core/tensor/half.h"

namespace netcl {

namespace {

template <typename T>
T plain(double x) {
  return static_cast<T>(x);
}

template <typename T, typename Convert>
void put(const HostTensor& tensor, std::vector<uint8_t>* out, Convert convert) {
  out->resize(tensor.data.size() * sizeof(T));
  for (size_t i = 0; i < tensor.data.size(); ++i) {
    const T value = convert(tensor.data[i]);
    std::memcpy(out->data() + i * sizeof(T), &value, sizeof(T));
  }
}

template <typename T, typename Convert>
void get(const std::vector<uint8_t>& bytes, std::vector<double>* out, Convert convert) {
  for (size_t at = 0; at + sizeof(T) <= bytes.size(); at += sizeof(T)) {
    T value;
    std::memcpy(&value, bytes.data() + at, sizeof(T));
    out->push_back(convert(value));
  }
}

}  // namespace

std::vector<uint8_t> to_bytes(const HostTensor& tensor) {
  std::vector<uint8_t> out;
  switch (tensor.desc.dtype) {
    case DType::kF32:
      put<float>(tensor, &out, plain<float>);
      break;
    case DType::kF16:
      put<uint16_t>(tensor, &out, [](double x) { return f16_from_float(static_cast<float>(x)); });
      break;
    case DType::kBF16:
      put<uint16_t>(tensor, &out, [](double x) { return bf16_from_float(static_cast<float>(x)); });
      break;
    case DType::kI32:
      put<int32_t>(tensor, &out, plain<int32_t>);
      break;
    case DType::kI64:
      put<int64_t>(tensor, &out, plain<int64_t>);
      break;
    case DType::kU8:
    case DType::kBool:
      put<uint8_t>(tensor, &out, plain<uint8_t>);
      break;
  }
  return out;
}

HostTensor from_bytes(const TensorDesc& desc, const std::vector<uint8_t>& bytes) {
  HostTensor out{desc, {}};
  switch (desc.dtype) {
    case DType::kF32:
      get<float>(bytes, &out.data, [](float x) { return static_cast<double>(x); });
      break;
    case DType::kF16:
      get<uint16_t>(bytes, &out.data,
                    [](uint16_t x) { return static_cast<double>(f16_to_float(x)); });
      break;
    case DType::kBF16:
      get<uint16_t>(bytes, &out.data,
                    [](uint16_t x) { return static_cast<double>(bf16_to_float(x)); });
      break;
    case DType::kI32:
      get<int32_t>(bytes, &out.data, [](int32_t x) { return static_cast<double>(x); });
      break;
    case DType::kI64:
      get<int64_t>(bytes, &out.data, [](int64_t x) { return static_cast<double>(x); });
      break;
    case DType::kU8:
    case DType::kBool:
      get<uint8_t>(bytes, &out.data, [](uint8_t x) { return static_cast<double>(x); });
      break;
  }
  return out;
}

}  // namespace netcl
