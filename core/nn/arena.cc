#include "core/nn/arena.h"

#include "core/base/error.h"

namespace netcl {

void ArenaLayout::add(const std::string& name, const TensorDesc& desc) {
  NETCL_CHECK(desc.dtype == DType::kF32, ErrorCode::kInternal, "arena: ", name, " is ", desc.str());
  for (const Entry& entry : entries_) {
    NETCL_CHECK(entry.name != name, ErrorCode::kInternal, "arena: ", name, " is added twice");
  }
  entries_.push_back({name, desc, num_floats_});
  const int64_t n = desc.shape.num_elements();
  num_floats_ += (n + kAlignFloats - 1) / kAlignFloats * kAlignFloats;
}

const ArenaLayout::Entry& ArenaLayout::find(const std::string& name) const {
  for (const Entry& entry : entries_) {
    if (entry.name == name) return entry;
  }
  fail(ErrorCode::kInternal, "arena: there is no ", name);
}

std::string largest_of(const std::string& what, const ArenaLayout& layout) {
  const ArenaLayout::Entry* largest = nullptr;
  for (const ArenaLayout::Entry& entry : layout.entries()) {
    if (largest == nullptr || entry.desc.shape.num_elements() > largest->desc.shape.num_elements())
      largest = &entry;
  }
  if (largest == nullptr) return what;
  return str_cat(what, ", of which ", largest->name, " ", largest->desc.str(), " is the largest,");
}

}  // namespace netcl
