#include "core/data/dataset.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <utility>

#include "core/base/error.h"

namespace netcl {
namespace {

constexpr uint64_t kMagic = 0x317461446c63746eull;  // "ntclDat1"
constexpr size_t kAlign = 4096;                     // features and labels start on a page
constexpr uint64_t kMaxBytes = uint64_t{1} << 46;  // far above any memory; keeps sums from wrapping

// The start of the block; plain numbers, since another process of the same program reads it.
struct Header {
  uint64_t magic;
  uint64_t total_bytes;
  uint32_t dtype;
  uint32_t rank;
  std::array<int64_t, NETCL_MAX_RANK> dims;
  int64_t num_samples;
  int64_t num_classes;
  float scale;
  float offset;
  uint64_t features_at;
  uint64_t labels_at;
  uint64_t names_at;  // class names, each ended by a zero byte
  uint64_t names_bytes;
};

size_t align_up(size_t bytes) { return (bytes + kAlign - 1) / kAlign * kAlign; }

void check_spec(const DatasetSpec& spec) {
  NETCL_CHECK(spec.num_samples > 0, ErrorCode::kData,
              "the data set has no samples; expected at least one");
  NETCL_CHECK(spec.dtype == DType::kU8 || spec.dtype == DType::kF32, ErrorCode::kInternal,
              "data set: features are ", dtype_name(spec.dtype), "; expected u8 or f32");
  NETCL_CHECK(spec.features != nullptr && spec.labels != nullptr, ErrorCode::kInternal,
              "data set: features and labels must be given");
  NETCL_CHECK(spec.sample_shape.rank() <= NETCL_MAX_RANK, ErrorCode::kData, "a sample of shape ",
              spec.sample_shape.str(), " has more than ", NETCL_MAX_RANK, " dimensions");
  uint64_t elements = 1;
  for (const int64_t dim : spec.sample_shape.dims()) {
    NETCL_CHECK(dim > 0, ErrorCode::kData, "a sample of shape ", spec.sample_shape.str(),
                " is empty; expected every dimension to be at least 1");
    NETCL_CHECK(static_cast<uint64_t>(dim) < kMaxBytes / (8 * elements), ErrorCode::kData,
                "a sample of shape ", spec.sample_shape.str(), " is too large");
    elements *= static_cast<uint64_t>(dim);
  }
  NETCL_CHECK(static_cast<uint64_t>(spec.num_samples) < kMaxBytes / (elements * 8),
              ErrorCode::kData, spec.num_samples, " samples of shape ", spec.sample_shape.str(),
              " are too many for memory");
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

Dataset Dataset::create(const DatasetSpec& spec) {
  check_spec(spec);
  const size_t n = static_cast<size_t>(spec.num_samples);
  int64_t classes = spec.num_classes;
  for (size_t i = 0; i < n; ++i) {
    NETCL_CHECK(spec.labels[i] >= 0, ErrorCode::kData, "sample ", i, " has label ", spec.labels[i],
                "; expected a class number of at least 0");
    if (spec.num_classes == 0) classes = std::max<int64_t>(classes, spec.labels[i] + int64_t{1});
    NETCL_CHECK(spec.labels[i] < classes, ErrorCode::kData, "sample ", i, " has label ",
                spec.labels[i], "; expected less than the ", classes, " classes");
  }
  std::string names;
  for (const std::string& name : spec.class_names) names += name + '\0';
  NETCL_CHECK(spec.class_names.empty() || spec.class_names.size() == static_cast<size_t>(classes),
              ErrorCode::kInternal, "data set: ", spec.class_names.size(), " class names for ",
              classes, " classes");

  Header header{};
  header.magic = kMagic;
  header.dtype = static_cast<uint32_t>(spec.dtype);
  header.rank = static_cast<uint32_t>(spec.sample_shape.rank());
  std::copy(spec.sample_shape.dims().begin(), spec.sample_shape.dims().end(), header.dims.begin());
  header.num_samples = spec.num_samples;
  header.num_classes = classes;
  header.scale = spec.scale;
  header.offset = spec.offset;
  const size_t feature_bytes =
      n * static_cast<size_t>(spec.sample_shape.num_elements()) * size_of(spec.dtype);
  header.features_at = kAlign;
  header.labels_at = align_up(header.features_at + feature_bytes);
  header.names_at = align_up(header.labels_at + n * sizeof(int32_t));
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
  std::memcpy(bytes + header.features_at, spec.features, feature_bytes);
  std::memcpy(bytes + header.labels_at, spec.labels, n * sizeof(int32_t));
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
  const bool sound =
      header.magic == kMagic && header.total_bytes == size_bytes && header.rank <= NETCL_MAX_RANK &&
      header.num_samples > 0 && header.features_at <= header.labels_at &&
      header.labels_at <= header.names_at && header.names_at + header.names_bytes == size_bytes &&
      (header.dtype == NETCL_U8 || header.dtype == NETCL_F32);
  NETCL_CHECK(sound, ErrorCode::kData,
              "the shared memory holds no data set of this version of netcl");
  dtype_ = static_cast<DType>(header.dtype);
  sample_shape_ =
      Shape(std::vector<int64_t>(header.dims.begin(), header.dims.begin() + header.rank));
  sample_elements_ = sample_shape_.num_elements();
  num_samples_ = header.num_samples;
  num_classes_ = header.num_classes;
  scale_ = header.scale;
  offset_ = header.offset;
  const uint64_t feature_bytes = static_cast<uint64_t>(num_samples_) *
                                 static_cast<uint64_t>(sample_elements_) * size_of(dtype_);
  NETCL_CHECK(header.features_at + feature_bytes <= header.labels_at &&
                  header.labels_at + static_cast<uint64_t>(num_samples_) * 4 <= header.names_at,
              ErrorCode::kData, "the shared data set's sizes contradict each other");
  const char* bytes = static_cast<const char*>(block);
  features_ = bytes + header.features_at;
  labels_ = reinterpret_cast<const int32_t*>(bytes + header.labels_at);
  const char* name = bytes + header.names_at;
  const char* end = name + header.names_bytes;
  while (name < end) {
    const size_t length = ::strnlen(name, static_cast<size_t>(end - name));
    class_names_.emplace_back(name, length);
    name += length + 1;
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
  features_ = std::exchange(other.features_, nullptr);
  labels_ = std::exchange(other.labels_, nullptr);
  return *this;
}

Dataset::~Dataset() { unmap(); }

void Dataset::read_sample(int64_t index, float* x) const {
  NETCL_CHECK(index >= 0 && index < num_samples_, ErrorCode::kInternal, "sample ", index, " of ",
              num_samples_);
  const size_t count = static_cast<size_t>(sample_elements_);
  const size_t start = static_cast<size_t>(index) * count;
  if (dtype_ == DType::kU8) {
    const uint8_t* raw = static_cast<const uint8_t*>(features_) + start;
    for (size_t i = 0; i < count; ++i) x[i] = static_cast<float>(raw[i]) * scale_ + offset_;
  } else {
    const float* raw = static_cast<const float*>(features_) + start;
    for (size_t i = 0; i < count; ++i) x[i] = raw[i] * scale_ + offset_;
  }
}

Dataset Dataset::subset(const std::vector<int64_t>& indices) const {
  const size_t sample_bytes = static_cast<size_t>(sample_elements_) * size_of(dtype_);
  std::vector<char> features(indices.size() * sample_bytes);
  std::vector<int32_t> labels(indices.size());
  for (size_t i = 0; i < indices.size(); ++i) {
    NETCL_CHECK(indices[i] >= 0 && indices[i] < num_samples_, ErrorCode::kInternal, "sample ",
                indices[i], " of ", num_samples_);
    const size_t from = static_cast<size_t>(indices[i]);
    std::memcpy(features.data() + i * sample_bytes,
                static_cast<const char*>(features_) + from * sample_bytes, sample_bytes);
    labels[i] = labels_[from];
  }
  DatasetSpec spec{dtype_,          sample_shape_, static_cast<int64_t>(indices.size()),
                   features.data(), labels.data(), num_classes_,
                   class_names_,    scale_,        offset_};
  return create(spec);
}

}  // namespace netcl
