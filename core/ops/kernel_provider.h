// What ops need from above: somebody who knows, for one op on one device, how it is computed.
// core/runtime implements it with the kernel-set plugins.
#ifndef NETCL_CORE_OPS_KERNEL_PROVIDER_H_
#define NETCL_CORE_OPS_KERNEL_PROVIDER_H_

#include <memory>
#include <string>
#include <vector>

#include "core/cl/recipe.h"
#include "core/ops/op.h"

namespace netcl {

// One question: an op with concrete shapes and complete attributes.
struct KernelQuestion {
  const OpRow& op;
  const std::vector<TensorDesc>& in;
  const std::vector<TensorDesc>& out;
  const Attrs& attrs;

  // Text that is equal for equal questions.
  std::string key() const;
};

class KernelProvider {
 public:
  virtual ~KernelProvider() = default;
  // The chosen recipe, frozen for the life of the provider. Errors: kPlugin, with every candidate's
  // reason, if no kernel set serves the question.
  virtual std::shared_ptr<const Recipe> recipe(Device& device, const KernelQuestion& question) = 0;
  // The same for a fused op (core/ops/fused.h), which need not be served: nullptr if no kernel set
  // does, or if its recorded ops are asked for. Frozen, too. Errors: kPlugin for a kernel set that
  // was named and does not serve.
  virtual std::shared_ptr<const Recipe> fused_recipe(Device&, const KernelQuestion&) {
    return nullptr;
  }
};

}  // namespace netcl

#endif  // NETCL_CORE_OPS_KERNEL_PROVIDER_H_
