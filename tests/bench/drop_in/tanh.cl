// y = tanh(x) of n f32 elements, in vectors.
//
// Arguments: x, y, n. Any n; x and y need not be aligned, and may be the same.
// Tunables: WIDTH (4, 8, 16) elements of a vector; BLOCK vectors of a work-item.
// tanh(x) = 1 - 2 / (exp(2 x) + 1) has an absolute error of some 1e-7: compilers have exp for whole
// vectors, but call the library's tanh for each element. Infinity and NaN come out right, too.
#define JOIN_(a, b) a##b
#define JOIN(a, b) JOIN_(a, b)
#define FLOATS JOIN(float, WIDTH)
#define LOAD JOIN(vload, WIDTH)
#define STORE JOIN(vstore, WIDTH)

__kernel void tanh_drop_in_vector(__global const float* x, __global float* y, const int n) {
  const int begin = (int)get_global_id(0) * WIDTH * BLOCK;
  for (int b = 0; b < BLOCK; ++b) {
    const int i = begin + b * WIDTH;
    if (i + WIDTH <= n) {
      STORE(1.0f - 2.0f / (exp(2.0f * LOAD(0, x + i)) + 1.0f), 0, y + i);
    } else {
      for (int k = i; k < n; ++k) y[k] = tanh(x[k]);
    }
  }
}
