// Two-dimensional convolution as its five ops see it: one geometry, the facts that kernels are
// given and the double-precision loops. Threads: any (pure functions).
//
// Every op speaks of the same convolution x [N,C,H,W] * w [O,C/groups,KH,KW] -> y [N,O,OH,OW]; the
// transposed one is the convolution whose y is its input.
#ifndef NETCL_CORE_OPS_CONV_H_
#define NETCL_CORE_OPS_CONV_H_

#include <vector>

#include "core/ops/op.h"
#include "core/ops/window.h"

namespace netcl {

struct ConvSizes {
  int64_t n = 0, c = 0, h = 0, w = 0, o = 0, oh = 0, ow = 0, groups = 1;
  Slide height{1, 1, 0, 1}, width{1, 1, 0, 1};
};

// Reads stride, padding, dilation and groups. Errors: kUsage.
ConvSizes conv_window(const Attrs& attrs, int64_t kernel_h, int64_t kernel_w);

// The sizes of each op's call; n may be symbolic. Errors: kUsage, naming channels and both shapes.
ConvSizes conv_sizes(const OpCall& call);              // x, w, optional bias
ConvSizes conv_grad_input_sizes(const OpCall& call);   // dy, w; attribute input
ConvSizes conv_grad_weight_sizes(const OpCall& call);  // x, dy; attribute kernel
ConvSizes conv_transpose_sizes(const OpCall& call);    // x, w, optional bias

// Sets N C H W O OH OW KH KW SH SW PH PW DH DW has_bias and the lists sizes8 and window8
// (kernels/README.md).
void conv_facts(const ConvSizes& s, bool has_bias, Attrs& facts);

// y of x and w; dx of dy and w; dw of x and dy. They add to what the result holds.
void conv_forward(const ConvSizes& s, const double* x, const double* w, double* y);
void conv_backward_input(const ConvSizes& s, const double* dy, const double* w, double* dx);
void conv_backward_weight(const ConvSizes& s, const double* x, const double* dy, double* dw);

}  // namespace netcl

#endif  // NETCL_CORE_OPS_CONV_H_
