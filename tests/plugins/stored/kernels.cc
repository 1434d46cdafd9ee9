// A kernel set with one kernel, relu of f32, against the first version of the boundary: what is
// stored of every version, beside a layer and a transport. build.sh compiles it.
#include <string>

#include "netcl_plugin.hpp"

namespace {

using netcl::plugin::Plugin;
using netcl::plugin::to_abi;

const char* const kSource =
    "__kernel void relu(__global const float* x, __global float* y, const int n) {\n"
    "  const int i = (int)get_global_id(0);\n"
    "  if (i < n) y[i] = x[i] < 0 ? 0 : x[i];\n"
    "}\n";

class Stored : public Plugin {
 public:
  using Plugin::Plugin;
  std::string_view id() const override { return "stored_kernels"; }
  std::string_view version() const override { return "1.0.0"; }
  const void* query(std::string_view name) override {
    static const netcl_kernels_api api = {sizeof(netcl_kernels_api), &plan, &enumerate};
    return name == NETCL_KERNELS_INTERFACE ? &api : nullptr;
  }

 private:
  static netcl_rc plan(netcl_plugin* p, netcl_call* call, netcl_device*, const netcl_opkey* key,
                       netcl_str variant, netcl_sink sink, void* ctx) {
    return netcl::plugin::guard(netcl::plugin::self(p).host(), call, [&] {
      if (variant.len > 0 && netcl::plugin::view(variant) != "plain")
        throw netcl::plugin::Decline("there is the variant plain alone");
      if (key->in[0].dtype != NETCL_F32) throw netcl::plugin::Decline("f32 alone");
      int64_t n = 1;
      for (uint32_t d = 0; d < key->in[0].rank; ++d) n *= key->in[0].dim[d];
      const netcl_source source{to_abi("relu.cl"), to_abi(kSource)};
      netcl_arg args[3] = {};
      args[0].kind = NETCL_ARG_INPUT;
      args[1].kind = NETCL_ARG_OUTPUT;
      args[2].kind = NETCL_ARG_I32;
      args[2].u.i = n;
      netcl_launch launch{};
      launch.entry = to_abi("relu");
      launch.options = to_abi("-cl-std=CL1.2");
      launch.sources = &source;
      launch.n_sources = 1;
      launch.args = args;
      launch.n_args = 3;
      launch.dims = 1;
      launch.global[0] = static_cast<uint64_t>((n + 63) / 64 * 64);
      launch.local[0] = 64;
      launch.global[1] = launch.global[2] = launch.local[1] = launch.local[2] = 1;
      netcl_recipe recipe{};
      recipe.size = sizeof(recipe);
      recipe.variant = to_abi("plain");
      recipe.launches = &launch;
      recipe.n_launches = 1;
      netcl::plugin::check(sink(ctx, &recipe), "sink");
    });
  }
  static netcl_rc enumerate(netcl_plugin* p, netcl_call* call, netcl_device*, const netcl_opkey*,
                            netcl_sink sink, void* ctx) {
    return netcl::plugin::guard(netcl::plugin::self(p).host(), call, [&] {
      const netcl_variant plain{to_abi("plain"), to_abi("f32")};
      netcl::plugin::check(sink(ctx, &plain), "sink");
    });
  }
};

}  // namespace

NETCL_PLUGIN(Stored)
