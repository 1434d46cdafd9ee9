// Opening a plugin's library, and calls into it.
#include <boost/dll/shared_library.hpp>
#include <cstring>
#include <system_error>

#include "core/base/crash_note.h"
#include "core/base/error.h"
#include "core/runtime/plugin_host.h"

namespace netcl {

namespace {

ErrorCode error_code_of(netcl_rc rc) {
  switch (rc) {
    case NETCL_E_ARG:
      return ErrorCode::kUsage;
    case NETCL_E_NOMEM:
    case NETCL_E_DEVICE:
    case NETCL_E_BUILD:
      return ErrorCode::kDevice;
    case NETCL_E_TIMEOUT:
    case NETCL_E_PEER:
    case NETCL_E_CANCELLED:
      return ErrorCode::kTraining;
    default:
      return ErrorCode::kPlugin;
  }
}

}  // namespace

netcl_plugin_open_fn load_entry(const Manifest& manifest) {
  try {
    // Kept for the life of the process, see plugin_host.h.
    auto* library = new boost::dll::shared_library(
        manifest.library, boost::dll::load_mode::rtld_now | boost::dll::load_mode::rtld_local);
    NETCL_CHECK(library->has(NETCL_OPEN_SYMBOL), ErrorCode::kPlugin,
                "NPL-12: ", manifest.library.string(), " does not export ", NETCL_OPEN_SYMBOL,
                "; write NETCL_PLUGIN(YourPlugin) once in it");
    return &library->get<netcl_rc(const netcl_host*, netcl_call*, netcl_plugin_api*)>(
        NETCL_OPEN_SYMBOL);
  } catch (const std::system_error& e) {
    fail(ErrorCode::kPlugin, "NPL-10: ", manifest.library.string(),
         " cannot be loaded: ", e.what());
  }
}

LoadedPlugin::LoadedPlugin(const Manifest& manifest, Logger log, const netcl_host& host)
    : manifest_(manifest), log_(std::move(log)) {
  const std::string doing = "being opened";
  const CrashNote note(manifest_.id, doing);
  const netcl_plugin_open_fn open = load_entry(manifest_);
  api_.size = sizeof(api_);
  netcl_call call{manifest_.id, manifest_.directory.string(), log_, "", 0, nullptr};
  const netcl_rc rc = open(&host, &call, &api_);
  NETCL_CHECK(rc == NETCL_OK, ErrorCode::kPlugin, "NPL-12: opening plugin ", manifest_.id,
              " failed with status ", rc, ": ", call.error);
  NETCL_CHECK(api_.query != nullptr && api_.id.ptr != nullptr && api_.version.ptr != nullptr,
              ErrorCode::kPlugin, "NPL-12: plugin ", manifest_.id,
              " opened without an id, a version or a query function");
  const std::string id(api_.id.ptr, api_.id.len), version(api_.version.ptr, api_.version.len);
  NETCL_CHECK(id == manifest_.id && version == manifest_.version, ErrorCode::kPlugin,
              "NPL-13: the library says ", id, " ", version, ", the manifest ", manifest_.id, " ",
              manifest_.version);
}

const void* LoadedPlugin::table(const char* name, size_t size_bytes) const {
  const void* table = api_.query(api_.self, {name, std::string(name).size()});
  NETCL_CHECK(table != nullptr, ErrorCode::kPlugin, "NPL-13: plugin ", id(), " has no interface ",
              name, " although its manifest names the kind");
  size_t size = 0;
  std::memcpy(&size, table, sizeof(size));
  NETCL_CHECK(size >= size_bytes, ErrorCode::kPlugin, "NPL-13: plugin ", id(), ": table ", name,
              " has ", size, " bytes; at least ", size_bytes, " are needed");
  return table;
}

netcl_rc LoadedPlugin::call(const std::string& what,
                            const std::function<netcl_rc(netcl_call*)>& body,
                            std::string* reason) const {
  netcl_call call{manifest_.id, manifest_.directory.string(), log_, "", 0, nullptr};
  const CrashNote note(manifest_.id, what);
  const netcl_rc rc = body(&call);
  if (rc == NETCL_OK) return rc;
  if (rc == NETCL_DECLINE) {
    if (reason != nullptr) *reason = call.error;
    return rc;
  }
  if (call.host_error != nullptr) std::rethrow_exception(call.host_error);
  const std::string native =
      call.native_code != 0 ? str_cat(" (native code ", call.native_code, ")") : "";
  fail(error_code_of(rc), what, ": plugin ", id(), ": ",
       call.error.empty() ? str_cat("status ", rc) : call.error, native);
}

netcl_rc LoadedPlugin::raw_call(const std::function<netcl_rc(netcl_call*)>& body,
                                std::string* text) const {
  netcl_call call{manifest_.id, manifest_.directory.string(), log_, "", 0, nullptr};
  const std::string doing = "in one of its functions";
  const CrashNote note(manifest_.id, doing);
  const netcl_rc rc = body(&call);
  *text = call.error;
  return rc;
}

void LoadedPlugin::must(const std::string& what,
                        const std::function<netcl_rc(netcl_call*)>& body) const {
  std::string reason;
  NETCL_CHECK(call(what, body, &reason) == NETCL_OK, ErrorCode::kPlugin, what, ": plugin ", id(),
              " declines: ", reason);
}

void LoadedPlugin::close() {
  NETCL_CHECK(NETCL_HAS(&api_, close), ErrorCode::kPlugin, "plugin ", id(),
              " has no function close");
  api_.close(api_.self);
}

}  // namespace netcl
