// Flat arenas: where each tensor lies in one buffer of floats that all replicas lay out alike.
#ifndef NETCL_CORE_NN_ARENA_H_
#define NETCL_CORE_NN_ARENA_H_

#include <cstdint>
#include <string>
#include <vector>

#include "core/tensor/shape.h"

namespace netcl {

// Floats [first, first + count) of an arena.
struct FloatRange {
  int64_t first = 0, count = 0;
};

class ArenaLayout {
 public:
  // Tensors begin at multiples of this many floats (512 bytes: what sub-buffers need on all known
  // devices); the gaps stay zero.
  static constexpr int64_t kAlignFloats = 128;

  struct Entry {
    std::string name;
    TensorDesc desc;
    int64_t offset = 0;  // floats
  };

  // Appends an f32 tensor. Errors: kInternal for another type or a name given twice.
  void add(const std::string& name, const TensorDesc& desc);

  const std::vector<Entry>& entries() const { return entries_; }
  // Errors: kInternal if the name is unknown.
  const Entry& find(const std::string& name) const;
  int64_t num_floats() const { return num_floats_; }

 private:
  std::vector<Entry> entries_;
  int64_t num_floats_ = 0;
};

// "the parameters, of which layers.0.weight f32[8,4] is the largest".
std::string largest_of(const std::string& what, const ArenaLayout& layout);

}  // namespace netcl

#endif  // NETCL_CORE_NN_ARENA_H_
