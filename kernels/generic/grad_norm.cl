// grad_norm: the length of the divided gradient, and the divisor that clips it.
//
// Contract   grad at least grad_offset + n floats, blocks i32[ceil(n / 128)] (optimizer_common.cl; frozen
//            blocks do not count), divisor f32[1] -> norm f32[1], clipped divisor f32[1]:
//            norm = sqrt(sum((grad / divisor)^2)), 0 for a divisor of 0; with max_norm above 0
//            divisor / min(1, max_norm / (norm + 1e-6)), else the divisor as it is.
//            scratch: f32, one partial sum a chunk of 4096 floats.
// Defines    GROUP: 256 (group kernels, which need group_reduce.cl before them).
// Divisible  nothing.
// Order      lanes: eight interleaved sums a chunk, a fixed tree; chunks in order.
//            group: strided partial sums, then a tree; the same for the chunks.

#define NETCL_CHUNK 4096

static inline void finish_norm(const float sum, __global const float* divisor, const float max_norm,
                               __global float* norm, __global float* clipped) {
  const float length = sqrt(sum), d = divisor[0];
  // Not fmin, which would take a norm that is no number for a short one.
  const float scale = (length + 1e-6f) / max_norm;
  norm[0] = length;
  clipped[0] = max_norm > 0.0f && !(scale <= 1.0f) ? d * scale : d;
}

static inline float quotient(const float divisor) { return divisor == 0.0f ? 0.0f : 1.0f / divisor; }

// A gradient that counts as zero must not leak what it holds.
static inline float counted(const float g, const float inverse) {
  return inverse == 0.0f ? 0.0f : g * inverse;
}

#ifndef GROUP
__kernel void grad_norm_generic_lanes(__global const float* grad, __global const int* blocks,
                                      __global const float* divisor, __global float* partial,
                                      const int n, const int grad_offset, const int chunks) {
  const int c = (int)get_global_id(0);
  if (c >= chunks) return;
  grad += grad_offset;
  const float inverse = quotient(divisor[0]);
  const int last = min(n, (c + 1) * NETCL_CHUNK);
  float8 sums = 0;
  float rest = 0;
  for (int first = c * NETCL_CHUNK; first < last && inverse != 0.0f; first += NETCL_BLOCK) {
    if (netcl_group(blocks[first / NETCL_BLOCK]) == NETCL_FROZEN) continue;
    if (first + NETCL_BLOCK <= last) {
      for (int i = first; i < first + NETCL_BLOCK; i += 8) {
        const float8 g = vload8(0, grad + i) * inverse;
        sums += g * g;
      }
    } else {
      for (int i = first; i < last; ++i) rest += (grad[i] * inverse) * (grad[i] * inverse);
    }
  }
  const float4 a = sums.lo + sums.hi;
  partial[c] = ((a.x + a.z) + (a.y + a.w)) + rest;
}

__kernel void grad_norm_generic_total(__global const float* partial, __global const float* divisor,
                                      __global float* norm, __global float* clipped,
                                      const int chunks, const float max_norm) {
  float sum = 0;
  for (int c = 0; c < chunks; ++c) sum += partial[c];
  finish_norm(sum, divisor, max_norm, norm, clipped);
}
#else
__kernel void grad_norm_generic_group(__global const float* grad, __global const int* blocks,
                                      __global const float* divisor, __global float* partial,
                                      const int n, const int grad_offset) {
  __local float parts[GROUP];
  const int c = (int)get_group_id(0), t = (int)get_local_id(0);
  const float inverse = quotient(divisor[0]);
  const int last = min(n, (c + 1) * NETCL_CHUNK);
  float acc = 0;
  for (int i = c * NETCL_CHUNK + t; i < last; i += GROUP) {
    const int frozen = netcl_group(blocks[i / NETCL_BLOCK]) == NETCL_FROZEN;
    const float g = frozen ? 0.0f : counted(grad[grad_offset + i], inverse);
    acc += g * g;
  }
  const float sum = group_sum(acc, parts);
  if (t == 0) partial[c] = sum;
}

__kernel void grad_norm_generic_tree(__global const float* partial, __global const float* divisor,
                                     __global float* norm, __global float* clipped,
                                     const int chunks, const float max_norm) {
  __local float parts[GROUP];
  const int t = (int)get_local_id(0);
  float acc = 0;
  for (int c = t; c < chunks; c += GROUP) acc += partial[c];
  const float sum = group_sum(acc, parts);
  if (t == 0) finish_norm(sum, divisor, max_norm, norm, clipped);
}
#endif
