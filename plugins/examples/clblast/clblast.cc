// The kernel set `clblast`: matmul by the library CLBlast. A set need not be made of .cl files: a
// recipe may say that a library enqueues the work.
//
// What CLBlast does not do, a bias and an activation after the product, is a launch of our own
// after it. Its first call for a device and a type compiles, which takes some seconds; netcl makes
// it before the first step.
#include <clblast.h>

#include <string>

#include "netcl_kernels.hpp"

namespace {

using netcl::plugin::Decline;
using netcl::plugin::Failure;
using netcl::plugin::KernelCall;
using netcl::plugin::KernelSet;
using netcl::plugin::NativeCall;
using netcl::plugin::Recipe;

// y = a b for matrices by rows, `batch` of them that lie `..._batch` elements apart.
struct Product {
  size_t m, n, k, batch, a_batch, b_batch;
  bool a_transposed, b_transposed;

  void enqueue(const NativeCall& call) const {
    auto* queue = static_cast<cl_command_queue>(call.queue);
    auto** event = reinterpret_cast<cl_event*>(call.event);
    const auto buffer = [](void* memory) { return static_cast<cl_mem>(memory); };
    const auto form = [](bool transposed) {
      return transposed ? clblast::Transpose::kYes : clblast::Transpose::kNo;
    };
    const size_t a_row = a_transposed ? m : k, b_row = b_transposed ? k : n;
    const clblast::StatusCode status =
        batch == 1
            ? clblast::Gemm<float>(clblast::Layout::kRowMajor, form(a_transposed),
                                   form(b_transposed), m, n, k, 1.0f, buffer(call.in[0]), 0, a_row,
                                   buffer(call.in[1]), 0, b_row, 0.0f, buffer(call.out[0]), 0, n,
                                   &queue, event)
            : clblast::GemmStridedBatched<float>(
                  clblast::Layout::kRowMajor, form(a_transposed), form(b_transposed), m, n, k, 1.0f,
                  buffer(call.in[0]), 0, a_row, a_batch, buffer(call.in[1]), 0, b_row, b_batch,
                  0.0f, buffer(call.out[0]), 0, n, m * n, batch, &queue, event);
    if (status != clblast::StatusCode::kSuccess) {
      throw Failure(NETCL_E_DEVICE, "CLBlast's gemm failed; its status is the native code",
                    static_cast<int64_t>(status));
    }
  }
};

class Clblast : public KernelSet<> {
 public:
  using KernelSet::KernelSet;
  std::string_view id() const override { return "clblast"; }
  std::string_view version() const override { return "0.1.0"; }

  std::vector<netcl::plugin::Variant> variants(const KernelCall&) const override {
    return {{"gemm", "f32, and no empty matrix"}};
  }

  void plan(const KernelCall& call, Recipe& recipe) const override {
    if (call.op() != "matmul") throw Decline("CLBlast is asked for matmul alone");
    call.require_all(NETCL_F32, "f32");
    // The facts of matmul, see kernels/README.md.
    const auto fact = [&](const char* name) {
      return static_cast<size_t>(call.attrs().integer(name));
    };
    const Product product{fact("M"),
                          fact("N"),
                          fact("K"),
                          fact("batch"),
                          fact("a_batch"),
                          fact("b_batch"),
                          fact("transpose_a") != 0,
                          fact("transpose_b") != 0};
    if (product.m * product.n * product.k * product.batch == 0)
      throw Decline("CLBlast refuses matrices without elements");
    recipe.native([product](const NativeCall& work) { product.enqueue(work); });
    const std::string activation(call.attrs().text("activation"));
    const bool bias = fact("has_bias") != 0;
    if (!bias && activation == "none") return;
    const uint64_t elements = product.batch * product.m * product.n;
    recipe.launch("matmul_clblast_epilogue")
        .source("epilogue.cl")
        .define("HAS_BIAS", bias ? "1" : "0")
        .define("ACTIVATION", "ACTIVATION_" + activation)
        .input(bias ? 2 : 0)
        .output(0)
        .i32(static_cast<int64_t>(product.n))
        .i64(static_cast<int64_t>(elements))
        .over({netcl::plugin::round_up(elements, 64)}, {64});
  }
};

}  // namespace

NETCL_PLUGIN(Clblast)
