#include "core/tensor/tensor.h"

namespace netcl {

Tensor::Tensor(std::shared_ptr<Queue> queue, TensorDesc desc, const std::string& what)
    : Tensor(std::move(queue), std::make_shared<const TensorDesc>(std::move(desc)), what) {}

Tensor::Tensor(std::shared_ptr<Queue> queue, std::shared_ptr<const TensorDesc> desc,
               const std::string& what)
    : queue_(std::move(queue)), desc_(std::move(desc)) {
  storage_ = queue_->reuse(desc_->size_bytes());
  if (storage_ == nullptr)
    storage_ = queue_->allocate(desc_->size_bytes(), what + " " + desc_->str());
}

Tensor::Tensor(const Tensor& base, TensorDesc desc) : Tensor(base) {
  NETCL_CHECK(desc.size_bytes() == base.desc_->size_bytes(), ErrorCode::kUsage, "a tensor ",
              base.desc_->str(), " cannot be seen as ", desc.str(), ": the sizes differ");
  desc_ = std::make_shared<const TensorDesc>(std::move(desc));
}

Tensor Tensor::from_host(std::shared_ptr<Queue> queue, TensorDesc desc, const void* bytes) {
  Tensor out(std::move(queue), std::move(desc));
  out.copy_from_host(bytes);
  return out;
}

Tensor Tensor::from_floats(std::shared_ptr<Queue> queue, Shape shape,
                           const std::vector<float>& values) {
  const TensorDesc desc{DType::kF32, std::move(shape)};
  NETCL_CHECK(static_cast<int64_t>(values.size()) == desc.shape.num_elements(), ErrorCode::kUsage,
              values.size(), " values for a tensor ", desc.str());
  return from_host(std::move(queue), desc, values.data());
}

void Tensor::copy_from_host(const void* bytes) {
  const size_t size = desc_->size_bytes();
  if (size > 0) queue_->write(*storage_, size, bytes);
}

void Tensor::wait_to_read() const {
  if (storage_->ready()() != nullptr) {
    queue_->wait(storage_->ready());
  } else {
    queue_->finish();
  }
}

void Tensor::copy_to_host(void* bytes) const {
  const size_t size = desc_->size_bytes();
  if (size > 0) queue_->read(*storage_, size, bytes);
}

std::vector<float> Tensor::to_floats() const {
  NETCL_CHECK(desc_->dtype == DType::kF32, ErrorCode::kUsage, "to_floats of a tensor ",
              desc_->str());
  std::vector<float> out(static_cast<size_t>(desc_->shape.num_elements()));
  copy_to_host(out.data());
  return out;
}

float Tensor::item() const {
  NETCL_CHECK(desc_->dtype == DType::kF32 && desc_->shape.num_elements() == 1, ErrorCode::kUsage,
              "item() needs a tensor of one f32 element, this one is ", desc_->str());
  return to_floats().front();
}

}  // namespace netcl
