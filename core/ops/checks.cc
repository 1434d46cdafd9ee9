#include "core/ops/checks.h"

#include "core/base/error.h"

namespace netcl {

DType common_float(const OpCall& call, const std::vector<size_t>& inputs) {
  std::vector<size_t> which = inputs;
  for (size_t i = 0; inputs.empty() && i < call.in.size(); ++i) which.push_back(i);
  const DType type = call.in[which.at(0)].dtype;
  for (const size_t i : which) {
    const DType other = call.in[i].dtype;
    NETCL_CHECK(is_float(other), ErrorCode::kUsage, "input ", i, " must be f32, f16 or bf16, is ",
                call.in[i].str(), "; cast it with cast(dtype=f32)");
    NETCL_CHECK(other == type, ErrorCode::kUsage, "input ", which[0], " is ",
                call.in[which[0]].str(), " and input ", i, " ", call.in[i].str(),
                "; cast one of them");
  }
  return type;
}

void require_desc(const OpCall& call, size_t i, const TensorDesc& want, const std::string& what) {
  NETCL_CHECK(call.in[i] == want, ErrorCode::kUsage, "the ", what, " must be ", want.str(), ", is ",
              call.in[i].str());
}

void require_rank(const OpCall& call, size_t i, size_t rank, const std::string& form) {
  NETCL_CHECK(call.in[i].shape.rank() == rank, ErrorCode::kUsage, "input ", i, " must be ", form,
              ", is ", call.in[i].shape.str());
}

bool flag(const Attrs& attrs, const char* key) { return integer_in(attrs, key, 0, 1) == 1; }

int64_t integer_in(const Attrs& attrs, const char* key, int64_t low, int64_t high) {
  const int64_t value = attrs.integer(key);
  NETCL_CHECK(value >= low && value <= high, ErrorCode::kUsage, "attribute \"", key,
              "\" must be from ", low, " to ", high, ", is ", value);
  return value;
}

}  // namespace netcl
