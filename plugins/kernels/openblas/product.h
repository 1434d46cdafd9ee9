// One batched product with what follows it, cut into blocks of y.
//
// How it is cut depends on the shape and the variant, never on the number of cores: the library
// adds up the elements at a block's edge in another order, so the cut is in the bits.
#ifndef NETCL_PLUGINS_KERNELS_OPENBLAS_PRODUCT_H_
#define NETCL_PLUGINS_KERNELS_OPENBLAS_PRODUCT_H_

#include <cstddef>
#include <cstdint>

#include "plugins/kernels/openblas/library.h"

namespace netcl::openblas {

struct Product {
  int64_t m, n, k, batch, a_batch, b_batch;  // see matmul in kernels/README.md
  bool a_transposed, b_transposed, relu;
  int64_t rows, columns;  // of a block

  size_t num_pieces() const;
  // Computes one block. `bias`: null or [n]. Threads: any, each with another piece.
  void compute(size_t piece, const Library& library, const float* a, const float* b,
               const float* bias, float* y) const;
};

}  // namespace netcl::openblas

#endif  // NETCL_PLUGINS_KERNELS_OPENBLAS_PRODUCT_H_
