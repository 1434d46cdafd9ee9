// A labelled data set in one memfd-backed block: parsed once, mapped read-only by every worker.
//
// The block is sealed after creation: nobody can write to it, shrink it or grow it. Dataset owns
// its mapping and its descriptor; moving keeps pointers valid. Threads: reading from many.
#ifndef NETCL_CORE_DATA_DATASET_H_
#define NETCL_CORE_DATA_DATASET_H_

#include <cstdint>
#include <string>
#include <vector>

#include "core/base/unique_fd.h"
#include "core/tensor/shape.h"

namespace netcl {

// What Dataset::create takes; the pointers are read during the call only.
struct DatasetSpec {
  DType dtype = DType::kF32;  // kU8 or kF32
  Shape sample_shape;         // shape of one sample, such as [64] or [28,28]
  int64_t num_samples = 0;
  const void* features = nullptr;        // num_samples * elements, row-major
  const int32_t* labels = nullptr;       // num_samples, each >= 0
  int64_t num_classes = 0;               // 0: largest label + 1
  std::vector<std::string> class_names;  // empty, or one a class
  float scale = 1.0f;                    // a feature enters the model as raw * scale + offset
  float offset = 0.0f;
};

class Dataset {
 public:
  // Copies the samples into a new block. Errors: kData for no samples, a negative label or no
  // memory for the block; kInternal for a spec that contradicts itself.
  static Dataset create(const DatasetSpec& spec);
  // Maps the block behind `fd` (which stays the caller's). Errors: kData if it holds no data set.
  static Dataset attach(int fd);

  Dataset(Dataset&& other) noexcept;
  Dataset& operator=(Dataset&& other) noexcept;
  ~Dataset();

  // The block's descriptor, owned by this object; a child process that inherits it can attach.
  int fd() const { return fd_.get(); }

  DType dtype() const { return dtype_; }
  const Shape& sample_shape() const { return sample_shape_; }
  int64_t sample_elements() const { return sample_elements_; }
  int64_t num_samples() const { return num_samples_; }
  int64_t num_classes() const { return num_classes_; }
  const std::vector<std::string>& class_names() const { return class_names_; }
  float scale() const { return scale_; }
  float offset() const { return offset_; }
  size_t size_bytes() const { return size_bytes_; }

  const void* features() const { return features_; }
  const int32_t* labels() const { return labels_; }

  // Writes sample `index` as floats (raw * scale + offset) to x[0 .. sample_elements()).
  void read_sample(int64_t index, float* x) const;

  // A new data set of the samples at `indices`, in that order.
  Dataset subset(const std::vector<int64_t>& indices) const;

 private:
  Dataset() = default;
  void map(size_t size_bytes);  // maps fd_ read-only and reads the header
  void unmap() noexcept;

  UniqueFd fd_;
  void* block_ = nullptr;
  size_t size_bytes_ = 0;
  DType dtype_ = DType::kF32;
  Shape sample_shape_;
  int64_t sample_elements_ = 0;
  int64_t num_samples_ = 0;
  int64_t num_classes_ = 0;
  std::vector<std::string> class_names_;
  float scale_ = 1.0f;
  float offset_ = 0.0f;
  const void* features_ = nullptr;
  const int32_t* labels_ = nullptr;
};

}  // namespace netcl

#endif  // NETCL_CORE_DATA_DATASET_H_
