// The reduction loops, compiled once for each instruction set (reduce_baseline.cc, reduce_avx2.cc).
//
// A step holds kUnroll accumulators in registers while it goes over all inputs, so each input is
// read once and the result written once, for any number of ranks. Beginning and end go through the
// same vector code on padded copies: no element depends on where a block begins.
#ifndef NETCL_PLUGINS_TRANSPORT_HOST_REDUCE_LOOPS_H_
#define NETCL_PLUGINS_TRANSPORT_HOST_REDUCE_LOOPS_H_

#include "plugins/transport/host/reduce_formats.h"
#include "plugins/transport/host/reduce_table.h"

namespace netcl::host_transport {
namespace {

struct Sum {
  static constexpr bool kWeighted = false;
  template <typename V>
  static NETCL_INLINE V apply(V a, V b) {
    return a + b;
  }
};
struct Prod {
  static constexpr bool kWeighted = false;
  template <typename V>
  static NETCL_INLINE V apply(V a, V b) {
    return a * b;
  }
};
// `b != b` holds for NaN alone. A NaN in `a` stays, since no comparison with it is true.
struct Max {
  static constexpr bool kWeighted = false;
  template <typename V>
  static NETCL_INLINE V apply(V a, V b) {
    return ((b > a) | (b != b)) ? b : a;
  }
};
struct Min {
  static constexpr bool kWeighted = false;
  template <typename V>
  static NETCL_INLINE V apply(V a, V b) {
    return ((b < a) | (b != b)) ? b : a;
  }
};
struct Mean {
  static constexpr bool kWeighted = true;
  template <typename V>
  static NETCL_INLINE V apply(V a, V b) {
    return a + b;
  }
};

constexpr size_t kUnroll = 4;

template <typename F, typename Op>
NETCL_INLINE typename F::V weighted(typename F::V v, const ReduceJob& job, uint32_t input) {
  if constexpr (Op::kWeighted) return v * job.weights[input];
  return v;
}

template <typename F, typename Op>
NETCL_INLINE typename F::V finished(typename F::V v, const ReduceJob& job) {
  if constexpr (Op::kWeighted) {
    return F::finish(v / job.total_weight);
  } else {
    return F::finish(v);
  }
}

// Elements [i, i + n) with n at most one vector.
template <typename F, typename Op>
void reduce_few(const ReduceJob& job, size_t i, size_t n) {
  using E = typename F::Element;
  using V = typename F::V;
  E few[F::kLanes] = {};
  V acc{};
  for (uint32_t r = 0; r < job.n_inputs; ++r) {
    __builtin_memcpy(few, static_cast<const E*>(job.inputs[r]) + i, n * sizeof(E));
    const V v = weighted<F, Op>(F::load(few), job, r);
    acc = r == 0 ? v : Op::apply(acc, v);
  }
  F::template store<false>(few, finished<F, Op>(acc, job));
  __builtin_memcpy(static_cast<E*>(job.out) + i, few, n * sizeof(E));
}

template <typename F, typename Op, bool kStream>
void reduce_all(const ReduceJob& job) {
  using E = typename F::Element;
  using V = typename F::V;
  constexpr size_t kLanes = F::kLanes, kStep = kUnroll * kLanes;
  E* const out = static_cast<E*>(job.out);
  size_t i = 0;
  if constexpr (kStream) {
    // Whole cache lines from here on, or the processor would read what it is about to write.
    const size_t ahead = (64 - reinterpret_cast<uintptr_t>(out) % 64) % 64 / sizeof(E);
    const size_t head = ahead < job.count ? ahead : job.count;
    for (; i < head; i += kLanes) reduce_few<F, Op>(job, i, head - i < kLanes ? head - i : kLanes);
    i = head;
  }
  for (; i + kStep <= job.count; i += kStep) {
    V acc[kUnroll];
    const E* in = static_cast<const E*>(job.inputs[0]) + i;
    for (size_t k = 0; k < kUnroll; ++k) acc[k] = weighted<F, Op>(F::load(in + k * kLanes), job, 0);
    for (uint32_t r = 1; r < job.n_inputs; ++r) {
      in = static_cast<const E*>(job.inputs[r]) + i;
      for (size_t k = 0; k < kUnroll; ++k) {
        acc[k] = Op::apply(acc[k], weighted<F, Op>(F::load(in + k * kLanes), job, r));
      }
    }
    for (size_t k = 0; k < kUnroll; ++k) {
      F::template store<kStream>(out + i + k * kLanes, finished<F, Op>(acc[k], job));
    }
  }
  for (; i < job.count; i += kLanes) {
    reduce_few<F, Op>(job, i, job.count - i < kLanes ? job.count - i : kLanes);
  }
  // Streaming stores are not ordered by the release store that publishes them.
  if constexpr (kStream) _mm_sfence();
}

// The sum of any number of ranks' elements does not wrap.
template <typename T>
struct SumOf {
  using type = int64_t;
};
template <>
struct SumOf<int64_t> {
  using type = __int128;
};

template <typename T>
void mean_of_integers(const ReduceJob& job) {
  using Total = typename SumOf<T>::type;
  T* const out = static_cast<T*>(job.out);
  for (size_t i = 0; i < job.count; ++i) {
    Total total = 0;
    for (uint32_t r = 0; r < job.n_inputs; ++r) total += static_cast<const T*>(job.inputs[r])[i];
    out[i] = static_cast<T>(total / static_cast<Total>(job.n_inputs));
  }
}

template <typename F, bool kStream>
constexpr void fill_row(ReduceLoop (&row)[kOperations]) {
  row[kSum] = &reduce_all<F, Sum, kStream>;
  row[kMax] = &reduce_all<F, Max, kStream>;
  row[kMin] = &reduce_all<F, Min, kStream>;
  row[kProd] = &reduce_all<F, Prod, kStream>;
  if constexpr (F::kFloat) {
    row[kMean] = &reduce_all<F, Mean, kStream>;
  } else {
    row[kMean] = &mean_of_integers<typename F::Element>;
  }
}

template <bool kStream>
constexpr void fill(ReduceLoop (&loop)[kFormats][kOperations]) {
  fill_row<Floats, kStream>(loop[kF32]);
  fill_row<Halves, kStream>(loop[kF16]);
  fill_row<Bfloats, kStream>(loop[kBf16]);
  fill_row<Integers<int32_t>, kStream>(loop[kI32]);
  fill_row<Integers<int64_t>, kStream>(loop[kI64]);
  fill_row<Integers<uint8_t>, kStream>(loop[kU8]);
}

constexpr ReduceTable make_table() {
  ReduceTable table{};
  fill<false>(table.loop[0]);
  fill<true>(table.loop[1]);
  return table;
}

constexpr ReduceTable kTable = make_table();

}  // namespace
}  // namespace netcl::host_transport

#endif  // NETCL_PLUGINS_TRANSPORT_HOST_REDUCE_LOOPS_H_
