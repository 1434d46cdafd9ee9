// The op example.gated_norm and its gradient, in f32.
//
// A row of x is [a..., g...], 2 C numbers. With r = 1 / sqrt(mean(a^2) + eps), s(g) = sigmoid(g):
//   y  = a r w g s(g)
// With u = dy w g s(g):
//   da = r (u - a r^2 mean(u a))
//   dg = dy a r w s(g) (1 + g (1 - s(g)))
//   dw = sum over the rows of dy a r g s(g)
// Arguments: C is even (rows are read two numbers at a time), `sums` holds a float per work-item.
// One work-group a row, or a strip of rows; the local size is a power of two. Sums are taken in a
// fixed order (each work-item its columns, then a tree), so results have the same bits every time.

float sum_of_group(float mine, __local float* sums) {
  const int i = (int)get_local_id(0);
  sums[i] = mine;
  for (int reach = (int)get_local_size(0) / 2; reach > 0; reach /= 2) {
    barrier(CLK_LOCAL_MEM_FENCE);
    if (i < reach) sums[i] += sums[i + reach];
  }
  barrier(CLK_LOCAL_MEM_FENCE);
  const float all = sums[0];
  barrier(CLK_LOCAL_MEM_FENCE);  // before the next sum is begun
  return all;
}

float2 sigmoid2(float2 g) { return 1.0f / (1.0f + exp(-g)); }

__kernel void gated_norm_fused_layer_row(__global const float* x, __global const float* w,
                                     __global float* y, int columns, float eps,
                                     __local float* sums) {
  const size_t row = get_group_id(0);
  const int pairs = columns / 2, step = (int)get_local_size(0);
  __global const float* a = x + row * 2 * (size_t)columns;
  __global const float* g = a + columns;
  float2 squares = 0.0f;
  for (int i = (int)get_local_id(0); i < pairs; i += step) {
    const float2 ai = vload2(i, a);
    squares += ai * ai;
  }
  const float all = sum_of_group(squares.x + squares.y, sums);
  const float r = 1.0f / sqrt(all / (float)columns + eps);
  for (int i = (int)get_local_id(0); i < pairs; i += step) {
    const float2 gi = vload2(i, g);
    vstore2(vload2(i, a) * r * vload2(i, w) * gi * sigmoid2(gi), i, y + row * (size_t)columns);
  }
}

// dx, and for each strip of rows its part of dw (partial: strips x C).
__kernel void gated_norm_fused_layer_grad(__global const float* x, __global const float* w,
                                      __global const float* dy, __global float* dx,
                                      __global float* partial, int rows, int columns, float eps,
                                      __local float* sums) {
  const int strip = (int)get_group_id(0), strips = (int)get_num_groups(0);
  const int pairs = columns / 2, first = (int)get_local_id(0), step = (int)get_local_size(0);
  __global float* dw = partial + (size_t)strip * (size_t)columns;
  for (int i = first; i < pairs; i += step) vstore2((float2)(0.0f), i, dw);
  for (int row = strip; row < rows; row += strips) {
    __global const float* a = x + (size_t)row * 2 * (size_t)columns;
    __global const float* g = a + columns;
    __global const float* d = dy + (size_t)row * (size_t)columns;
    __global float* da = dx + (size_t)row * 2 * (size_t)columns;
    __global float* dg = da + columns;
    float2 squares = 0.0f, products = 0.0f;
    for (int i = first; i < pairs; i += step) {
      const float2 ai = vload2(i, a), gi = vload2(i, g);
      squares += ai * ai;
      products += vload2(i, d) * vload2(i, w) * gi * sigmoid2(gi) * ai;
    }
    const float r = 1.0f / sqrt(sum_of_group(squares.x + squares.y, sums) / (float)columns + eps);
    const float mean = sum_of_group(products.x + products.y, sums) / (float)columns;
    for (int i = first; i < pairs; i += step) {
      const float2 ai = vload2(i, a), gi = vload2(i, g), di = vload2(i, d), wi = vload2(i, w);
      const float2 s = sigmoid2(gi);
      vstore2(r * (di * wi * gi * s - ai * (r * r * mean)), i, da);
      vstore2(di * ai * r * wi * s * (1.0f + gi * (1.0f - s)), i, dg);
      // The work-item's own columns: nobody else reads or writes them.
      vstore2(vload2(i, dw) + di * ai * r * gi * s, i, dw);
    }
  }
}

// dw: the strips' parts, added up in their order. With no rows there are no strips, and it is zero.
__kernel void gated_norm_fused_layer_weight(__global const float* partial, __global float* dw,
                                        int strips, int columns) {
  const int c = (int)get_global_id(0);
  float sum = 0.0f;
  for (int strip = 0; strip < strips; ++strip)
    sum += partial[(size_t)strip * (size_t)columns + (size_t)c];
  dw[c] = sum;
}
