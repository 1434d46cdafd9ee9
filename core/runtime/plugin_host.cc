#include "core/runtime/plugin_host.h"

#include <algorithm>

#include "core/base/environment.h"
#include "core/base/error.h"
#include "core/base/text.h"

namespace netcl {
namespace fs = std::filesystem;

namespace {

constexpr int kMaxDepth = 2;  // plugins may be grouped in folders

bool any_glob(const std::vector<std::string>& globs, const std::string& id) {
  return std::any_of(globs.begin(), globs.end(),
                     [&](const std::string& g) { return glob_match(g, id); });
}

// Why no device is served, per device; "" if one is.
std::string no_device_reason(const Manifest& manifest, const std::vector<DeviceInfo>& devices) {
  std::vector<std::string> reasons;
  for (const DeviceInfo& device : devices) {
    std::string reason = "it provides nothing";
    for (const Provision& provision : manifest.provides) {
      const auto why = refuses_device(provision, device);
      if (!why) return "";
      reason = *why;
    }
    reasons.push_back(device.selector + ": " + reason);
  }
  return devices.empty() ? "no device was found" : join(reasons, "; ");
}

}  // namespace

std::vector<fs::path> plugin_directories(const PluginOptions& options) {
  std::vector<fs::path> out;
  std::error_code error;
  const fs::path executable = fs::canonical("/proc/self/exe", error);
  const fs::path beside = error ? fs::path() : executable.parent_path().parent_path() / "plugins";
  if (environment::safe_mode()) return {beside};
  out = options.paths;
  if (const auto replaced = environment::plugin_path()) {
    out.insert(out.end(), replaced->begin(), replaced->end());
    return out;
  }
  const fs::path user = environment::user_data_dir();
  if (!user.empty()) out.push_back(user / "plugins");
  if (!beside.empty()) out.push_back(beside);
  return out;
}

PluginHost::PluginHost(const PluginOptions& options, std::vector<DeviceInfo> devices, Logger log)
    : options_(options), devices_(std::move(devices)), log_(std::move(log)) {
  for (const fs::path& path : options.paths) {
    std::error_code error;
    if (!fs::is_directory(path, error)) {
      rows_.push_back({path.filename().string(), "", "", "rejected", "NPL-03",
                       "--plugin-path " + path.string() + " is not a directory", path.string()});
    }
  }
  for (const fs::path& directory : plugin_directories(options)) scan(directory, 0);
}

void PluginHost::scan(const fs::path& directory, int depth) {
  std::error_code error;
  const fs::path real = fs::canonical(directory, error);
  if (error || !fs::is_directory(real, error)) return;
  if (std::find(seen_.begin(), seen_.end(), real) != seen_.end()) return;
  seen_.push_back(real);
  if (fs::exists(real / "plugin.json", error)) return consider(real);
  if (depth > kMaxDepth) return;
  std::vector<fs::path> entries;
  fs::directory_iterator it(real, error);
  if (error) {
    rows_.push_back({real.filename().string(), "", "", "rejected", "NPL-01",
                     real.string() + ": cannot be read: " + error.message(), real.string()});
    return;
  }
  for (const fs::directory_entry& entry : it) {
    if (entry.is_directory(error)) entries.push_back(entry.path());
  }
  std::sort(entries.begin(), entries.end());
  for (const fs::path& entry : entries) scan(entry, depth + 1);
}

void PluginHost::consider(const fs::path& directory) {
  const ManifestResult result = read_manifest(directory);
  PluginRow row;
  row.path = directory.string();
  row.id = result.manifest ? result.manifest->id : directory.filename().string();
  if (result.manifest) {
    row.kind = join(result.manifest->kinds, "+");
    row.version = result.manifest->version;
    for (const std::string& warning : result.manifest->warnings) log_.warning(warning);
  }
  if (result.refusal) {
    row.state = "rejected";
    row.code = result.refusal->code;
    row.detail = result.refusal->detail;
  } else {
    judge(*result.manifest, row);
  }
  rows_.push_back(std::move(row));
}

void PluginHost::judge(const Manifest& manifest, PluginRow& row) {
  const auto refuse = [&](const char* state, const char* code, const std::string& detail) {
    row.state = state;
    row.code = code;
    row.detail = detail;
  };
  const auto earlier = std::find_if(rows_.begin(), rows_.end(), [&](const PluginRow& r) {
    return r.id == manifest.id && (r.state == "serving" || r.state == "idle");
  });
  if (earlier != rows_.end()) {
    return refuse("shadowed", "NPL-14",
                  "the plugin in " + earlier->path + " has the same id and comes first");
  }
  if (any_glob(options_.disable, manifest.id))
    return refuse("disabled", "NPL-09", "by --disable-plugins");
  if (!options_.only.empty() && !any_glob(options_.only, manifest.id)) {
    return refuse("disabled", "NPL-09", "by --only-plugins");
  }
  if (manifest.has_kind("kernels") && manifest.kinds.size() == 1) {
    const std::string reason = no_device_reason(manifest, devices_);
    if (!reason.empty()) return refuse("idle", "NPL-08", "no device matches. " + reason);
  }
  row.state = "serving";
  accepted_.emplace(manifest.id, manifest);
}

std::string PluginHost::rejections() const {
  std::vector<std::string> lines;
  for (const PluginRow& row : rows_) {
    if (row.state == "rejected" || row.state == "disabled")
      lines.push_back(row.id + " is " + row.state + " (" + row.code + "): " + row.detail);
  }
  if (!rows_.empty()) return join(lines, "; ");
  std::vector<std::string> places;
  for (const fs::path& directory : plugin_directories(options_))
    places.push_back(directory.string());
  return "No plugin was found in " + join(places, ", ");
}

std::vector<const Manifest*> PluginHost::manifests(const std::string& kind) const {
  std::vector<const Manifest*> out;
  for (const auto& [id, manifest] : accepted_) {
    if (manifest.has_kind(kind)) out.push_back(&manifest);
  }
  return out;
}

LoadedPlugin& PluginHost::load(const std::string& id) {
  const std::lock_guard<std::mutex> lock(mutex_);
  const auto found = loaded_.find(id);
  if (found != loaded_.end()) return *found->second;
  const auto manifest = accepted_.find(id);
  if (manifest == accepted_.end()) {
    for (const PluginRow& row : rows_) {
      NETCL_CHECK(row.id != id, ErrorCode::kPlugin, "plugin ", id, " cannot serve: ", row.state,
                  " (", row.code, "): ", row.detail);
    }
    std::vector<std::string> ids;
    for (const auto& [known, ignored] : accepted_) ids.push_back(known);
    fail(ErrorCode::kPlugin, "there is no plugin \"", id, "\"", suggest(id, ids));
  }
  try {
    // Never deleted: the library stays loaded, and its objects with it, until the process ends.
    LoadedPlugin* plugin = new LoadedPlugin(
        manifest->second, log_,
        options_.host != nullptr ? *options_.host : host_table(manifest->second.abi_minor));
    loaded_[id] = plugin;
    return *plugin;
  } catch (const Error& e) {
    for (PluginRow& row : rows_) {
      if (row.id != id || row.state != "serving") continue;
      row.state = "rejected";
      row.code = e.message().substr(0, 6);
      row.detail = e.message().size() > 8 ? e.message().substr(8) : "";
    }
    throw;
  }
}

void PluginHost::load_all() {
  for (const auto& [id, manifest] : accepted_) {
    try {
      load(id);
    } catch (const Error&) {
      // the row tells
    }
  }
}

}  // namespace netcl
