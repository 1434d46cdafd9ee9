// Reduces one part of every rank's contribution, read where it lies.
//
// Contract   x0 .. x(RANKS-1): where the ranks' contributions lie, n elements from from.s0, from.s1,
//            ... on; out: this rank's result, from `first` on, which may be its contribution's
//            place. weights: of the ranks, for MEAN; total: their sum.
// Defines    RANKS: 1 to 8; DTYPE: f32 f16 bf16 i32 i64 u8; OP: SUM MAX MIN PROD MEAN.
// Order      ((x0 op x1) op x2) op ..., whatever the part. 16-bit floats are computed in f32 and
//            rounded once; integers wrap, but not in MEAN, which is cut towards zero; max and min
//            keep the first of equal values and pass NaN on; every NaN becomes the quiet one. The
//            same bits as the host transport's.
#pragma OPENCL FP_CONTRACT OFF

#define SUM 1
#define MAX 2
#define MIN 3
#define PROD 4
#define MEAN 5

#define NETCL_IS_FLOAT_f32 1
#define NETCL_IS_FLOAT_f16 1
#define NETCL_IS_FLOAT_bf16 1
#define NETCL_IS_FLOAT_i32 0
#define NETCL_IS_FLOAT_i64 0
#define NETCL_IS_FLOAT_u8 0
#define IS_FLOAT NETCL_JOIN(NETCL_IS_FLOAT_, DTYPE)

#define netcl_sum_f32 float
#define netcl_sum_f16 float
#define netcl_sum_bf16 float
#define netcl_sum_i32 uint
#define netcl_sum_i64 ulong
#define netcl_sum_u8 uint
#define netcl_order_f32 float
#define netcl_order_f16 float
#define netcl_order_bf16 float
#define netcl_order_i32 int
#define netcl_order_i64 long
#define netcl_order_u8 int
// Integer sums and products wrap unsigned; an order needs the sign.
#if OP == MAX || OP == MIN
#define VALUE NETCL_JOIN(netcl_order_, DTYPE)
#else
#define VALUE NETCL_JOIN(netcl_sum_, DTYPE)
#endif

#define BUCKET(r) __global const TYPE(DTYPE)*x##r,

// As bits, because a conversion may choose another NaN.
#define QUIET_NAN_OF(T) NETCL_JOIN(netcl_put_nan_, T)
#define netcl_put_nan_f32(p, i) ((__global uint*)(p))[i] = 0x7fc00000u
#define netcl_put_nan_f16(p, i) ((__global ushort*)(p))[i] = 0x7e00
#define netcl_put_nan_bf16(p, i) ((__global ushort*)(p))[i] = 0x7fc0

static inline VALUE netcl_join_values(const VALUE a, const VALUE b) {
#if OP == MAX
  return b > a || b != b ? b : a;
#elif OP == MIN
  return b < a || b != b ? b : a;
#elif OP == PROD
  return a * b;
#else
  return a + b;
#endif
}

// MEAN of floats: a rank with weight 0 contributes nothing, whatever its data.
#if OP == MEAN && IS_FLOAT
#define TERM(r) \
  if (weights.s##r != 0.0f) { \
    const VALUE term = weights.s##r * (VALUE)LOAD(DTYPE)(x##r, from.s##r + i); \
    value = any ? value + term : term; \
    any = 1; \
  }
#elif OP == MEAN
// x = q RANKS + rest: the sums of q and of the rests fit where the sum of x does not.
#define TERM(r) \
  { \
    const long x = (long)LOAD(DTYPE)(x##r, from.s##r + i); \
    quotients += x / RANKS; \
    rests += x % RANKS; \
  }
#else
#define TERM(r) \
  { \
    const VALUE term = (VALUE)LOAD(DTYPE)(x##r, from.s##r + i); \
    value = any ? netcl_join_values(value, term) : term; \
    any = 1; \
  }
#endif

#define BUCKETS_1 BUCKET(0)
#define TERMS_1 TERM(0)
#define BUCKETS_2 BUCKETS_1 BUCKET(1)
#define TERMS_2 TERMS_1 TERM(1)
#define BUCKETS_3 BUCKETS_2 BUCKET(2)
#define TERMS_3 TERMS_2 TERM(2)
#define BUCKETS_4 BUCKETS_3 BUCKET(3)
#define TERMS_4 TERMS_3 TERM(3)
#define BUCKETS_5 BUCKETS_4 BUCKET(4)
#define TERMS_5 TERMS_4 TERM(4)
#define BUCKETS_6 BUCKETS_5 BUCKET(5)
#define TERMS_6 TERMS_5 TERM(5)
#define BUCKETS_7 BUCKETS_6 BUCKET(6)
#define TERMS_7 TERMS_6 TERM(6)
#define BUCKETS_8 BUCKETS_7 BUCKET(7)
#define TERMS_8 TERMS_7 TERM(7)
// Not NETCL_JOIN, which the lists use themselves.
#define LIST_(name, n) name##n
#define LIST(name, n) LIST_(name, n)

__kernel void reduce_ranks_p2p_part(LIST(BUCKETS_, RANKS) __global TYPE(DTYPE) * out,
                                    const ulong8 from, const ulong first, const ulong n,
                                    const float8 weights, const float total) {
  const ulong i = get_global_id(0);
  if (i >= n) return;
  const ulong at = first + i;
  VALUE value = 0;
#if OP == MEAN && !IS_FLOAT
  long quotients = 0, rests = 0;
#else
  int any = 0;
#endif
  LIST(TERMS_, RANKS)
#if OP == MEAN
#if IS_FLOAT
  value = value / total;
#else
  quotients += rests / RANKS;
  rests %= RANKS;
  if (quotients > 0 && rests < 0) --quotients;  // cut towards zero, as C does
  if (quotients < 0 && rests > 0) ++quotients;
  value = (VALUE)quotients;
#endif
#endif
#if IS_FLOAT
  if (value != value) {
    QUIET_NAN_OF(DTYPE)(out, at);
    return;
  }
#endif
  STORE(DTYPE)(out, at, value);
}
