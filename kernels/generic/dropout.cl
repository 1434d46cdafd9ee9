// dropout: keeps an element with probability 1 - p and scales it by 1 / (1 - p).
//
// Contract   x: X_DTYPE[n], y: Y_DTYPE[n]; state i32[8]: seed low, seed high, step, first
//            row of the global batch.
//            row: elements of one sample. Element i has the index e = first * row + i in the global
//            batch; word e % 4 of Philox 4x32-10 with key (seed) and counter (e / 4 low, e / 4
//            high, step, stream) decides: u = (word >> 8) 2^-24, kept if u >= p. The mask thus
//            does not depend on how the batch is divided among devices.
// Defines    X_DTYPE Y_DTYPE. Needs storage.cl before it.
// Divisible  nothing: work-item j draws quad e0 / 4 + j and writes those of its four elements that
//            lie inside; ceil(n / 4) + 1 work-items reach all.
// Source     Salmon, Moraes, Dror, Shaw: Parallel random numbers: as easy as 1, 2, 3. SC 2011.

static inline uint4 philox(uint4 c, uint k0, uint k1) {
  for (int round = 0; round < 10; ++round) {
    const uint high0 = mul_hi(0xD2511F53u, c.x);
    const uint low0 = 0xD2511F53u * c.x;
    const uint high1 = mul_hi(0xCD9E8D57u, c.z);
    const uint low1 = 0xCD9E8D57u * c.z;
    c = (uint4)(high1 ^ c.y ^ k0, low1, high0 ^ c.w ^ k1, low0);
    k0 += 0x9E3779B9u;
    k1 += 0xBB67AE85u;
  }
  return c;
}

static inline void put(__global const TYPE(X_DTYPE)* x, __global TYPE(Y_DTYPE)* y, const long i,
                       const int n, const uint word, const float p) {
  if (i < 0 || i >= n) return;
  const float u = (float)(word >> 8) * 0x1p-24f;
  STORE(Y_DTYPE)(y, i, u >= p ? LOAD(X_DTYPE)(x, i) * (1.0f / (1.0f - p)) : 0.0f);
}

__kernel void dropout_generic_quad(__global const TYPE(X_DTYPE)* x, __global const int* state,
                                   __global TYPE(Y_DTYPE)* y, const int n, const int row,
                                   const float p, const int stream) {
  const ulong first = (ulong)(uint)state[3] * (ulong)(uint)row;
  const ulong quad = first / 4 + (ulong)get_global_id(0);
  const uint4 words = philox((uint4)((uint)quad, (uint)(quad >> 32), (uint)state[2], (uint)stream),
                             (uint)state[0], (uint)state[1]);
  const long i = (long)(quad * 4 - first);
  put(x, y, i, n, words.x, p);
  put(x, y, i + 1, n, words.y, p);
  put(x, y, i + 2, n, words.z, p);
  put(x, y, i + 3, n, words.w, p);
}
