#include "plugins/transport/host/reduce.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <type_traits>

#include "core/abi/netcl_plugin.h"

namespace netcl::host_transport {
namespace {

struct Sum {
  template <typename T>
  static T apply(T a, T b) {
    return a + b;
  }
};
struct Prod {
  template <typename T>
  static T apply(T a, T b) {
    return a * b;
  }
};
// `b != b` holds for NaN alone. A NaN in `a` stays, since no comparison with it is true.
struct Max {
  template <typename T>
  static T apply(T a, T b) {
    return ((b > a) | (b != b)) ? b : a;
  }
};
struct Min {
  template <typename T>
  static T apply(T a, T b) {
    return ((b < a) | (b != b)) ? b : a;
  }
};

// The accumulator of a block stays in the first-level cache, so each input is read once and the
// output written once, for any number of ranks.
constexpr size_t kBlock = 1024;

// Integer sums and products are computed unsigned: they wrap, with the same bits.
template <typename T, typename Op>
using Arithmetic =
    std::conditional_t<std::is_integral_v<T> &&
                           (std::is_same_v<Op, Sum> || std::is_same_v<Op, Prod>),
                       typename std::conditional_t<sizeof(T) == 8, std::common_type<uint64_t>,
                                                   std::common_type<uint32_t>>::type,
                       T>;

template <typename T, typename Op>
void reduce_typed(const void* const* inputs, uint32_t n_inputs, void* out, size_t count) {
  using A = Arithmetic<T, Op>;
  static_assert(sizeof(A) == sizeof(T));
  A block[kBlock];
  for (size_t start = 0; start < count; start += kBlock) {
    const size_t n = std::min(kBlock, count - start);
    std::memcpy(block, static_cast<const A*>(inputs[0]) + start, n * sizeof(A));
    for (uint32_t r = 1; r < n_inputs; ++r) {
      const A* __restrict in = static_cast<const A*>(inputs[r]) + start;
      for (size_t i = 0; i < n; ++i) block[i] = Op::apply(block[i], in[i]);
    }
    if constexpr (std::is_floating_point_v<A>) {
      for (size_t i = 0; i < n; ++i) {
        block[i] = block[i] != block[i] ? std::numeric_limits<A>::quiet_NaN() : block[i];
      }
    }
    std::memcpy(static_cast<A*>(out) + start, block, n * sizeof(A));
  }
}

template <typename T>
void reduce_op(uint32_t redop, const void* const* inputs, uint32_t n_inputs, void* out,
               size_t count) {
  switch (redop) {
    case NETCL_SUM:
      return reduce_typed<T, Sum>(inputs, n_inputs, out, count);
    case NETCL_MAX:
      return reduce_typed<T, Max>(inputs, n_inputs, out, count);
    case NETCL_MIN:
      return reduce_typed<T, Min>(inputs, n_inputs, out, count);
    case NETCL_PROD:
      return reduce_typed<T, Prod>(inputs, n_inputs, out, count);
    default:
      return;
  }
}

}  // namespace

size_t element_bytes(uint32_t dtype) {
  switch (dtype) {
    case NETCL_F32:
    case NETCL_I32:
      return 4;
    case NETCL_F16:
    case NETCL_BF16:
      return 2;
    case NETCL_I64:
      return 8;
    case NETCL_U8:
    case NETCL_BOOL:
      return 1;
    default:
      return 0;
  }
}

bool can_reduce(uint32_t dtype, uint32_t redop) {
  return (dtype == NETCL_F32 || dtype == NETCL_I32 || dtype == NETCL_I64) && redop >= NETCL_SUM &&
         redop <= NETCL_PROD;
}

void reduce(uint32_t dtype, uint32_t redop, const void* const* inputs, uint32_t n_inputs, void* out,
            size_t count) {
  switch (dtype) {
    case NETCL_F32:
      return reduce_op<float>(redop, inputs, n_inputs, out, count);
    case NETCL_I32:
      return reduce_op<int32_t>(redop, inputs, n_inputs, out, count);
    case NETCL_I64:
      return reduce_op<int64_t>(redop, inputs, n_inputs, out, count);
    default:
      return;
  }
}

}  // namespace netcl::host_transport
