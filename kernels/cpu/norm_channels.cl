// batch_norm_sums, batch_norm_grad_sums and norm_grad_params in one launch, for CPUs: a work-item
// adds up a few channels, over all samples, which it reads in order.
//
// Contract   that of norm_sums.cl, without partial sums: work-item i does PER channels from i * PER on.
// Defines    those of norm_sums.cl; PER.
// Divisible  nothing.
// Tunables   VECTOR (vector.cl). PER: 1 to 16 channels.
// Order      VECTOR interleaved sums a sample, which are added up sample by sample, then a fixed tree;
//            what is left of S by VECTOR likewise, element by element.
// Needs storage.cl, vector.cl and norm_sums.cl before it.

VECTOR_KERNEL void norm_sums_cpu_channels(__global const TYPE(X_DTYPE)* x,
                                          __global const TYPE(D_DTYPE)* dy,
                                          __global const float* p, __global const float* q,
                                          __global float* out, __global float* first,
                                          __global float* second, const int N, const int C,
                                          const int S, const int G, const float eps) {
  const int c0 = PER * (int)get_global_id(0), channels = min(PER, C - c0);
  const int whole = S & ~(VECTOR - 1);
  FLOATV a[PER], b[PER];
  float2 rest[PER], centres[PER];
  for (int c = 0; c < PER; ++c) {
    a[c] = b[c] = 0;
    rest[c] = 0;
    centres[c] = KIND == 2 ? 0 : centre_of(p, q, 0, min(c0 + c, C - 1), C, G);
  }
  for (int n = 0; n < N; ++n) {
    for (int c = 0; c < channels; ++c) {
      const float2 centre = KIND == 2 ? centre_of(p, q, n, c0 + c, C, G) : centres[c];
      const size_t at = ((size_t)n * C + c0 + c) * S;
      FLOATV av = 0, bv = 0;
      add_vectors(x + at, dy + at, whole, centre, &av, &bv);
      a[c] += av;
      b[c] += bv;
      for (int s = whole; s < S; ++s) {
        const float d = (LOAD(X_DTYPE)(x, at + s) - centre.x) * centre.y;
        const float g = READ_DY(LOAD(D_DTYPE)(dy, at + s));
        rest[c] += (float2)(FIRST(g, d), SECOND(g, d));
      }
    }
  }
  for (int c = 0; c < channels; ++c)
    write_sums((float2)(sum_of(a[c]), sum_of(b[c])) + rest[c], q, out, first, second, c0 + c, C, N * S,
               eps);
}
