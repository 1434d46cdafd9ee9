// The matrix units of AMD's GPUs: a wave multiplies BLOCK x UNIT_K elements by UNIT_K x BLOCK and adds
// to BLOCK x BLOCK floats, which its work-items hold. Where the compiler is for another device, local
// memory and plain sums do the same, so that layouts and kernels can be tried anywhere.
//
// Use        UNIT_SPACE declares, once in a kernel, the room that this takes. MULTIPLY_BLOCK(acc, a, b):
//            all waves of the work-group come to it. a and b are OPERANDs: the work-item holds, of line
//            LINE of a (row) or b (column), the LANE_K elements from k = FIRST_K on. acc is an ACC:
//            element r is row ACC_ROW(r), column LINE. UNROLL: before loops over what a work-item holds.
// Defines    UNIT: UNIT_mfma or UNIT_wmma; DTYPE: of both operands, f32 (UNIT_mfma alone), f16 or bf16.
// Hardware   UNIT_mfma: gfx908 (f32), gfx90a, gfx940 ...; waves of 64. UNIT_wmma: gfx11; waves of 32.
//            f32 sums are exact products rounded to f32. Products of 16-bit floats are exact, sums f32;
//            gfx90a takes 16-bit floats below the smallest normal one for 0.
// Order      k in blocks of UNIT_K; within a block the device's.
// Source     AMD Instinct MI200 and RDNA3 instruction set manuals (matrix layouts).

#define UNIT_mfma 1
#define UNIT_wmma 2
#define DTYPE_f32 1
#define DTYPE_f16 2
#define DTYPE_bf16 3
#define IS_DTYPE(T) (NETCL_JOIN(DTYPE_, DTYPE) == DTYPE_##T)

#if IS_DTYPE(f32)
#define ELEMENT float
#define LANE_K 1
#define OPERAND float
#elif UNIT == UNIT_mfma
#define ELEMENT short
#define LANE_K 4
#define OPERAND short4
#else
#define ELEMENT short
#define LANE_K 16
#define OPERAND short16
#endif

#if UNIT == UNIT_mfma
#define WAVE 64
#define BLOCK 32
#define UNIT_K (2 * LANE_K)
#define ACC float16
#define ACC_SIZE 16
#define FIRST_K (LANE / BLOCK * LANE_K)
#define ACC_ROW(r) (8 * ((r) / 4) + 4 * (LANE / BLOCK) + (r) % 4)
#else
#define WAVE 32
#define BLOCK 16
#define UNIT_K 16
#define ACC float8
#define ACC_SIZE 8
#define FIRST_K 0
#define ACC_ROW(r) (2 * (r) + LANE / BLOCK)
#endif
#define LANE ((int)get_local_id(0) % WAVE)
#define LINE (LANE % BLOCK)

#if defined(__gfx90a__) || defined(__gfx940__) || defined(__gfx941__) || defined(__gfx942__)
#define HAS_MFMA 1
#elif defined(__gfx908__)
#define HAS_MFMA IS_DTYPE(f32)
#else
#define HAS_MFMA 0
#endif
#if defined(__gfx1100__) || defined(__gfx1101__) || defined(__gfx1102__) || defined(__gfx1103__) || \
    defined(__gfx1150__) || defined(__gfx1151__)
#define HAS_WMMA 1
#else
#define HAS_WMMA 0
#endif

#if (UNIT == UNIT_mfma && HAS_MFMA) || (UNIT == UNIT_wmma && HAS_WMMA)
#pragma OPENCL EXTENSION cl_khr_fp16 : enable
#define UNIT_SPACE
#define UNROLL _Pragma("unroll")
#if IS_DTYPE(f32)
#define MULTIPLY_BLOCK(acc, a, b) acc = __builtin_amdgcn_mfma_f32_32x32x2f32(a, b, acc, 0, 0, 0);
#elif UNIT == UNIT_mfma && IS_DTYPE(bf16)
#define MULTIPLY_BLOCK(acc, a, b) \
  acc = __builtin_amdgcn_mfma_f32_32x32x8bf16_1k(a, b, acc, 0, 0, 0);
#elif UNIT == UNIT_mfma
#define MULTIPLY_BLOCK(acc, a, b) \
  acc = __builtin_amdgcn_mfma_f32_32x32x8f16(as_half4(a), as_half4(b), acc, 0, 0, 0);
#elif IS_DTYPE(bf16)
#define MULTIPLY_BLOCK(acc, a, b) acc = __builtin_amdgcn_wmma_f32_16x16x16_bf16_w32(a, b, acc);
#else
#define MULTIPLY_BLOCK(acc, a, b) \
  acc = __builtin_amdgcn_wmma_f32_16x16x16_f16_w32(as_half16(a), as_half16(b), acc);
#endif
#else
#define UNROLL  // the compilers of processors take seconds for it
#define UNIT_SPACE                                    \
  __local ELEMENT unit_a[256 / WAVE][BLOCK * UNIT_K]; \
  __local ELEMENT unit_b[256 / WAVE][BLOCK * UNIT_K];
#define UNIT_VALUE(unit, line, k) \
  LOAD(DTYPE)((__local const TYPE(DTYPE)*)unit[get_local_id(0) / WAVE], (line) * UNIT_K + (k))
#define MULTIPLY_BLOCK(acc, a, b)                                                             \
  {                                                                                           \
    const OPERAND a_mine[1] = {a}, b_mine[1] = {b};                                           \
    for (int e = 0; e < LANE_K; ++e) {                                                        \
      const int at = LINE * UNIT_K + FIRST_K + e;                                             \
      unit_a[get_local_id(0) / WAVE][at] = ((const ELEMENT*)a_mine)[e];                       \
      unit_b[get_local_id(0) / WAVE][at] = ((const ELEMENT*)b_mine)[e];                       \
    }                                                                                         \
    barrier(CLK_LOCAL_MEM_FENCE);                                                             \
    float acc_mine[ACC_SIZE];                                                                 \
    NETCL_JOIN(vstore, ACC_SIZE)(acc, 0, acc_mine);                                           \
    for (int r = 0; r < ACC_SIZE; ++r)                                                        \
      for (int k = 0; k < UNIT_K; ++k)                                                        \
        acc_mine[r] += UNIT_VALUE(unit_a, ACC_ROW(r), k) * UNIT_VALUE(unit_b, LINE, k);       \
    acc = NETCL_JOIN(vload, ACC_SIZE)(0, acc_mine);                                           \
    barrier(CLK_LOCAL_MEM_FENCE);                                                             \
  }
#endif
