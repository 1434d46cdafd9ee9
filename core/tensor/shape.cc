#include "core/tensor/shape.h"

#include <algorithm>

#include "core/base/error.h"

namespace netcl {

size_t size_of(DType dtype) { return dtype == DType::kU8 ? 1 : 4; }

const char* dtype_name(DType dtype) {
  switch (dtype) {
    case DType::kF32:
      return "f32";
    case DType::kI32:
      return "i32";
    case DType::kU8:
      return "u8";
  }
  return "?";
}

const char* opencl_type(DType dtype) {
  switch (dtype) {
    case DType::kF32:
      return "float";
    case DType::kI32:
      return "int";
    case DType::kU8:
      return "uchar";
  }
  return "?";
}

DType dtype_from_abi(uint32_t dtype) {
  NETCL_CHECK(dtype == NETCL_F32 || dtype == NETCL_I32 || dtype == NETCL_U8, ErrorCode::kPlugin,
              "data type number ", dtype, " is unknown here; f32, i32 and u8 are supported");
  return static_cast<DType>(dtype);
}

bool Shape::symbolic() const {
  return std::any_of(dims_.begin(), dims_.end(), [](int64_t d) { return d < 0; });
}

int64_t Shape::num_elements() const {
  NETCL_CHECK(!symbolic(), ErrorCode::kInternal, "shape ", str(), " has no size without a batch");
  int64_t n = 1;
  for (const int64_t d : dims_) n *= d;
  return n;
}

Shape Shape::with_batch(int64_t batch) const {
  Shape out = *this;
  for (int64_t& d : out.dims_) {
    if (d < 0) d = -d * batch;
  }
  return out;
}

std::string Shape::str() const {
  std::string out = "[";
  for (size_t i = 0; i < dims_.size(); ++i) {
    if (i > 0) out += ',';
    if (dims_[i] >= 0) {
      out += std::to_string(dims_[i]);
    } else {
      out += dims_[i] == -1 ? "B" : std::to_string(-dims_[i]) + "B";
    }
  }
  return out + "]";
}

Shape broadcast_shapes(const Shape& a, const Shape& b, const std::string& what) {
  const size_t rank = std::max(a.rank(), b.rank());
  std::vector<int64_t> out(rank);
  for (size_t i = 0; i < rank; ++i) {
    const int64_t da = i < a.rank() ? a[a.rank() - 1 - i] : 1;
    const int64_t db = i < b.rank() ? b[b.rank() - 1 - i] : 1;
    NETCL_CHECK(da == db || da == 1 || db == 1, ErrorCode::kUsage, what, ": shapes ", a.str(),
                " and ", b.str(), " do not broadcast: dimension ", rank - 1 - i, " is ", da,
                " and ", db);
    out[rank - 1 - i] = da == 1 ? db : da;
  }
  return Shape(std::move(out));
}

netcl_desc to_abi(const TensorDesc& desc) {
  NETCL_CHECK(desc.shape.rank() <= NETCL_MAX_RANK, ErrorCode::kUsage, "a tensor has ",
              desc.shape.rank(), " dimensions; at most ", NETCL_MAX_RANK, " are supported");
  netcl_desc out{};
  out.dtype = static_cast<uint32_t>(desc.dtype);
  out.rank = static_cast<uint32_t>(desc.shape.rank());
  std::copy(desc.shape.dims().begin(), desc.shape.dims().end(), out.dim);
  return out;
}

TensorDesc desc_from_abi(const netcl_desc& desc) {
  NETCL_CHECK(desc.rank <= NETCL_MAX_RANK, ErrorCode::kPlugin, "a tensor description has rank ",
              desc.rank);
  return {dtype_from_abi(desc.dtype), Shape(std::vector<int64_t>(desc.dim, desc.dim + desc.rank))};
}

}  // namespace netcl
