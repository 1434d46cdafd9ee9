// Loads and stores of every data type, so that one kernel text serves f32, f16 and bf16 storage with
// f32 arithmetic. Comes first among a launch's sources; needs no extension.
//
// Use        with X_DTYPE defined as a data type's name (f32 f16 bf16 i32 i64 u8 bool):
//            __global const TYPE(X_DTYPE)* x;   LOAD(X_DTYPE)(x, i)   STORE(Y_DTYPE)(y, i, value)
//            LOAD4(X_DTYPE)(x, i) and STORE4(Y_DTYPE)(y, i, value): floats only, elements i .. i+3,
//            no alignment beyond the element's.
// Order      stores of 16-bit floats round to nearest, ties to even; integers are stored as given.

#define NETCL_JOIN_(a, b) a##b
#define NETCL_JOIN(a, b) NETCL_JOIN_(a, b)
#define TYPE(T) NETCL_JOIN(netcl_type_, T)
#define LOAD(T) NETCL_JOIN(netcl_load_, T)
#define STORE(T) NETCL_JOIN(netcl_store_, T)
#define LOAD4(T) NETCL_JOIN(netcl_load4_, T)
#define STORE4(T) NETCL_JOIN(netcl_store4_, T)

#define netcl_type_f32 float
#define netcl_type_f16 half
#define netcl_type_bf16 ushort
#define netcl_type_i32 int
#define netcl_type_i64 long
#define netcl_type_u8 uchar
#define netcl_type_bool uchar

#define netcl_load_f32(p, i) ((p)[i])
#define netcl_load_f16(p, i) vload_half((size_t)(i), p)
#define netcl_load_bf16(p, i) as_float((uint)(p)[i] << 16)
#define netcl_load_i32(p, i) ((p)[i])
#define netcl_load_i64(p, i) ((p)[i])
#define netcl_load_u8(p, i) ((int)(p)[i])
#define netcl_load_bool(p, i) ((int)(p)[i])

#define netcl_store_f32(p, i, v) ((p)[i] = (v))
#define netcl_store_f16(p, i, v) vstore_half_rte((float)(v), (size_t)(i), p)
#define netcl_store_bf16(p, i, v) ((p)[i] = netcl_bf16_of(v))
#define netcl_store_i32(p, i, v) ((p)[i] = (int)(v))
#define netcl_store_i64(p, i, v) ((p)[i] = (long)(v))
#define netcl_store_u8(p, i, v) ((p)[i] = (uchar)(v))
#define netcl_store_bool(p, i, v) ((p)[i] = (uchar)((v) != 0))

#define netcl_load4_f32(p, i) vload4(0, (p) + (i))
#define netcl_load4_f16(p, i) vload_half4(0, (p) + (i))
#define netcl_load4_bf16(p, i) as_float4(convert_uint4(vload4(0, (p) + (i))) << (uint4)(16))

#define netcl_store4_f32(p, i, v) vstore4(v, 0, (p) + (i))
#define netcl_store4_f16(p, i, v) vstore_half4_rte(v, 0, (p) + (i))
#define netcl_store4_bf16(p, i, v) vstore4(netcl_bf16_of4(v), 0, (p) + (i))

static inline ushort netcl_bf16_of(const float v) {
  const uint bits = as_uint(v);
  const uint rounded = (bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16;
  return (ushort)(isnan(v) ? (bits >> 16) | 0x40u : rounded);
}

static inline ushort4 netcl_bf16_of4(const float4 v) {
  return (ushort4)(netcl_bf16_of(v.x), netcl_bf16_of(v.y), netcl_bf16_of(v.z), netcl_bf16_of(v.w));
}
