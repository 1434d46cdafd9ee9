// What the programs that time products share.
#ifndef NETCL_TESTS_BENCH_CPU_MATMUL_TIMING_H_
#define NETCL_TESTS_BENCH_CPU_MATMUL_TIMING_H_

#include <stdlib.h>
#include <time.h>

static double now_us(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec * 1e6 + (double)t.tv_nsec * 1e-3;
}

static int compare(const void* a, const void* b) {
  const double x = *(const double*)a, y = *(const double*)b;
  return (x > y) - (x < y);
}

static float* random_floats(size_t count) {
  float* out = malloc(count * sizeof(float));
  for (size_t i = 0; i < count; ++i) out[i] = (float)drand48() - 0.5f;
  return out;
}

#endif  // NETCL_TESTS_BENCH_CPU_MATMUL_TIMING_H_
