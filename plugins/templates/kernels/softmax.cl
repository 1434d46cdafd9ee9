// softmax of f32 rows that lie together: y = exp(x - max) / sum, of a row of `reduce` elements.
//
// Step 1: change a kernel, or add one. What a kernel is given for each op, and the names (outer,
//         reduce, inner, ...) that variants.json computes with, are listed in netcl's
//         kernels/README.md.
// Step 2: say in variants.json when it can serve ("when"), when it should ("prefer"), and how it
//         is launched: arguments in the kernel's order, global and local sizes.
// Step 3: list its op in plugin.json ("provides") and in check.sh, and run `make check`.

// One work-item a row: made for CPUs, which have few and fast ones. Launched with [outer].
__kernel void softmax_@IDENT@_rows(__global const float* x, __global float* y, const int reduce) {
  const size_t row = get_global_id(0) * (size_t)reduce;
  x += row;
  y += row;
  // Without the greatest element the exponentials of large numbers would overflow.
  float top = -INFINITY;
  for (int i = 0; i < reduce; ++i) top = fmax(top, x[i]);
  float sum = 0;
  for (int i = 0; i < reduce; ++i) {
    y[i] = exp(x[i] - top);
    sum += y[i];
  }
  for (int i = 0; i < reduce; ++i) y[i] /= sum;
}

#ifdef GROUP  // set by the variant ("defines")
// A work-group a row: made for GPUs. `part` is local memory, a float for each work-item.
__kernel void softmax_@IDENT@_groups(__global const float* x, __global float* y,
                                     __local float* part, const int reduce) {
  const int me = (int)get_local_id(0);
  const size_t row = get_group_id(0) * (size_t)reduce;
  x += row;
  y += row;
  // Every work-item takes each GROUP-th element, then halves of the group meet in a tree.
  float top = -INFINITY;
  for (int i = me; i < reduce; i += GROUP) top = fmax(top, x[i]);
  part[me] = top;
  for (int step = GROUP / 2; step > 0; step /= 2) {
    barrier(CLK_LOCAL_MEM_FENCE);
    if (me < step) part[me] = fmax(part[me], part[me + step]);
  }
  barrier(CLK_LOCAL_MEM_FENCE);
  top = part[0];
  barrier(CLK_LOCAL_MEM_FENCE);  // all have read it before it is overwritten
  float sum = 0;
  for (int i = me; i < reduce; i += GROUP) sum += exp(x[i] - top);
  part[me] = sum;
  for (int step = GROUP / 2; step > 0; step /= 2) {
    barrier(CLK_LOCAL_MEM_FENCE);
    if (me < step) part[me] += part[me + step];
  }
  barrier(CLK_LOCAL_MEM_FENCE);
  for (int i = me; i < reduce; i += GROUP) y[i] = exp(x[i] - top) / part[0];
}
#endif
