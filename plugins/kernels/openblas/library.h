// The library OpenBLAS, opened at run time: nothing is linked to it, and a machine without it has
// one kernel set less.
//
// Products are computed by one thread each (a crew of our own shares the work out, see crew.h), so
// any flavour will do: with POSIX threads, with OpenMP, or without threads. Its number of threads,
// which belongs to the whole process, becomes 1.
#ifndef NETCL_PLUGINS_KERNELS_OPENBLAS_LIBRARY_H_
#define NETCL_PLUGINS_KERNELS_OPENBLAS_LIBRARY_H_

#include <cstdint>
#include <string>

namespace netcl::openblas {

// y[m,n] = a b for matrices by rows; a row of each begins `..._row` elements after the one before.
struct Matrices {
  const float *a, *b;
  float* y;
  int64_t m, n, k, a_row, b_row, y_row;
  bool a_transposed, b_transposed;
};

class Library {
 public:
  // Never closed again. Errors: Decline, saying what is missing and what to do.
  explicit Library(const char* file);

  // "0.3.21-Zen": results and speed depend on the version and on the kernels that it has chosen for
  // the processor.
  const std::string& name() const { return name_; }
  // Of how many threads it can be called at the same time.
  int max_callers() const { return max_callers_; }
  // Threads: any, at most max_callers() at once; more of one that can take one alone wait.
  void multiply(const Matrices& of) const;

 private:
  using Sgemm = void (*)(int, int, int, int, int, int, float, const float*, int, const float*, int,
                         float, float*, int);
  Sgemm sgemm_ = nullptr;
  int (*get_threads_)() = nullptr;
  void (*set_threads_)(int) = nullptr;
  std::string name_;
  int max_callers_ = 1;
};

}  // namespace netcl::openblas

#endif  // NETCL_PLUGINS_KERNELS_OPENBLAS_LIBRARY_H_
