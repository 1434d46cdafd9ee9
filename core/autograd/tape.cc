#include "core/autograd/tape.h"

#include "core/autograd/backward.h"

namespace netcl {

ValueId Tape::watch(const Tensor& tensor) {
  NETCL_CHECK(tensor.queue() == eager_.queue(), ErrorCode::kUsage, "tape: tensor ",
              tensor.desc().str(), " lives on another queue than the tape's");
  tensors_.push_back(tensor);
  return add_value(tensor.desc());
}

void Tape::recorded(const Node& node) {
  std::vector<Tensor> in;
  for (const ValueId v : node.in) in.push_back(tensors_[v]);
  std::vector<TensorDesc> out;
  for (const ValueId v : node.out) out.push_back(desc(v));
  for (Tensor& t : eager_.run(*node.op, in, out, node.attrs)) tensors_.push_back(std::move(t));
}

std::vector<std::optional<Tensor>> Tape::backward(ValueId output,
                                                  const std::vector<ValueId>& wanted,
                                                  std::optional<ValueId> seed) {
  std::vector<std::optional<Tensor>> out;
  for (const auto& g : gradients(*this, output, seed, wanted)) {
    out.push_back(g ? std::optional<Tensor>(tensors_[*g]) : std::nullopt);
  }
  return out;
}

}  // namespace netcl
