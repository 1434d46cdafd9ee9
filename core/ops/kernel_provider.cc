#include "core/ops/kernel_provider.h"

namespace netcl {

std::string KernelQuestion::key() const {
  std::string text = op.name;
  for (const TensorDesc& desc : in) text += '|' + desc.str();
  text += ">";
  for (const TensorDesc& desc : this->out) text += desc.str();
  return text + '|' + attrs.str();
}

}  // namespace netcl
