// plugin.json: any text is read or refused with a code and words, and a manifest that was read can
// be held against devices.
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "core/runtime/manifest.h"
#include "tests/fuzz/target.h"

namespace {

// A folder of this process's own that goes with it.
struct Folder {
  Folder() {
    path = std::filesystem::temp_directory_path() / ("netcl-fuzz-" + std::to_string(::getpid()));
    must(std::filesystem::create_directory(path));
    std::ofstream(path / "variants.json") << "{}";
    std::ofstream(path / "libx.so") << "\x7f"
                                       "ELF, cut off";
  }
  ~Folder() {
    std::error_code ignored;
    std::filesystem::remove_all(path, ignored);
  }
  std::filesystem::path path;
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const Folder folder;
  std::ofstream(folder.path / "plugin.json", std::ios::binary)
      .write(reinterpret_cast<const char*>(data), static_cast<std::streamsize>(size));
  const netcl::ManifestResult result = netcl::read_manifest(folder.path);
  must(result.refusal.has_value());  // its library is none
  must(result.refusal->code.rfind("NPL-0", 0) == 0 && !result.refusal->detail.empty());
  if (!result.manifest) return 0;
  netcl::DeviceInfo device;
  device.selector = "gpu:0";
  device.vendor = "amd";
  device.type = "gpu";
  for (const netcl::Provision& provision : result.manifest->provides) {
    int specificity = 0;
    netcl::refuses_device(provision, device, &specificity);
  }
  return 0;
}
