#include "tests/ops/device_fixture.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "core/tensor/half.h"

namespace netcl {
namespace testing {

namespace {

DeviceArgs g_args;  // set by main, before any test
std::unique_ptr<DeviceFixture> g_fixture;

FoundDevice find_device(const std::string& selector) {
  std::string known;
  for (FoundDevice& found : enumerate_devices()) {
    const DeviceInfo& info = found.info;
    const bool wanted = selector.empty()
                            ? info.type != "simulator"
                            : info.selector == selector || info.platform_selector() == selector;
    if (wanted) return std::move(found);
    known += " " + info.selector + " (" + info.platform_selector() + ")";
  }
  fail(ErrorCode::kDevice, "no device \"", selector, "\"; there are:", known);
}

// The real directory of every plugin below `directory`: runfiles are links to files, and a plugin
// whose library is a link to elsewhere is refused, as it should be.
std::vector<std::filesystem::path> plugin_paths(const std::filesystem::path& directory) {
  std::vector<std::filesystem::path> out;
  for (const auto& entry : std::filesystem::directory_iterator(directory)) {
    const auto manifest = entry.path() / "plugin.json";
    if (std::filesystem::exists(manifest)) out.push_back(canonical(manifest).parent_path());
  }
  std::sort(out.begin(), out.end());
  return out;
}

// A kernel question as the boundary words it; borrows from the question.
struct AbiQuestion {
  explicit AbiQuestion(const KernelQuestion& q) : facts(q.attrs) {
    if (q.op.facts) q.op.facts({q.op, q.in, q.attrs}, facts);
    attrs = to_abi(facts);
    for (const TensorDesc& d : q.in) in.push_back(to_abi(d));
    for (const TensorDesc& d : q.out) out.push_back(to_abi(d));
    key.size = sizeof(key);
    key.op = {q.op.name.data(), q.op.name.size()};
    key.family = {q.op.family.data(), q.op.family.size()};
    key.n_in = static_cast<uint32_t>(in.size());
    key.n_out = static_cast<uint32_t>(out.size());
    key.n_attrs = static_cast<uint32_t>(attrs.size());
    key.numerics = NETCL_NUM_STRICT_FP32;
    key.in = in.data();
    key.out = out.data();
    key.attrs = attrs.data();
  }
  AbiQuestion(const AbiQuestion&) = delete;

  Attrs facts;
  std::vector<netcl_attr> attrs;
  std::vector<netcl_desc> in, out;
  netcl_opkey key{};
};

netcl_rc keep_id(void* ctx, const void* item) {
  const netcl_str id = static_cast<const netcl_variant*>(item)->id;
  static_cast<std::vector<std::string>*>(ctx)->emplace_back(id.ptr, id.len);
  return NETCL_OK;
}

template <typename T>
T plain(double x) {
  return static_cast<T>(x);
}

template <typename T, typename Convert>
void put(const HostTensor& tensor, std::vector<uint8_t>* out, Convert convert) {
  out->resize(tensor.data.size() * sizeof(T));
  for (size_t i = 0; i < tensor.data.size(); ++i) {
    const T value = convert(tensor.data[i]);
    std::memcpy(out->data() + i * sizeof(T), &value, sizeof(T));
  }
}

template <typename T, typename Convert>
void get(const std::vector<uint8_t>& bytes, std::vector<double>* out, Convert convert) {
  for (size_t at = 0; at + sizeof(T) <= bytes.size(); at += sizeof(T)) {
    T value;
    std::memcpy(&value, bytes.data() + at, sizeof(T));
    out->push_back(convert(value));
  }
}

}  // namespace

DeviceFixture::DeviceFixture(const DeviceArgs& args) : args_(args) {
  device_ = std::make_unique<Device>(find_device(args.device), "", Logger());
  PluginOptions options;
  options.paths = plugin_paths(args.plugins);
  plugins_ =
      std::make_unique<PluginHost>(options, std::vector<DeviceInfo>{device_->info()}, Logger());
  if (plugins_->manifests("kernels").empty()) {
    std::string rows;
    for (const PluginRow& row : plugins_->rows())
      rows += "; " + row.path + ": " + row.code + " " + row.detail;
    fail(ErrorCode::kPlugin, "no kernel set in ", args.plugins.string(), rows);
  }
  kernels_ = std::make_unique<KernelChoice>(*plugins_, std::map<std::string, KernelPin>());
  queue_ = Queue::create(*device_);
  eager_ = std::make_unique<Eager>(*kernels_, queue_);
}

std::vector<KernelPin> DeviceFixture::variants(const KernelQuestion& question) {
  const AbiQuestion abi(question);
  netcl_device handle{&device_->info(), device_.get()};
  std::vector<KernelPin> out;
  for (const Manifest* manifest : plugins_->manifests("kernels")) {
    LoadedPlugin& plugin = plugins_->load(manifest->id);
    const auto& table = plugin.table<netcl_kernels_api>(NETCL_KERNELS_INTERFACE);
    std::vector<std::string> ids;
    std::string reason;
    plugin.call(
        "enumerating the variants of " + question.op.name,
        [&](netcl_call* call) {
          return table.enumerate(plugin.self(), call, &handle, &abi.key, &keep_id, &ids);
        },
        &reason);
    for (const std::string& id : ids) {
      KernelChoice pinned(*plugins_, {{question.op.name, {manifest->id, id}}});
      const auto verdicts = pinned.why(*device_, question);
      if (!verdicts.empty() && verdicts[0].verdict == "chosen") out.push_back({manifest->id, id});
    }
  }
  return out;
}

std::shared_ptr<const Recipe> DeviceFixture::recipe(const KernelQuestion& question,
                                                    const KernelPin& pin) {
  return KernelChoice(*plugins_, {{question.op.name, pin}}).recipe(*device_, question);
}

DeviceFixture& shared_device() {
  if (g_fixture == nullptr) g_fixture = std::make_unique<DeviceFixture>(g_args);
  return *g_fixture;
}

FoundDevice wanted_device() { return find_device(g_args.device); }

void close_shared_device() { g_fixture.reset(); }

void set_device_args(int* argc, char** argv) {
  int kept = 1;
  for (int i = 1; i < *argc; ++i) {
    const std::string arg = argv[i];
    if (arg.rfind("--device=", 0) == 0) {
      g_args.device = arg.substr(9);
    } else if (arg.rfind("--plugins=", 0) == 0) {
      g_args.plugins = arg.substr(10);
    } else if (arg == "--smallest") {
      g_args.smallest = true;
    } else {
      argv[kept++] = argv[i];
    }
  }
  *argc = kept;
}

std::vector<uint8_t> to_bytes(const HostTensor& tensor) {
  std::vector<uint8_t> out;
  switch (tensor.desc.dtype) {
    case DType::kF32:
      put<float>(tensor, &out, plain<float>);
      break;
    case DType::kF16:
      put<uint16_t>(tensor, &out, [](double x) { return f16_from_float(static_cast<float>(x)); });
      break;
    case DType::kBF16:
      put<uint16_t>(tensor, &out, [](double x) { return bf16_from_float(static_cast<float>(x)); });
      break;
    case DType::kI32:
      put<int32_t>(tensor, &out, plain<int32_t>);
      break;
    case DType::kI64:
      put<int64_t>(tensor, &out, plain<int64_t>);
      break;
    case DType::kU8:
    case DType::kBool:
      put<uint8_t>(tensor, &out, plain<uint8_t>);
      break;
  }
  return out;
}

HostTensor from_bytes(const TensorDesc& desc, const std::vector<uint8_t>& bytes) {
  HostTensor out{desc, {}};
  switch (desc.dtype) {
    case DType::kF32:
      get<float>(bytes, &out.data, [](float x) { return static_cast<double>(x); });
      break;
    case DType::kF16:
      get<uint16_t>(bytes, &out.data,
                    [](uint16_t x) { return static_cast<double>(f16_to_float(x)); });
      break;
    case DType::kBF16:
      get<uint16_t>(bytes, &out.data,
                    [](uint16_t x) { return static_cast<double>(bf16_to_float(x)); });
      break;
    case DType::kI32:
      get<int32_t>(bytes, &out.data, [](int32_t x) { return static_cast<double>(x); });
      break;
    case DType::kI64:
      get<int64_t>(bytes, &out.data, [](int64_t x) { return static_cast<double>(x); });
      break;
    case DType::kU8:
    case DType::kBool:
      get<uint8_t>(bytes, &out.data, [](uint8_t x) { return static_cast<double>(x); });
      break;
  }
  return out;
}

GuardedBuffer::GuardedBuffer(const Queue& queue, const Device& device, std::vector<uint8_t> content,
                             uint8_t poison)
    : queue_(queue.cl()), size_(content.size()) {
  // A sub-buffer begins at the device's alignment.
  origin_ = std::max<size_t>(512, static_cast<size_t>(device.info().base_align_bytes));
  image_.assign(2 * origin_ + size_, poison);
  std::copy(content.begin(), content.end(), image_.begin() + static_cast<ptrdiff_t>(origin_));
  with_cl_errors("a guarded buffer", [&] {
    whole_ = cl::Buffer(device.context(), CL_MEM_READ_WRITE, image_.size());
    queue_.enqueueWriteBuffer(whole_, CL_TRUE, 0, image_.size(), image_.data());
    // OpenCL has no empty buffers: of an empty tensor even the first bytes are guard.
    const cl_buffer_region region{origin_, std::max<size_t>(size_, 4)};
    part_ = whole_.createSubBuffer(CL_MEM_READ_WRITE, CL_BUFFER_CREATE_TYPE_REGION, &region);
  });
}

std::vector<uint8_t> GuardedBuffer::read_all() {
  std::vector<uint8_t> out(image_.size());
  with_cl_errors("reading a guarded buffer",
                 [&] { queue_.enqueueReadBuffer(whole_, CL_TRUE, 0, out.size(), out.data()); });
  return out;
}

std::vector<uint8_t> GuardedBuffer::read() {
  const std::vector<uint8_t> all = read_all();
  const auto begin = all.begin() + static_cast<ptrdiff_t>(origin_);
  return {begin, begin + static_cast<ptrdiff_t>(size_)};
}

bool GuardedBuffer::intact() {
  const std::vector<uint8_t> all = read_all();
  const auto head = static_cast<ptrdiff_t>(origin_), tail = static_cast<ptrdiff_t>(origin_ + size_);
  return std::equal(all.begin(), all.begin() + head, image_.begin()) &&
         std::equal(all.begin() + tail, all.end(), image_.begin() + tail);
}

bool GuardedBuffer::unchanged() { return read_all() == image_; }

}  // namespace testing
}  // namespace netcl
