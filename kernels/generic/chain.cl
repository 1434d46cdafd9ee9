// Chains of elementwise ops over up to six inputs.
//
// Contract   a0 ... a5: inputs (absent ones are stand-ins, never read); y: output of n elements.
//            dense: every input has y's order and count; y may be one of them.
//            strided, runs: dims are y's dimensions, s0 ... s5 the inputs' element strides,
//            right-aligned, leading dimensions 1; offsets: the inputs' first elements.
// Defines    N_IN; X0_DTYPE ... X5_DTYPE Y_DTYPE; CODE: statements that make RESULT from x0 ... x5;
//            they may call normal_cdf and hold a value as a type has it with HOLD(T)(value).
//            runs: INNER, the last of dims, PIECE of which are one work-item's; STEP0 ... STEP5: the
//            inputs' strides along it, 0, 1, or 2 for another.
//            Needs storage.cl and elementwise_functions.cl before it, and runs loop.cl.
// Divisible  nothing; the last work-items find their index outside and stop.
// Tunables   the local size and PIECE (chain.json). dense: one element a work-item, which a CPU
//            compiler may vectorise over work-items and a GPU coalesces. strided: the same, with a
//            division a dimension. runs: a row or a piece of it a work-item, for CPUs, so that the
//            divisions are done once a row and the loop over it is vectorised.
// Order      none: one element each.

#define HOLD(T) NETCL_JOIN(netcl_hold_, T)
#define HELD(T) NETCL_JOIN(netcl_held_, T)
#define netcl_held_f32 float
#define netcl_held_f16 float
#define netcl_held_bf16 float
#define netcl_held_i32 int
#define netcl_held_i64 long
#define netcl_held_u8 int
#define netcl_held_bool int
#define netcl_hold_f32(v) (v)
#define netcl_hold_i32(v) ((int)(v))
#define netcl_hold_i64(v) ((long)(v))
#define netcl_hold_u8(v) ((int)(uchar)(v))
#define netcl_hold_bool(v) ((int)((v) != 0))
#define netcl_hold_bf16(v) as_float((uint)netcl_bf16_of(v) << 16)
static inline float netcl_hold_f16(const float v) {
  // Without the type half, which needs an extension: 11 bits, ties to even, steps of 2^-24 below
  // 2^-14, infinity from 65520 on.
  const float size = fabs(v);
  const uint bits = as_uint(size);
  const float normal = as_float((bits + 0xfffu + ((bits >> 13) & 1u)) & 0xffffe000u);
  const float small = rint(size * 16777216.0f) * 5.9604644775390625e-8f;
  const float held = size < 6.103515625e-5f ? small : size >= 65520.0f ? INFINITY : normal;
  return isnan(v) ? v : copysign(held, v);
}

#define READ0(at) const HELD(X0_DTYPE) x0 = LOAD(X0_DTYPE)(a0, at);
#if N_IN > 1
#define READ1(at) const HELD(X1_DTYPE) x1 = LOAD(X1_DTYPE)(a1, at);
#else
#define READ1(at)
#endif
#if N_IN > 2
#define READ2(at) const HELD(X2_DTYPE) x2 = LOAD(X2_DTYPE)(a2, at);
#else
#define READ2(at)
#endif
#if N_IN > 3
#define READ3(at) const HELD(X3_DTYPE) x3 = LOAD(X3_DTYPE)(a3, at);
#else
#define READ3(at)
#endif
#if N_IN > 4
#define READ4(at) const HELD(X4_DTYPE) x4 = LOAD(X4_DTYPE)(a4, at);
#else
#define READ4(at)
#endif
#if N_IN > 5
#define READ5(at) const HELD(X5_DTYPE) x5 = LOAD(X5_DTYPE)(a5, at);
#else
#define READ5(at)
#endif

#define INPUTS                       \
  __global const TYPE(X0_DTYPE)* a0, \
  __global const TYPE(X1_DTYPE)* a1, \
  __global const TYPE(X2_DTYPE)* a2, \
  __global const TYPE(X3_DTYPE)* a3, \
  __global const TYPE(X4_DTYPE)* a4, \
  __global const TYPE(X5_DTYPE)* a5
#define STRIDES                                               \
  const int8 s0, const int8 s1, const int8 s2, const int8 s3, \
  const int8 s4, const int8 s5
#define FIRSTS                                       \
  i0 = offsets.s0, i1 = offsets.s1, i2 = offsets.s2, \
  i3 = offsets.s3, i4 = offsets.s4, i5 = offsets.s5

__kernel void chain_generic_dense(INPUTS, __global TYPE(Y_DTYPE)* y, const int n) {
  const int i = (int)get_global_id(0);
  if (i >= n) return;
  READ0(i) READ1(i) READ2(i) READ3(i) READ4(i) READ5(i)
  CODE
  STORE(Y_DTYPE)(y, i, RESULT);
}

// Where the elements of the inputs lie for index `rest` of the dimensions up to d.
#define PEEL(d)                             \
  if (dims.s##d > 1) {                      \
    const int next = rest / dims.s##d;      \
    const int at = rest - next * dims.s##d; \
    i0 += at * s0.s##d;                     \
    i1 += at * s1.s##d;                     \
    i2 += at * s2.s##d;                     \
    i3 += at * s3.s##d;                     \
    i4 += at * s4.s##d;                     \
    i5 += at * s5.s##d;                     \
    rest = next;                            \
  }

__kernel void chain_generic_strided(INPUTS, __global TYPE(Y_DTYPE)* y, const int n,
                                    const int8 offsets, const int8 dims, STRIDES) {
  const int i = (int)get_global_id(0);
  if (i >= n) return;
  int rest = i, FIRSTS;
  PEEL(7) PEEL(6) PEEL(5) PEEL(4) PEEL(3) PEEL(2) PEEL(1) PEEL(0)
  READ0(i0) READ1(i1) READ2(i2) READ3(i3) READ4(i4) READ5(i5)
  CODE
  STORE(Y_DTYPE)(y, i, RESULT);
}

#ifdef PIECE
__kernel void chain_generic_runs(INPUTS, __global TYPE(Y_DTYPE)* y, const int items,
                                 const int pieces, const int inner, const int8 offsets,
                                 const int8 dims, STRIDES) {
  const int item = (int)get_global_id(0);
  if (item >= items) return;
  const int row = item / pieces, first = (item - row * pieces) * PIECE;
  const int count = min(PIECE, inner - first);
  int rest = row, FIRSTS;
  PEEL(6) PEEL(5) PEEL(4) PEEL(3) PEEL(2) PEEL(1) PEEL(0)
  i0 += first * RUN0;
  i1 += first * RUN1;
  i2 += first * RUN2;
  i3 += first * RUN3;
  i4 += first * RUN4;
  i5 += first * RUN5;
  __global TYPE(Y_DTYPE)* to = y + row * inner + first;
  INDEPENDENT
  for (int j = 0; j < count; ++j) {
    READ0(i0 + j * RUN0) READ1(i1 + j * RUN1) READ2(i2 + j * RUN2)
    READ3(i3 + j * RUN3) READ4(i4 + j * RUN4) READ5(i5 + j * RUN5)
    CODE
    STORE(Y_DTYPE)(to, j, RESULT);
  }
}
#endif
