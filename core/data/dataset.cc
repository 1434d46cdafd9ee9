#include "core/data/dataset.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cmath>
#include <cstring>
#include <utility>

#include "core/base/error.h"

namespace netcl {
namespace {

constexpr uint64_t kMagic = 0x327461446c63746eull;  // "ntclDat2"
constexpr size_t kAlign = 4096;                     // features and labels start on a page
constexpr uint64_t kMaxBytes = uint64_t{1} << 46;  // far above any memory; keeps sums from wrapping

size_t align_up(size_t bytes) { return (bytes + kAlign - 1) / kAlign * kAlign; }

// Errors: kData for a shape that is empty or does not fit into memory.
void check_shape(const Shape& shape, int64_t count, const char* what) {
  NETCL_CHECK(shape.rank() <= NETCL_MAX_RANK, ErrorCode::kData, what, " of shape ", shape.str(),
              " has more than ", NETCL_MAX_RANK, " dimensions");
  uint64_t elements = 1;
  for (const int64_t dim : shape.dims()) {
    NETCL_CHECK(dim > 0, ErrorCode::kData, what, " of shape ", shape.str(),
                " is empty; expected every dimension to be at least 1");
    NETCL_CHECK(static_cast<uint64_t>(dim) < kMaxBytes / (8 * elements), ErrorCode::kData, what,
                " of shape ", shape.str(), " is too large");
    elements *= static_cast<uint64_t>(dim);
  }
  NETCL_CHECK(static_cast<uint64_t>(count) < kMaxBytes / (elements * 8), ErrorCode::kData, count,
              " samples of shape ", shape.str(), " are too many for memory");
}

void check_spec(const DatasetSpec& spec) {
  NETCL_CHECK(spec.num_samples > 0, ErrorCode::kData,
              "the data set has no samples; expected at least one");
  NETCL_CHECK(spec.dtype == DType::kU8 || spec.dtype == DType::kF32 || spec.dtype == DType::kI32,
              ErrorCode::kInternal, "data set: features are ", dtype_name(spec.dtype),
              "; expected u8, f32 or i32");
  NETCL_CHECK(spec.features != nullptr && (spec.labels != nullptr) != (spec.targets != nullptr),
              ErrorCode::kInternal, "data set: features and labels (or targets) must be given");
  check_shape(spec.sample_shape, spec.num_samples, "a sample");
  check_shape(spec.label_shape, spec.num_samples, "a label");
}

// The number of classes. Errors: kData for a label that is none.
int64_t check_labels(const DatasetSpec& spec) {
  const auto each = static_cast<size_t>(spec.label_shape.num_elements());
  const size_t n = static_cast<size_t>(spec.num_samples) * each;
  int64_t classes = spec.num_classes;
  for (size_t i = 0; i < n; ++i) {
    const int32_t label = spec.labels[i];
    if (label == kIgnoredLabel) continue;
    NETCL_CHECK(label >= 0, ErrorCode::kData, "sample ", i / each, " has label ", label,
                "; expected a class number of at least 0");
    if (spec.num_classes == 0) classes = std::max<int64_t>(classes, label + int64_t{1});
    NETCL_CHECK(label < classes, ErrorCode::kData, "sample ", i / each, " has label ", label,
                "; expected less than the ", classes, " classes");
  }
  return classes;
}

void check_targets(const DatasetSpec& spec) {
  const auto each = static_cast<size_t>(spec.label_shape.num_elements());
  for (size_t i = 0; i < static_cast<size_t>(spec.num_samples) * each; ++i) {
    NETCL_CHECK(std::isfinite(spec.targets[i]), ErrorCode::kData, "sample ", i / each,
                " has the target ", spec.targets[i], " (value ", i % each,
                "); expected a finite number");
  }
}

void copy_dims(const Shape& shape, std::array<int64_t, NETCL_MAX_RANK>& dims, uint32_t& rank) {
  rank = static_cast<uint32_t>(shape.rank());
  std::copy(shape.dims().begin(), shape.dims().end(), dims.begin());
}

UniqueFd make_block(size_t size_bytes) {
  UniqueFd fd(::memfd_create("netcl-data", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  NETCL_CHECK(fd.valid(), ErrorCode::kData,
              "the data set's memory cannot be created: ", std::strerror(errno));
  // Allocated now: a full memory is an error here and not a bus error in the copy.
  const int failed = ::posix_fallocate(fd.get(), 0, static_cast<off_t>(size_bytes));
  NETCL_CHECK(failed == 0, ErrorCode::kData, "no memory for the data set (", size_bytes >> 20,
              " MiB): ", std::strerror(failed));
  return fd;
}

}  // namespace

// The start of the block; plain numbers, since another process of the same program reads it.
struct Dataset::Header {
  uint64_t magic;
  uint64_t total_bytes;
  uint32_t dtype, rank;
  std::array<int64_t, NETCL_MAX_RANK> dims;
  uint32_t label_dtype, label_rank;
  std::array<int64_t, NETCL_MAX_RANK> label_dims;
  int64_t num_samples;
  int64_t num_classes;
  int64_t text_tokens;  // 0: no text
  int64_t stride, draws;
  float scale;
  float offset;
  uint64_t features_at, feature_bytes;
  uint64_t labels_at, label_bytes;
  uint64_t names_at;  // class names, each as its length (u32) and its bytes
  uint64_t names_bytes;
};

Dataset Dataset::create(const DatasetSpec& spec) {
  check_spec(spec);
  if (spec.targets != nullptr) check_targets(spec);
  Header header{};
  header.dtype = static_cast<uint32_t>(spec.dtype);
  copy_dims(spec.sample_shape, header.dims, header.rank);
  header.label_dtype = static_cast<uint32_t>(spec.targets != nullptr ? DType::kF32 : DType::kI32);
  copy_dims(spec.label_shape, header.label_dims, header.label_rank);
  header.num_samples = spec.num_samples;
  header.num_classes = spec.targets != nullptr ? 0 : check_labels(spec);
  header.stride = 1;
  header.scale = spec.scale;
  header.offset = spec.offset;
  const auto n = static_cast<size_t>(spec.num_samples);
  const void* labels = spec.targets != nullptr ? static_cast<const void*>(spec.targets)
                                               : static_cast<const void*>(spec.labels);
  return build(header, spec.features,
               n * static_cast<size_t>(spec.sample_shape.num_elements()) * size_of(spec.dtype),
               labels, n * static_cast<size_t>(spec.label_shape.num_elements()) * 4,
               spec.class_names);
}

Dataset Dataset::create_text(const TextSpec& spec) {
  NETCL_CHECK(spec.context >= 1 && spec.stride >= 1 && spec.draws >= 0, ErrorCode::kInternal,
              "text: context ", spec.context, ", stride ", spec.stride, ", draws ", spec.draws);
  // Drawn windows are whole; of the others the last may be filled up.
  const int64_t least = spec.draws > 0 ? spec.context + 1 : 2;
  NETCL_CHECK(spec.num_tokens >= least, ErrorCode::kData, "the text has ", spec.num_tokens,
              " tokens; expected at least ", least, " for windows of ", spec.context,
              " and the token after each");
  for (int64_t i = 0; i < spec.num_tokens; ++i) {
    NETCL_CHECK(spec.tokens[i] >= 0 && spec.tokens[i] < spec.num_classes, ErrorCode::kData,
                "token ", i, " of the text is ", spec.tokens[i], "; expected less than the ",
                spec.num_classes, " of the vocabulary");
  }
  Header header{};
  header.dtype = static_cast<uint32_t>(DType::kI32);
  copy_dims(Shape{spec.context}, header.dims, header.rank);
  header.label_dtype = static_cast<uint32_t>(DType::kI32);
  copy_dims(Shape{spec.context}, header.label_dims, header.label_rank);
  const int64_t last_start = spec.draws > 0 ? spec.num_tokens - 1 - spec.context  // whole windows
                                            : spec.num_tokens - 2;                // one label
  header.num_samples = last_start / spec.stride + 1;
  header.num_classes = spec.num_classes;
  header.text_tokens = spec.num_tokens;
  header.stride = spec.stride;
  header.draws = spec.draws;
  header.scale = 1;
  return build(header, spec.tokens, static_cast<size_t>(spec.num_tokens) * sizeof(int32_t), nullptr,
               0, spec.class_names);
}

Dataset Dataset::build(Header& header, const void* features, size_t feature_bytes,
                       const void* labels, size_t label_bytes,
                       const std::vector<std::string>& class_names) {
  std::string names;
  for (const std::string& name : class_names) {
    const auto length = static_cast<uint32_t>(name.size());
    names.append(reinterpret_cast<const char*>(&length), sizeof(length));
    names += name;
  }
  NETCL_CHECK(class_names.empty() || class_names.size() == static_cast<size_t>(header.num_classes),
              ErrorCode::kInternal, "data set: ", class_names.size(), " class names for ",
              header.num_classes, " classes");
  header.magic = kMagic;
  header.features_at = kAlign;
  header.feature_bytes = feature_bytes;
  header.labels_at = align_up(header.features_at + feature_bytes);
  header.label_bytes = label_bytes;
  header.names_at = align_up(header.labels_at + label_bytes);
  header.names_bytes = names.size();
  header.total_bytes = header.names_at + names.size();

  Dataset out;
  out.fd_ = make_block(header.total_bytes);
  void* block =
      ::mmap(nullptr, header.total_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, out.fd_.get(), 0);
  NETCL_CHECK(block != MAP_FAILED, ErrorCode::kData,
              "the data set cannot be mapped: ", std::strerror(errno));
  char* bytes = static_cast<char*>(block);
  std::memcpy(bytes, &header, sizeof(header));
  std::memcpy(bytes + header.features_at, features, feature_bytes);
  if (label_bytes > 0) std::memcpy(bytes + header.labels_at, labels, label_bytes);
  if (!names.empty()) std::memcpy(bytes + header.names_at, names.data(), names.size());
  ::munmap(block, header.total_bytes);
  const int sealed =
      ::fcntl(out.fd_.get(), F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE | F_SEAL_SEAL);
  NETCL_CHECK(sealed == 0, ErrorCode::kData,
              "the data set's memory cannot be sealed: ", std::strerror(errno));
  out.map(header.total_bytes);
  return out;
}

Dataset Dataset::attach(int fd) {
  Dataset out;
  out.fd_.reset(::fcntl(fd, F_DUPFD_CLOEXEC, 3));
  NETCL_CHECK(out.fd_.valid(), ErrorCode::kData, "descriptor ", fd,
              " holds no data set: ", std::strerror(errno));
  struct stat info {};
  NETCL_CHECK(::fstat(fd, &info) == 0 && info.st_size >= static_cast<off_t>(sizeof(Header)),
              ErrorCode::kData, "descriptor ", fd, " holds no data set: it is too small");
  out.map(static_cast<size_t>(info.st_size));
  return out;
}

void Dataset::map(size_t size_bytes) {
  // Private: Linux before 6.7 refuses a shared mapping of write-sealed memory, even to read. Pages
  // that nobody writes are the same physical ones either way.
  void* block = ::mmap(nullptr, size_bytes, PROT_READ, MAP_PRIVATE, fd_.get(), 0);
  NETCL_CHECK(block != MAP_FAILED, ErrorCode::kData,
              "the data set cannot be mapped: ", std::strerror(errno));
  block_ = block;
  size_bytes_ = size_bytes;
  Header header;
  std::memcpy(&header, block, sizeof(header));
  const bool sound = header.magic == kMagic && header.total_bytes == size_bytes &&
                     header.rank <= NETCL_MAX_RANK && header.label_rank <= NETCL_MAX_RANK &&
                     header.num_samples > 0 && header.features_at <= header.labels_at &&
                     header.labels_at <= header.names_at &&
                     header.names_at + header.names_bytes == size_bytes &&
                     header.features_at + header.feature_bytes <= header.labels_at &&
                     header.labels_at + header.label_bytes <= header.names_at;
  NETCL_CHECK(sound, ErrorCode::kData,
              "the shared memory holds no data set of this version of netcl");
  read_header(header);
  const char* bytes = static_cast<const char*>(block);
  features_ = bytes + header.features_at;
  labels_ = bytes + header.labels_at;
  read_names(bytes + header.names_at, header.names_bytes);
}

void Dataset::read_header(const Header& header) {
  dtype_ = dtype_from_abi(header.dtype);
  sample_shape_ =
      Shape(std::vector<int64_t>(header.dims.begin(), header.dims.begin() + header.rank));
  sample_elements_ = sample_shape_.num_elements();
  label_dtype_ = dtype_from_abi(header.label_dtype);
  label_shape_ = Shape(std::vector<int64_t>(header.label_dims.begin(),
                                            header.label_dims.begin() + header.label_rank));
  label_elements_ = label_shape_.num_elements();
  num_samples_ = header.num_samples;
  num_classes_ = header.num_classes;
  text_tokens_ = header.text_tokens;
  stride_ = header.stride;
  draws_ = header.draws;
  scale_ = header.scale;
  offset_ = header.offset;
  const auto n = static_cast<uint64_t>(num_samples_);
  const uint64_t features = text_tokens_ > 0
                                ? static_cast<uint64_t>(text_tokens_) * 4
                                : n * static_cast<uint64_t>(sample_elements_) * size_of(dtype_);
  const uint64_t labels = text_tokens_ > 0 ? 0 : n * label_bytes();
  NETCL_CHECK(header.feature_bytes == features && header.label_bytes == labels, ErrorCode::kData,
              "the shared data set's sizes contradict each other");
}

void Dataset::read_names(const char* at, size_t size_bytes) {
  for (size_t done = 0; done + sizeof(uint32_t) <= size_bytes;) {
    uint32_t length = 0;
    std::memcpy(&length, at + done, sizeof(length));
    done += sizeof(length);
    NETCL_CHECK(length <= size_bytes - done, ErrorCode::kData,
                "the shared data set's class names are damaged");
    class_names_.emplace_back(at + done, length);
    done += length;
  }
}

void Dataset::unmap() noexcept {
  if (block_ != nullptr) ::munmap(block_, size_bytes_);
  block_ = nullptr;
}

Dataset::Dataset(Dataset&& other) noexcept { *this = std::move(other); }

Dataset& Dataset::operator=(Dataset&& other) noexcept {
  if (this == &other) return *this;
  unmap();
  fd_ = std::move(other.fd_);
  block_ = std::exchange(other.block_, nullptr);
  size_bytes_ = std::exchange(other.size_bytes_, 0);
  dtype_ = other.dtype_;
  sample_shape_ = std::move(other.sample_shape_);
  sample_elements_ = other.sample_elements_;
  num_samples_ = std::exchange(other.num_samples_, 0);
  num_classes_ = other.num_classes_;
  class_names_ = std::move(other.class_names_);
  scale_ = other.scale_;
  offset_ = other.offset_;
  label_dtype_ = other.label_dtype_;
  label_shape_ = std::move(other.label_shape_);
  label_elements_ = other.label_elements_;
  text_tokens_ = other.text_tokens_;
  stride_ = other.stride_;
  draws_ = other.draws_;
  features_ = std::exchange(other.features_, nullptr);
  labels_ = std::exchange(other.labels_, nullptr);
  return *this;
}

Dataset::~Dataset() { unmap(); }

const int32_t* Dataset::labels() const {
  const bool none = label_dtype_ != DType::kI32 || is_text();
  return none ? nullptr : static_cast<const int32_t*>(labels_);
}

const float* Dataset::targets() const {
  return label_dtype_ == DType::kF32 ? static_cast<const float*>(labels_) : nullptr;
}

void Dataset::check_index(int64_t index) const {
  NETCL_CHECK(index >= 0 && index < num_samples_, ErrorCode::kInternal, "sample ", index, " of ",
              num_samples_);
}

void Dataset::read_sample(int64_t index, float* x) const {
  check_index(index);
  const auto count = static_cast<size_t>(sample_elements_);
  const size_t start = static_cast<size_t>(index) * count;
  if (dtype_ == DType::kU8) {
    const uint8_t* raw = static_cast<const uint8_t*>(features_) + start;
    for (size_t i = 0; i < count; ++i) x[i] = static_cast<float>(raw[i]) * scale_ + offset_;
  } else if (dtype_ == DType::kF32) {
    const float* raw = static_cast<const float*>(features_) + start;
    for (size_t i = 0; i < count; ++i) x[i] = raw[i] * scale_ + offset_;
  } else {
    std::vector<int32_t> raw(count);
    read_input(index, raw.data());
    std::transform(raw.begin(), raw.end(), x, [](int32_t v) { return static_cast<float>(v); });
  }
}

void Dataset::read_input(int64_t index, void* x) const {
  if (dtype_ != DType::kI32) return read_sample(index, static_cast<float*>(x));
  check_index(index);
  auto* out = static_cast<int32_t*>(x);
  const int64_t start = index * (is_text() ? stride_ : sample_elements_);
  const int64_t there =
      is_text() ? std::min(sample_elements_, text_tokens_ - start) : sample_elements_;
  const int32_t* raw = static_cast<const int32_t*>(features_) + start;
  std::copy(raw, raw + there, out);
  std::fill(out + there, out + sample_elements_, 0);  // after the text's end
}

void Dataset::read_label(int64_t index, void* label) const {
  check_index(index);
  if (!is_text()) {
    const size_t bytes = label_bytes();
    std::memcpy(label, static_cast<const char*>(labels_) + static_cast<size_t>(index) * bytes,
                bytes);
    return;
  }
  auto* out = static_cast<int32_t*>(label);
  const int64_t start = index * stride_ + 1;
  const int64_t there = std::min(label_elements_, text_tokens_ - start);
  const int32_t* raw = static_cast<const int32_t*>(features_) + start;
  std::copy(raw, raw + there, out);
  std::fill(out + there, out + label_elements_, kIgnoredLabel);
}

Dataset Dataset::subset(const std::vector<int64_t>& indices) const {
  NETCL_CHECK(!is_text(), ErrorCode::kInternal, "a text has no subsets of windows");
  const size_t sample_bytes = static_cast<size_t>(sample_elements_) * size_of(dtype_);
  std::vector<char> features(indices.size() * sample_bytes);
  std::vector<int32_t> labels(indices.size() * static_cast<size_t>(label_elements_));  // or floats
  for (size_t i = 0; i < indices.size(); ++i) {
    check_index(indices[i]);
    std::memcpy(
        features.data() + i * sample_bytes,
        static_cast<const char*>(features_) + static_cast<size_t>(indices[i]) * sample_bytes,
        sample_bytes);
    read_label(indices[i], labels.data() + i * static_cast<size_t>(label_elements_));
  }
  DatasetSpec spec;
  spec.dtype = dtype_;
  spec.sample_shape = sample_shape_;
  spec.num_samples = static_cast<int64_t>(indices.size());
  spec.features = features.data();
  spec.num_classes = num_classes_;
  spec.class_names = class_names_;
  spec.scale = scale_;
  spec.offset = offset_;
  spec.label_shape = label_shape_;
  std::vector<float> targets;
  if (label_dtype_ == DType::kF32) {
    targets.resize(labels.size());
    std::memcpy(targets.data(), labels.data(), labels.size() * sizeof(float));
    spec.targets = targets.data();
  } else {
    spec.labels = labels.data();
  }
  return create(spec);
}

}  // namespace netcl
