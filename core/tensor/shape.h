// Data types, shapes and tensor descriptions.
//
// Every tensor is dense and row-major. In a traced graph a dimension that grows with the batch is
// written as -k: k times the batch size (so [B, T, C] flattened to [B*T, C] has dimension -T).
#ifndef NETCL_CORE_TENSOR_SHAPE_H_
#define NETCL_CORE_TENSOR_SHAPE_H_

#include <cstdint>
#include <initializer_list>
#include <string>
#include <vector>

#include "core/abi/netcl_plugin.h"

namespace netcl {

enum class DType : uint32_t {
  kF32 = NETCL_F32,
  kF16 = NETCL_F16,    // IEEE 754 binary16
  kBF16 = NETCL_BF16,  // the upper half of an f32
  kI32 = NETCL_I32,
  kI64 = NETCL_I64,
  kU8 = NETCL_U8,
  kBool = NETCL_BOOL,  // one byte, 0 or 1
};

constexpr DType kAllDTypes[] = {DType::kF32, DType::kF16, DType::kBF16, DType::kI32,
                                DType::kI64, DType::kU8,  DType::kBool};

constexpr bool is_float(DType dtype) {
  return dtype == DType::kF32 || dtype == DType::kF16 || dtype == DType::kBF16;
}

size_t size_of(DType dtype);                 // bytes per element
const char* dtype_name(DType dtype);         // "f32"
DType dtype_from_abi(uint32_t dtype);        // Errors: kPlugin for a number netcl does not know.
DType dtype_named(const std::string& name);  // Errors: kUsage, listing the names.

class Shape {
 public:
  Shape() = default;
  Shape(std::initializer_list<int64_t> dims) : dims_(dims) {}
  explicit Shape(std::vector<int64_t> dims) : dims_(std::move(dims)) {}

  size_t rank() const { return dims_.size(); }
  int64_t operator[](size_t i) const { return dims_[i]; }
  int64_t& operator[](size_t i) { return dims_[i]; }
  const std::vector<int64_t>& dims() const { return dims_; }
  bool operator==(const Shape& other) const { return dims_ == other.dims_; }
  bool operator!=(const Shape& other) const { return dims_ != other.dims_; }

  // True if a dimension depends on the batch size.
  bool symbolic() const;
  // Product of the dimensions; 1 for rank 0. Errors: kInternal if symbolic.
  int64_t num_elements() const;
  // The shape with every -k replaced by k * batch.
  Shape with_batch(int64_t batch) const;
  // "[B,64]", "[3,4]", "[]"; -16 prints as 16B.
  std::string str() const;

 private:
  std::vector<int64_t> dims_;
};

// Shape of a and b broadcast against each other (NumPy's rule: align right, 1 stretches).
// Errors: kUsage, naming `what` and both shapes.
Shape broadcast_shapes(const Shape& a, const Shape& b, const std::string& what);

struct TensorDesc {
  DType dtype = DType::kF32;
  Shape shape;

  size_t size_bytes() const { return static_cast<size_t>(shape.num_elements()) * size_of(dtype); }
  std::string str() const { return std::string(dtype_name(dtype)) + shape.str(); }
  bool operator==(const TensorDesc& o) const { return dtype == o.dtype && shape == o.shape; }
};

netcl_desc to_abi(const TensorDesc& desc);  // Errors: kUsage for rank > NETCL_MAX_RANK.
TensorDesc desc_from_abi(const netcl_desc& desc);

}  // namespace netcl

#endif  // NETCL_CORE_TENSOR_SHAPE_H_
