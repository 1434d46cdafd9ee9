#include "core/tensor/shape.h"

#include <algorithm>

#include "core/base/error.h"

namespace netcl {

namespace {

struct DTypeFacts {
  const char* name;
  size_t size_bytes;
};

DTypeFacts facts_of(DType dtype) {
  switch (dtype) {
    case DType::kF32:
      return {"f32", 4};
    case DType::kF16:
      return {"f16", 2};
    case DType::kBF16:
      return {"bf16", 2};
    case DType::kI32:
      return {"i32", 4};
    case DType::kI64:
      return {"i64", 8};
    case DType::kU8:
      return {"u8", 1};
    case DType::kBool:
      return {"bool", 1};
  }
  return {"?", 0};
}

}  // namespace

size_t size_of(DType dtype) { return facts_of(dtype).size_bytes; }
const char* dtype_name(DType dtype) { return facts_of(dtype).name; }

DType dtype_from_abi(uint32_t dtype) {
  for (const DType known : kAllDTypes) {
    if (static_cast<uint32_t>(known) == dtype) return known;
  }
  fail(ErrorCode::kPlugin, "data type number ", dtype,
       " is unknown here; known are f32, f16, bf16, i32, i64, u8 and bool");
}

DType dtype_named(const std::string& name) {
  std::string known;
  for (const DType dtype : kAllDTypes) {
    if (name == dtype_name(dtype)) return dtype;
    known += str_cat(known.empty() ? "" : ", ", dtype_name(dtype));
  }
  fail(ErrorCode::kUsage, "data type \"", name, "\" is unknown; known: ", known);
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
