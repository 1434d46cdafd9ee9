#include "core/runtime/transport.h"

#include "core/base/error.h"
#include "core/base/text.h"

namespace netcl {

std::string choose_transport(const std::string& name, const PluginHost& plugins) {
  std::string best;
  int best_priority = 0;
  std::vector<std::string> names;
  for (const Manifest* manifest : plugins.manifests("transport")) {
    for (const Provision& provision : manifest->provides) {
      if (provision.transport.empty()) continue;
      names.push_back(provision.transport);
      if (provision.transport == name) return manifest->id;
      if (name == "auto" && (best.empty() || provision.priority > best_priority)) {
        best = manifest->id;
        best_priority = provision.priority;
      }
    }
  }
  if (!best.empty()) return best;
  for (const PluginRow& row : plugins.rows()) {
    NETCL_CHECK(row.id != name, ErrorCode::kPlugin, "--transport ", name, ": the plugin is ",
                row.state, " (", row.code, "): ", row.detail);
  }
  NETCL_CHECK(name != "auto", ErrorCode::kPlugin,
              "no transport plugin serves, and more than one worker needs one. ",
              plugins.rejections());
  fail(ErrorCode::kPlugin, "--transport ", name, ": there is no such transport plugin",
       names.empty() ? "; none was found, see `netcl-app plugins list`" : suggest(name, names));
}

bool needs_one_context(const std::string& id, const PluginHost& plugins) {
  for (const Manifest* manifest : plugins.manifests("transport")) {
    if (manifest->id != id) continue;
    for (const Provision& provision : manifest->provides) {
      if (!provision.transport.empty()) return provision.one_context;
    }
  }
  return false;
}

std::string best_transport(bool one_context, const PluginHost& plugins) {
  std::string best;
  int best_priority = 0;
  for (const Manifest* manifest : plugins.manifests("transport")) {
    for (const Provision& provision : manifest->provides) {
      if (provision.transport.empty() || provision.one_context != one_context) continue;
      if (!best.empty() && provision.priority <= best_priority) continue;
      best = manifest->id;
      best_priority = provision.priority;
    }
  }
  return best;
}

TransportAccess transport_access(LoadedPlugin& plugin) {
  TransportAccess out;
  out.api = &plugin.table<netcl_transport_api>(NETCL_TRANSPORT_INTERFACE);
  out.self = plugin.self();
  out.name = plugin.id();
  out.call = [&plugin](const std::function<netcl_rc(netcl_call*)>& body) {
    CallResult result;
    result.rc = plugin.raw_call(body, &result.text);
    return result;
  };
  return out;
}

}  // namespace netcl
