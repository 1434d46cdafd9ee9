// A labelled data set in one memfd-backed block: parsed once, mapped read-only by every worker.
//
// A sample is features (bytes or floats, which enter the model as floats, or tokens, which enter it
// as i32) and a label: a class, a sequence of classes, or float targets. A text is held once, as
// its tokens; its samples are windows that are cut when they are read.
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

// A label that says: this position counts for nothing.
constexpr int32_t kIgnoredLabel = -100;

// What Dataset::create takes; the pointers are read during the call only.
struct DatasetSpec {
  DType dtype = DType::kF32;  // kU8, kF32, or kI32 for tokens
  Shape sample_shape;         // shape of one sample, such as [64] or [28,28]
  int64_t num_samples = 0;
  const void* features = nullptr;        // num_samples * elements, row-major
  const int32_t* labels = nullptr;       // num_samples * label_shape; >= 0 or kIgnoredLabel
  int64_t num_classes = 0;               // 0: largest label + 1
  std::vector<std::string> class_names;  // empty, or one a class
  float scale = 1.0f;                    // a feature enters the model as raw * scale + offset
  float offset = 0.0f;
  Shape label_shape;               // of one label: [] a class, [T] a sequence, ... targets
  const float* targets = nullptr;  // num_samples * label_shape, instead of labels
};

// What Dataset::create_text takes. Window i reads `context` tokens from i * stride on; its labels
// are the tokens that follow each of them.
struct TextSpec {
  const int32_t* tokens = nullptr;
  int64_t num_tokens = 0;
  int64_t num_classes = 0;               // the vocabulary's size; every token is below it
  std::vector<std::string> class_names;  // empty, or one a token
  int64_t context = 1;
  int64_t stride = 1;
  // 0: an epoch is every window once, the last one filled up with ignored labels. Otherwise an
  // epoch is this many whole windows, drawn anew each time.
  int64_t draws = 0;
};

class Dataset {
 public:
  // Copies the samples into a new block. Errors: kData for no samples, a negative label or no
  // memory for the block; kInternal for a spec that contradicts itself.
  static Dataset create(const DatasetSpec& spec);
  // Errors: kData for a text that is too short or a token outside of the vocabulary.
  static Dataset create_text(const TextSpec& spec);
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
  // Samples of one epoch: all of them, or as many as are drawn.
  int64_t epoch_samples() const { return draws_ > 0 ? draws_ : num_samples_; }
  int64_t draws() const { return draws_; }
  // What the model is given: f32[B, sample_shape] or, for tokens, i32; and its labels.
  DType input_dtype() const { return dtype_ == DType::kI32 ? DType::kI32 : DType::kF32; }
  DType label_dtype() const { return label_dtype_; }
  const Shape& label_shape() const { return label_shape_; }
  size_t label_bytes() const { return static_cast<size_t>(label_elements_) * 4; }  // of a sample
  size_t input_bytes() const { return static_cast<size_t>(sample_elements_) * 4; }
  bool is_text() const { return text_tokens_ > 0; }
  int64_t text_tokens() const { return text_tokens_; }
  int64_t num_classes() const { return num_classes_; }
  const std::vector<std::string>& class_names() const { return class_names_; }
  float scale() const { return scale_; }
  float offset() const { return offset_; }
  size_t size_bytes() const { return size_bytes_; }

  const void* features() const { return features_; }  // of a text: its tokens, one by one
  // All labels, one after the other; null for float targets and for a text.
  const int32_t* labels() const;
  const float* targets() const;  // null unless label_dtype() is f32

  // Writes sample `index` as floats (raw * scale + offset; tokens as numbers) to
  // x[0 .. sample_elements()).
  void read_sample(int64_t index, float* x) const;
  // Writes a sample as the model takes it: input_bytes() and label_bytes().
  // Errors: kInternal for an index out of range.
  void read_input(int64_t index, void* x) const;
  void read_label(int64_t index, void* label) const;

  // A new data set of the samples at `indices`, in that order. Errors: kInternal for a text.
  Dataset subset(const std::vector<int64_t>& indices) const;

 private:
  struct Header;
  Dataset() = default;
  static Dataset build(Header& header, const void* features, size_t feature_bytes,
                       const void* labels, size_t label_bytes,
                       const std::vector<std::string>& class_names);
  void map(size_t size_bytes);  // maps fd_ read-only and reads the header
  void read_header(const Header& header);
  void read_names(const char* at, size_t size_bytes);
  void check_index(int64_t index) const;
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
  DType label_dtype_ = DType::kI32;
  Shape label_shape_;
  int64_t label_elements_ = 1;
  int64_t text_tokens_ = 0;  // 0: no text
  int64_t stride_ = 1, draws_ = 0;
  const void* features_ = nullptr;
  const void* labels_ = nullptr;
};

}  // namespace netcl

#endif  // NETCL_CORE_DATA_DATASET_H_
