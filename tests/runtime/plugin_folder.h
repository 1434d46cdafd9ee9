// Makes plugin directories for tests: a manifest, and a library compiled from a few lines of C.
// Everything lies under a folder of its own, removed at the end. Threads: one.
#ifndef NETCL_TESTS_RUNTIME_PLUGIN_FOLDER_H_
#define NETCL_TESTS_RUNTIME_PLUGIN_FOLDER_H_

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>

namespace netcl::test {

namespace fs = std::filesystem;
using nlohmann::ordered_json;

// Lines of a plugin without functions of its own.
constexpr const char* kGoodOpen = R"(
#include "netcl_plugin.h"
static const void *query(netcl_plugin *p, netcl_str n) { (void)p; (void)n; return 0; }
NETCL_EXPORT netcl_rc netcl_plugin_open_v1(const netcl_host *h, netcl_call *c, netcl_plugin_api *out) {
  (void)h; (void)c;
  out->abi_major = NETCL_ABI_MAJOR; out->abi_minor = NETCL_ABI_MINOR;
  out->id.ptr = "probe"; out->id.len = 5;
  out->version.ptr = "1.0.0"; out->version.len = 5;
  out->query = &query;
  return NETCL_OK;
}
)";

inline void write(const fs::path& path, const std::string& text) {
  fs::create_directories(path.parent_path());
  std::ofstream out(path, std::ios::binary);
  out << text;
  ASSERT_TRUE(out.good()) << path;
}

// The manifest of a layer plugin "probe" that passes every gate.
inline ordered_json good_manifest() {
  return ordered_json::parse(R"({"manifest": "netcl-plugin/1", "id": "probe", "version": "1.0.0",
    "kinds": ["layer"], "library": {"linux-x86_64": "libprobe.so"}, "abi": {"major": 0, "minor": 4},
    "provides": [{"layer": "example.probe"}]})");
}

// Compiles C to a shared object. The working directory is the root of the runfiles.
inline void compile_c(const std::string& code, const fs::path& library) {
  const fs::path source = library.string() + ".c";
  write(source, code);
  const std::string command = "gcc -std=c11 -fPIC -shared -fvisibility=hidden -Icore/abi -o '" +
                              library.string() + "' '" + source.string() + "'";
  ASSERT_EQ(std::system(command.c_str()), 0) << command;
  fs::remove(source);
}

// A folder under the test's temporary directory.
class PluginFolder : public ::testing::Test {
 protected:
  PluginFolder() {
    std::string pattern =
        (fs::path(::testing::TempDir()) / "netcl_plugins_XXXXXX").lexically_normal().string();
    if (::mkdtemp(pattern.data()) == nullptr) throw std::runtime_error("mkdtemp failed");
    root_ = fs::canonical(pattern);
  }
  ~PluginFolder() override {
    std::error_code ignored;
    fs::remove_all(root_, ignored);
  }
  // The library of kGoodOpen, compiled once a process; its bytes.
  static const std::string& good_library() {
    static const std::string bytes = [] {
      const fs::path path =
          fs::path(::testing::TempDir()) / ("netcl_good_" + std::to_string(::getpid()) + ".so");
      compile_c(kGoodOpen, path);
      std::ifstream in(path, std::ios::binary);
      std::string out((std::istreambuf_iterator<char>(in)), std::istreambuf_iterator<char>());
      fs::remove(path);
      return out;
    }();
    return bytes;
  }
  // Writes root/<name>/plugin.json and libprobe.so.
  fs::path add(const std::string& name, const ordered_json& manifest) {
    write(root_ / name / "plugin.json", manifest.dump(2));
    write(root_ / name / "libprobe.so", good_library());
    return root_ / name;
  }
  fs::path add_code(const std::string& name, const ordered_json& manifest,
                    const std::string& code) {
    write(root_ / name / "plugin.json", manifest.dump(2));
    compile_c(code, root_ / name / "libprobe.so");
    return root_ / name;
  }
  fs::path root_;
};

}  // namespace netcl::test

#endif  // NETCL_TESTS_RUNTIME_PLUGIN_FOLDER_H_
