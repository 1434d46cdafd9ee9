// Finds plugins, passes them through the gates, loads them when first needed, and keeps a row of
// report for every candidate. Nothing here throws for a bad plugin: it is a row. What throws is a
// request for a plugin that was named and cannot serve. Threads: set-up, then read-only; load() may
// be called from any thread.
#ifndef NETCL_CORE_RUNTIME_PLUGIN_HOST_H_
#define NETCL_CORE_RUNTIME_PLUGIN_HOST_H_

#include <cstddef>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "core/abi/netcl_plugin.h"
#include "core/base/log.h"
#include "core/runtime/host_call.h"
#include "core/runtime/manifest.h"

namespace netcl {

struct PluginOptions {
  std::vector<std::filesystem::path> paths;  // --plugin-path, first
  std::vector<std::string> disable, only;    // globs on ids
  // The services lent to plugins; null: host_table(). Checks lend others. Outlives the plugins.
  const netcl_host* host = nullptr;
};

// Loads the plugin's library and finds its entry; it stays loaded. Errors: kPlugin, NPL-10, NPL-12.
netcl_plugin_open_fn load_entry(const Manifest& manifest);

// Where plugins are looked for, in order: `options.paths`, then NETCL_PLUGIN_PATH or else the
// user's data directory and <prefix>/plugins beside the executable. In safe mode only the last.
std::vector<std::filesystem::path> plugin_directories(const PluginOptions& options);

struct PluginRow {
  std::string id, kind, version;
  std::string state;  // serving, idle, shadowed, disabled, rejected
  std::string code, detail, path;
};

// A plugin that has been opened. Lives until the process ends: libraries are never unloaded.
class LoadedPlugin {
 public:
  // Errors: kPlugin whose message begins with the code.
  LoadedPlugin(Manifest manifest, Logger log)
      : LoadedPlugin(manifest, std::move(log), host_table(manifest.abi_minor)) {}
  LoadedPlugin(const Manifest& manifest, Logger log, const netcl_host& host);

  const Manifest& manifest() const { return manifest_; }
  const std::string& id() const { return manifest_.id; }
  netcl_plugin* self() const { return api_.self; }
  // The interface table of that name. Errors: kPlugin if the plugin has none, or one that is
  // shorter than its first version was. Members that came later are asked for with NETCL_HAS.
  template <typename Table>
  const Table& table(const char* name) const {
    return *static_cast<const Table*>(table(name, first_size<Table>()));
  }

  // Runs one call into the plugin. Returns NETCL_OK or NETCL_DECLINE (*reason says why); every
  // other status becomes an Error: peers and time-outs kTraining, memory and devices kDevice,
  // arguments kUsage, the rest kPlugin.
  netcl_rc call(const std::string& what, const std::function<netcl_rc(netcl_call*)>& body,
                std::string* reason = nullptr) const;
  // Runs one call and returns its status and the text left in it, without judging either.
  netcl_rc raw_call(const std::function<netcl_rc(netcl_call*)>& body, std::string* text) const;
  // As call(), where DECLINE is an error, too.
  void must(const std::string& what, const std::function<netcl_rc(netcl_call*)>& body) const;

  // Closes the instance, after which nothing of it may be called but close() again. Only checks do:
  // plugins live until the process ends. Errors: kPlugin if it has no function for it.
  void close();

 private:
  // Size of a table in boundary 0.1.
  template <typename Table>
  static constexpr size_t first_size() {
    if constexpr (std::is_same_v<Table, netcl_kernels_api>)
      return offsetof(netcl_kernels_api, tunables);
    return sizeof(Table);
  }
  const void* table(const char* name, size_t size_bytes) const;

  Manifest manifest_;
  Logger log_;
  netcl_plugin_api api_{};
};

class PluginHost {
 public:
  // `devices`: those that kernel sets are matched against.
  PluginHost(const PluginOptions& options, std::vector<DeviceInfo> devices, Logger log);

  const std::vector<PluginRow>& rows() const { return rows_; }
  // The candidates that do not serve and why, or where was searched in vain: for error messages.
  std::string rejections() const;
  // Manifests that passed every gate, of one kind, sorted by id.
  std::vector<const Manifest*> manifests(const std::string& kind) const;
  // Opens the plugin (once). Errors: kPlugin, with code and words; the row becomes `rejected`.
  LoadedPlugin& load(const std::string& id);
  // Opens every plugin that passed the gates, so that rows() tells which can be opened.
  void load_all();

 private:
  void scan(const std::filesystem::path& directory, int depth);
  void consider(const std::filesystem::path& directory);
  void judge(const Manifest& manifest, PluginRow& row);

  PluginOptions options_;
  std::vector<DeviceInfo> devices_;
  Logger log_;
  std::vector<PluginRow> rows_;
  std::vector<std::filesystem::path> seen_;
  std::map<std::string, Manifest> accepted_;
  std::mutex mutex_;
  std::map<std::string, LoadedPlugin*> loaded_;
};

}  // namespace netcl

#endif  // NETCL_CORE_RUNTIME_PLUGIN_HOST_H_
