// Tensor: a dense row-major array on a device. Copies share the memory. Operations on it are
// enqueued and return at once; only what needs a value waits (wait_to_read, copy_to_host,
// to_floats, item), and only for this value: not for work that was enqueued after it.
#ifndef NETCL_CORE_TENSOR_TENSOR_H_
#define NETCL_CORE_TENSOR_TENSOR_H_

#include <memory>
#include <string>
#include <vector>

#include "core/tensor/queue.h"
#include "core/tensor/shape.h"

namespace netcl {

class Tensor {
 public:
  Tensor() = default;
  // Uninitialised memory on the queue's device. Errors: kDevice.
  Tensor(std::shared_ptr<Queue> queue, TensorDesc desc, const std::string& what = "a tensor");
  // The same with a description that is shared with others.
  Tensor(std::shared_ptr<Queue> queue, std::shared_ptr<const TensorDesc> desc,
         const std::string& what);
  // The same memory under another description of equal size.
  Tensor(const Tensor& base, TensorDesc desc);

  // Copies `bytes` (desc.size_bytes() of them) to the device.
  static Tensor from_host(std::shared_ptr<Queue> queue, TensorDesc desc, const void* bytes);
  static Tensor from_floats(std::shared_ptr<Queue> queue, Shape shape,
                            const std::vector<float>& values);

  const TensorDesc& desc() const { return *desc_; }
  const Shape& shape() const { return desc_->shape; }
  const cl::Buffer& buffer() const { return storage_->buffer(); }
  const std::shared_ptr<Queue>& queue() const { return queue_; }

  // Overwrites the content; returns when `bytes` may be reused. Errors: kDevice.
  void copy_from_host(const void* bytes);
  // Waits until the last operation that writes this tensor is done. Errors of this and of all that
  // read: kDevice for asynchronous work of the queue that failed.
  void wait_to_read() const;
  // Waits, then copies out. Errors: kUsage for another data type.
  std::vector<float> to_floats() const;
  void copy_to_host(void* bytes) const;
  // The value of a one-element f32 tensor. Errors: kUsage.
  float item() const;

  // Remembers the event after which the content is valid (set by whoever enqueues the writer).
  // Views and copies share it. Without one, reading waits for the whole queue.
  void set_ready(cl::Event event) { storage_->set_ready(std::move(event)); }

 private:
  std::shared_ptr<Queue> queue_;
  std::shared_ptr<const TensorDesc> desc_ =
      std::make_shared<TensorDesc>();  // shared: copies are cheap
  std::shared_ptr<Storage> storage_;
};

}  // namespace netcl

#endif  // NETCL_CORE_TENSOR_TENSOR_H_
