// A kernel provider for tests of the eager way: it knows the op `scale` alone, on any device.
// Threads: one at a time.
#ifndef NETCL_TESTS_AUTOGRAD_SCALE_PROVIDER_H_
#define NETCL_TESTS_AUTOGRAD_SCALE_PROVIDER_H_

#include <memory>

#include "core/base/error.h"
#include "core/ops/kernel_provider.h"

namespace netcl {

class ScaleProvider : public KernelProvider {
 public:
  std::shared_ptr<const Recipe> recipe(Device&, const KernelQuestion& question) override {
    NETCL_CHECK(question.op.name == "scale", ErrorCode::kPlugin, "no kernel for ",
                question.op.name);
    ++num_questions;
    RecipeLaunch launch;
    launch.entry = "scale_test";
    launch.source =
        "__kernel void scale_test(__global const float* x, __global float* y, float p0, float p1) "
        "{\n"
        "  const size_t i = get_global_id(0);\n"
        "  y[i] = x[i] * p0 + p1;\n"
        "}\n";
    launch.args.resize(4);
    launch.args[0].kind = NETCL_ARG_INPUT;
    launch.args[1].kind = NETCL_ARG_OUTPUT;
    launch.args[2].kind = launch.args[3].kind = NETCL_ARG_F32;
    launch.args[2].f = question.attrs.number("factor");
    launch.args[3].f = question.attrs.number("offset");
    launch.global = {static_cast<uint64_t>(question.out[0].shape.num_elements()), 1, 1};
    auto out = std::make_shared<Recipe>();
    out->plugin = out->variant = "test";
    out->launches.push_back(std::move(launch));
    return out;
  }

  int num_questions = 0;
};

}  // namespace netcl

#endif  // NETCL_TESTS_AUTOGRAD_SCALE_PROVIDER_H_
