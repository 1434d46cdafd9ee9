// A library with the functions of OpenBLAS that the kernel set uses, and counters. CONFIG, PARALLEL
// and WITHOUT_SGEMM make it one of another kind.
#include <sched.h>
#include <stdatomic.h>

#pragma GCC visibility push(default)

#ifndef CONFIG
#define CONFIG "OpenBLAS 1.2.3 DYNAMIC_ARCH USE_OPENMP Fake MAX_THREADS=64"
#endif
#ifndef PARALLEL
#define PARALLEL 2
#endif

static _Thread_local int threads = 8;  // as a flavour with OpenMP keeps it
static atomic_int most, wrong;

char* openblas_get_config(void) { return (char*)CONFIG; }
char* openblas_get_corename(void) { return (char*)"Fake"; }
int openblas_get_parallel(void) { return PARALLEL; }
int openblas_get_num_threads(void) { return threads; }
void openblas_set_num_threads(int n) { threads = n; }

// Callers at the same time, at most; calls of threads that were not told to be alone.
int fake_blas_most(void) { return most; }
int fake_blas_wrong(void) { return wrong; }

#ifndef WITHOUT_SGEMM
void cblas_sgemm(int order, int form_a, int form_b, int m, int n, int k, float alpha,
                 const float* a, int a_row, const float* b, int b_row, float beta, float* y,
                 int y_row) {
  static atomic_int now;
  const int callers = atomic_fetch_add(&now, 1) + 1;
  for (int seen = most; callers > seen && !atomic_compare_exchange_weak(&most, &seen, callers);) {
  }
  if (threads != 1 || order != 101 || alpha != 1.0f || beta != 0.0f || k == 0)
    atomic_fetch_add(&wrong, 1);
  sched_yield();
  for (int i = 0; i < m; ++i) {
    for (int j = 0; j < n; ++j) {
      float sum = 0;
      for (int l = 0; l < k; ++l) {
        sum += (form_a == 112 ? a[l * a_row + i] : a[i * a_row + l]) *
               (form_b == 112 ? b[j * b_row + l] : b[l * b_row + j]);
      }
      y[i * y_row + j] = sum;
    }
  }
  atomic_fetch_sub(&now, 1);
}
#endif
