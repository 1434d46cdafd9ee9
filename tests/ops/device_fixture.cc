#include "tests/ops/device_fixture.h"

#include <algorithm>
#include <utility>

#include "core/runtime/kernel_set.h"

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

}  // namespace

std::vector<std::filesystem::path> plugin_paths(const std::filesystem::path& directory) {
  std::vector<std::filesystem::path> out;
  for (const auto& entry : std::filesystem::directory_iterator(directory)) {
    const auto manifest = entry.path() / "plugin.json";
    if (std::filesystem::exists(manifest)) out.push_back(canonical(manifest).parent_path());
  }
  std::sort(out.begin(), out.end());
  return out;
}

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
  std::vector<KernelPin> out;
  for (const Manifest* manifest : plugins_->manifests("kernels")) {
    const KernelSet set(plugins_->load(manifest->id));
    for (const std::string& id : set.variants(*device_, question)) {
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
    } else if (arg == "--partial") {
      g_args.partial = true;
    } else if (arg == "--every") {
      g_args.every = true;
    } else {
      argv[kept++] = argv[i];
    }
  }
  *argc = kept;
}

}  // namespace testing
}  // namespace netcl
