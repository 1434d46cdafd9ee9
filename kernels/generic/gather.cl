// gather, scatter_add, index_select, embedding, their gradients, and one_hot.
//
// Contract   x is seen as [outer, rows, inner], y as [outer, count, inner]; indices i32, in
//            [0, rows): one an element of y for gather and scatter_add, one for each of `count`
//            rows for the others. An index outside yields NaN (0 where Y is an integer); in sums
//            it counts for nothing.
// Defines    X_DTYPE Y_DTYPE; FLOAT_Y: 1 if Y is a float type; WIDTH (sum kernel): elements of
//            inner a work-item. Needs storage.cl before it.
// Divisible  nothing.
// Order      sums run over count = 0, 1, ... in f32.

#if FLOAT_Y
#define MISSING NAN
#else
#define MISSING 0
#endif

__kernel void gather_generic_dense(__global const TYPE(X_DTYPE)* x, __global const int* index,
                                   __global TYPE(Y_DTYPE)* y, const int n, const int rows,
                                   const int count, const int inner) {
  const int i = (int)get_global_id(0);
  if (i >= n) return;
  const int line = i / inner;
  const int at = index[i];
  if (at >= 0 && at < rows) {
    STORE(Y_DTYPE)(y, i, LOAD(X_DTYPE)(x, ((size_t)(line / count) * rows + at) * inner + i - line * inner));
  } else {
    STORE(Y_DTYPE)(y, i, MISSING);
  }
}

// Adds along one line after the other: a work-item owns a line of y, so nothing collides.
__kernel void scatter_add_generic_line(__global const TYPE(X_DTYPE)* x, __global const int* index,
                                       __global TYPE(Y_DTYPE)* y, __global float* sums,
                                       const int lines, const int rows, const int count,
                                       const int inner) {
  const int line = (int)get_global_id(0);
  if (line >= lines) return;
  const int o = line / inner;
  const int in = line - o * inner;
  const size_t to = (size_t)o * rows * inner + in;
  const size_t from = (size_t)o * count * inner + in;
  for (int r = 0; r < rows; ++r) sums[to + (size_t)r * inner] = 0;
  for (int c = 0; c < count; ++c) {
    const int at = index[from + (size_t)c * inner];
    if (at >= 0 && at < rows) {
      sums[to + (size_t)at * inner] += LOAD(X_DTYPE)(x, from + (size_t)c * inner);
    }
  }
  for (int r = 0; r < rows; ++r) {
    STORE(Y_DTYPE)(y, to + (size_t)r * inner, sums[to + (size_t)r * inner]);
  }
}

// One work-item an element of y, for few lines.
__kernel void scatter_add_generic_element(__global const TYPE(X_DTYPE)* x,
                                          __global const int* index, __global TYPE(Y_DTYPE)* y,
                                          const int n, const int rows, const int count,
                                          const int inner) {
  const int i = (int)get_global_id(0);
  if (i >= n) return;
  const int line = i / inner;
  const int in = i - line * inner;
  const int o = line / rows;
  const int r = line - o * rows;
  float sum = 0;
  for (int c = 0; c < count; ++c) {
    const size_t at = ((size_t)o * count + c) * inner + in;
    if (index[at] == r) sum += LOAD(X_DTYPE)(x, at);
  }
  STORE(Y_DTYPE)(y, i, sum);
}

__kernel void index_select_generic_element(__global const TYPE(X_DTYPE)* x,
                                           __global const int* index, __global TYPE(Y_DTYPE)* y,
                                           const int n, const int rows, const int count,
                                           const int inner) {
  const int i = (int)get_global_id(0);
  if (i >= n) return;
  const int line = i / inner;
  const int o = line / count;
  const int at = index[line - o * count];
  if (at >= 0 && at < rows) {
    STORE(Y_DTYPE)(y, i, LOAD(X_DTYPE)(x, ((size_t)o * rows + at) * inner + i - line * inner));
  } else {
    STORE(Y_DTYPE)(y, i, MISSING);
  }
}

// One work-item a row of y, for CPUs: work-item (count, outer).
__kernel void index_select_generic_row(__global const TYPE(X_DTYPE)* x, __global const int* index,
                                       __global TYPE(Y_DTYPE)* y, const int rows,
                                       const int inner) {
  const int at = index[get_global_id(0)];
  y += (get_global_id(1) * get_global_size(0) + get_global_id(0)) * inner;
  if (at >= 0 && at < rows) {
    x += (get_global_id(1) * rows + at) * inner;
    for (int i = 0; i < inner; ++i) STORE(Y_DTYPE)(y, i, LOAD(X_DTYPE)(x, i));
  } else {
    for (int i = 0; i < inner; ++i) STORE(Y_DTYPE)(y, i, MISSING);
  }
}

// The gradient in two steps: a chain of the positions of every row, in order, and sums along it.
// head[r] is the first position of row r, next[c] the one after c of the same row; -1 ends.
// By one work-item, for CPUs.
__kernel void index_select_grad_generic_link(__global const int* index, __global int* head,
                                             __global int* next, const int rows,
                                             const int count) {
  for (int r = 0; r < rows; ++r) head[r] = -1;
  for (int c = count - 1; c >= 0; --c) {
    const int at = index[c];
    if (at < 0 || at >= rows) continue;
    next[c] = head[at];
    head[at] = c;
  }
}

// By one work-item a row.
__kernel void index_select_grad_generic_scan(__global const int* index, __global int* head,
                                             __global int* next, const int rows,
                                             const int count) {
  const int r = (int)get_global_id(0);
  if (r >= rows) return;
  int first = -1, last = -1;
#define SEE(value, c)                            \
  if ((value) == r) {                            \
    if (last < 0) first = c; else next[last] = c; \
    last = c;                                    \
  }
  const int whole = count & ~3;
  for (int c = 0; c < whole; c += 4) {
    const int4 four = vload4(0, index + c);
    SEE(four.x, c) SEE(four.y, c + 1) SEE(four.z, c + 2) SEE(four.w, c + 3)
  }
  for (int c = whole; c < count; ++c) { SEE(index[c], c) }
#undef SEE
  if (last >= 0) next[last] = -1;
  head[r] = first;
}

#ifdef WIDTH
// Work-item (block of WIDTH of inner, row, outer).
__kernel void index_select_grad_generic_sum(__global const TYPE(X_DTYPE)* dy,
                                            __global const int* head, __global const int* next,
                                            __global TYPE(Y_DTYPE)* dx, const int count,
                                            const int inner) {
  const int first = WIDTH * (int)get_global_id(0);
  const int width = min(WIDTH, inner - first);
  if (width <= 0) return;
  dy += get_global_id(2) * count * inner + first;
  dx += (get_global_id(2) * get_global_size(1) + get_global_id(1)) * inner + first;
  float sums[WIDTH];
  for (int i = 0; i < WIDTH; ++i) sums[i] = 0;
  for (int c = head[get_global_id(1)]; c >= 0; c = next[c]) {
    __global const TYPE(X_DTYPE)* from = dy + (size_t)c * inner;
    if (width == WIDTH) {
      for (int i = 0; i < WIDTH; ++i) sums[i] += LOAD(X_DTYPE)(from, i);
    } else {
      for (int i = 0; i < width; ++i) sums[i] += LOAD(X_DTYPE)(from, i);
    }
  }
  for (int i = 0; i < width; ++i) STORE(Y_DTYPE)(dx, i, sums[i]);
}
#endif

__kernel void one_hot_generic_dense(__global const int* index, __global TYPE(Y_DTYPE)* y,
                                    const int n, const int classes) {
  const int i = (int)get_global_id(0);
  if (i >= n) return;
  const int line = i / classes;
  const int at = index[line];
  const float value = at < 0 || at >= classes ? NAN : at == i - line * classes ? 1.0f : 0.0f;
  STORE(Y_DTYPE)(y, i, value);
}
