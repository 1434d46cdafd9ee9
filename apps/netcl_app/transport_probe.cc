#include "apps/netcl_app/transport_probe.h"

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <optional>
#include <utility>

#include "core/base/environment.h"
#include "core/base/error.h"
#include "core/base/file.h"
#include "core/base/text.h"
#include "core/cl/icd.h"
#include "core/distributed/process.h"

namespace netcl::app {
namespace fs = std::filesystem;

namespace {

constexpr int kTimeoutMs = 60000;
constexpr int kStandardOutput = 1;
constexpr const char* kVersion = "transport-probe/1";  // of what is measured

std::vector<std::string> arguments(const std::vector<WorkerPlace>& places,
                                   const TransportPair& names, const PluginOptions& options) {
  std::vector<std::string> devices;
  for (const WorkerPlace& place : places) devices.push_back(place.device.platform_selector());
  std::vector<std::string> out = {fs::canonical("/proc/self/exe").string(),
                                  "probe-transports",
                                  "--json",
                                  "--parent",
                                  std::to_string(::getpid()),
                                  "--devices",
                                  join(devices, ","),
                                  "--staged",
                                  names.staged,
                                  "--shared",
                                  names.shared};
  for (const fs::path& path : options.paths) {
    out.push_back("--plugin-path");
    out.push_back(path.string());
  }
  if (!options.disable.empty()) {
    out.push_back("--disable-plugins");
    out.push_back(join(options.disable, ","));
  }
  if (!options.only.empty()) {
    out.push_back("--only-plugins");
    out.push_back(join(options.only, ","));
  }
  return out;
}

TransportTimes failed(const TransportPair& names, const std::string& error) {
  TransportTimes out;
  out.staged_name = names.staged;
  out.shared_name = names.shared;
  out.error = error;
  return out;
}

// All that the child prints, and how it ended; nullopt if it takes too long.
std::optional<std::pair<std::string, ExitStatus>> output_of(ChildProcess& child) {
  LineReader reader(child.status_fd());
  std::string text;
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::milliseconds(kTimeoutMs);
  const auto left = [&] {
    return static_cast<int>(std::chrono::duration_cast<std::chrono::milliseconds>(
                                deadline - std::chrono::steady_clock::now())
                                .count());
  };
  while (!reader.at_end()) {
    if (left() <= 0) return std::nullopt;
    wait_any({}, {child.status_fd()}, left());
    for (const std::string& line : reader.read_lines()) text += line + "\n";
  }
  const auto status = child.wait(std::max(0, left()));
  if (!status) return std::nullopt;
  return std::make_pair(text, *status);
}

TransportTimes measure(const std::vector<WorkerPlace>& places, const TransportPair& names,
                       const PluginOptions& plugins) {
  SpawnOptions options;
  options.argv = arguments(places, names, plugins);
  options.environment = environment::with_changes(only_driver(places[0].device.icd));
  options.status_fd = kStandardOutput;
  ChildProcess child(options);
  const auto output = output_of(child);
  if (!output) {
    child.kill();
    remove_temporary_files(environment::cache_dir(), child.pid());
    return failed(names, str_cat("no answer within ", kTimeoutMs / 1000, " s"));
  }
  const Json answer = Json::parse(output->first, nullptr, /*allow_exceptions=*/false);
  if (!answer.is_object()) return failed(names, "its probe ended: " + output->second.describe());
  return transport_times_from_json(answer, names.staged, names.shared);
}

// Of every file of the plugin: code, kernels, manifest.
std::string content_of(const std::string& transport, const PluginHost& plugins) {
  for (const Manifest* manifest : plugins.manifests("transport")) {
    if (manifest->id != transport) continue;
    std::vector<fs::path> files;
    for (const fs::directory_entry& entry : fs::recursive_directory_iterator(manifest->directory)) {
      if (entry.is_regular_file()) files.push_back(entry.path());
    }
    std::sort(files.begin(), files.end());
    uint64_t hash = hash_bytes(transport);
    for (const fs::path& file : files) {
      hash = hash_bytes(file.lexically_relative(manifest->directory).string(), hash);
      hash = hash_bytes(read_file(file, ErrorCode::kPlugin), hash);
    }
    return transport + " " + hex(hash);
  }
  return transport;
}

std::string key_of(const std::vector<WorkerPlace>& places, const TransportPair& names,
                   const PluginHost& plugins) {
  std::vector<std::string> parts = {kVersion};
  for (const WorkerPlace& place : places) {
    const DeviceInfo& d = place.device;
    parts.push_back(join({d.platform_selector(), d.platform, d.driver, d.opencl, d.name}, "|"));
  }
  parts.push_back(content_of(names.staged, plugins));
  parts.push_back(content_of(names.shared, plugins));
  return join(parts, "\n");
}

std::optional<TransportTimes> kept(const fs::path& file, const std::string& key,
                                   const TransportPair& names) {
  std::error_code ignored;
  if (!fs::exists(file, ignored)) return std::nullopt;
  try {
    const Json json = Json::parse(read_file(file, ErrorCode::kInternal));
    if (json.at("key") != key) return std::nullopt;
    TransportTimes out = transport_times_from_json(json.at("times"), names.staged, names.shared);
    out.from_cache = true;
    return out;
  } catch (const std::exception&) {
    return std::nullopt;  // damaged: it is measured anew
  }
}

void keep(const fs::path& file, const std::string& key, const TransportTimes& times) {
  try {
    fs::create_directories(file.parent_path());
    const Json json = {{"key", key}, {"times", to_json(times)}};
    write_file_atomic(file, json.dump(2) + "\n", ErrorCode::kInternal);
  } catch (const std::exception&) {
    return;  // the next run measures again
  }
}

}  // namespace

TransportTimes probe_transports(const std::vector<WorkerPlace>& places, const TransportPair& names,
                                const PluginOptions& options, const PluginHost& plugins) {
  try {
    const std::string key = key_of(places, names, plugins);
    const fs::path directory = environment::cache_dir();
    const fs::path file = directory / ("transport-" + hex(hash_bytes(key)) + ".json");
    if (!directory.empty()) {
      if (const auto known = kept(file, key, names)) return *known;
    }
    TransportTimes times = measure(places, names, options);
    // What went wrong may go well the next time.
    if (!directory.empty() && times.error.empty()) keep(file, key, times);
    return times;
  } catch (const std::exception& e) {
    return failed(names, e.what());
  }
}

}  // namespace netcl::app
