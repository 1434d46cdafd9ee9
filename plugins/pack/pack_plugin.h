// PackPlugin: a kernel set that is pure data. Serves "netcl.kernels/1" from variants.json and .cl
// files in the plugin's directory; id, version and the name of the former come from its
// plugin.json.
//
// Files are read at the first plan and kept for the plugin's life (recipes point into them).
// Threads: any; the lazy reads are guarded by one mutex, planning itself takes no lock.
#ifndef NETCL_PLUGINS_PACK_PACK_PLUGIN_H_
#define NETCL_PLUGINS_PACK_PACK_PLUGIN_H_

#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "core/abi/netcl_plugin.hpp"
#include "plugins/pack/planner.h"
#include "plugins/pack/settings.h"
#include "plugins/pack/variants.h"

namespace netcl {
namespace pack {

class PackPlugin : public plugin::Plugin {
 public:
  // Reads plugin.json. Errors: Failure(NETCL_E_ARG) naming the file.
  PackPlugin(const netcl_host* host, netcl_call* call);

  std::string_view id() const override { return id_; }
  std::string_view version() const override { return version_; }
  const void* query(std::string_view interface_name) override;

 private:
  static netcl_rc plan(netcl_plugin* self, netcl_call* call, netcl_device* device,
                       const netcl_opkey* key, netcl_str variant, netcl_sink sink, void* ctx);
  static netcl_rc enumerate(netcl_plugin* self, netcl_call* call, netcl_device* device,
                            const netcl_opkey* key, netcl_sink sink, void* ctx);

  static netcl_rc tunables(netcl_plugin* self, netcl_call* call, netcl_device* device,
                           const netcl_opkey* key, netcl_str variant, netcl_sink sink, void* ctx);

  // A variant that serves the key, with all its names.
  struct Candidate {
    const VariantSpec* variant;
    std::string name;  // with the settings that differ from the defaults
    Scope scope;
  };
  // Best first: those whose `prefer` holds, then the others, each in the file's order. `refusals`
  // gets the reasons of the rest. `only`: consider the variant of that id alone, with those
  // settings, unless empty.
  std::vector<Candidate> candidates(const plugin::Host& host, netcl_device* device,
                                    const netcl_opkey& key, std::string_view only,
                                    std::string* refusals);
  // One variant with its names, or why it does not serve.
  std::optional<Candidate> candidate(const VariantSpec& variant, const VariantName& wanted,
                                     const Scope& facts, std::string* refusals) const;
  const VariantFile& variants();
  const std::string& source(const std::string& name);

  std::string dir_, id_, version_;
  std::string variants_file_;  // the manifest's data.variants
  std::mutex mutex_;           // guards the two below; their contents never change once made
  std::unique_ptr<VariantFile> variants_;
  std::map<std::string, std::string> sources_;
};

}  // namespace pack
}  // namespace netcl

#endif  // NETCL_PLUGINS_PACK_PACK_PLUGIN_H_
