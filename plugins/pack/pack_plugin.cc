#include "plugins/pack/pack_plugin.h"

#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <sstream>

namespace netcl {
namespace pack {
namespace {

std::string read_text(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  std::string text((std::istreambuf_iterator<char>(in)), std::istreambuf_iterator<char>());
  if (!in.good() && !in.eof()) {
    throw plugin::Failure(NETCL_E_ARG, path + ": cannot be read; reinstall the plugin");
  }
  return text;
}

std::string manifest_text(const nlohmann::json& manifest, const char* key,
                          const std::string& path) {
  if (!manifest.is_object() || !manifest.contains(key) || !manifest[key].is_string()) {
    throw plugin::Failure(NETCL_E_ARG, path + ": member \"" + key + "\" is missing or not text");
  }
  return manifest[key].get<std::string>();
}

// The file that data.variants names.
std::string variants_name(const nlohmann::json& manifest, const std::string& path) {
  const auto data = manifest.find("data");
  if (data == manifest.end() || !data->is_object() || !data->contains("variants"))
    return "variants.json";
  return manifest_text(*data, "variants", path);
}

const std::vector<VariantSpec>* find(
    const std::map<std::string, std::vector<VariantSpec>, std::less<>>& table, netcl_str name) {
  const auto it = table.find(plugin::view(name));
  return it == table.end() ? nullptr : &it->second;
}

void add_device(const plugin::Host& host, netcl_device* device, Scope* facts) {
  for (const char* name : kDeviceFacts) (*facts)[name] = host.device_int(device, name);
  (*facts)["arch"] = host.device_text(device, "arch");
  std::istringstream extensions(host.device_text(device, "extensions"));
  for (std::string name; extensions >> name;)
    if (name.compare(0, 3, "cl_") == 0) (*facts)[name] = int64_t{1};
}

PackPlugin& of(netcl_plugin* p) { return static_cast<PackPlugin&>(plugin::self(p)); }

}  // namespace

PackPlugin::PackPlugin(const netcl_host* host, netcl_call* call)
    : Plugin(host), dir_(plugin::Host(host, call).plugin_dir()) {
  const std::string path = dir_ + "/plugin.json";
  const auto manifest = nlohmann::json::parse(read_text(path), nullptr, /*allow_exceptions=*/false,
                                              /*ignore_comments=*/true);  // before it is sealed
  if (manifest.is_discarded()) throw plugin::Failure(NETCL_E_ARG, path + ": not JSON");
  id_ = manifest_text(manifest, "id", path);
  version_ = manifest_text(manifest, "version", path);
  variants_file_ = variants_name(manifest, path);
}

const void* PackPlugin::query(std::string_view interface_name) {
  static const netcl_kernels_api api = {sizeof(netcl_kernels_api), &PackPlugin::plan,
                                        &PackPlugin::enumerate, &PackPlugin::tunables};
  return interface_name == NETCL_KERNELS_INTERFACE ? &api : nullptr;
}

const VariantFile& PackPlugin::variants() {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (variants_ == nullptr) {
    const std::string path = dir_ + "/" + variants_file_;
    auto all = std::make_unique<VariantFile>(read_variants(read_text(path), path));
    for (const std::string& name : all->files) {
      const std::string part = dir_ + "/" + name;
      merge_variants(read_variants(read_text(part), part), part, all.get());
    }
    variants_ = std::move(all);
  }
  return *variants_;
}

const std::string& PackPlugin::source(const std::string& name) {
  const std::lock_guard<std::mutex> lock(mutex_);
  const auto it = sources_.find(name);
  if (it != sources_.end()) return it->second;
  return sources_.emplace(name, read_text(dir_ + "/" + name)).first->second;
}

std::optional<PackPlugin::Candidate> PackPlugin::candidate(const VariantSpec& variant,
                                                           const VariantName& wanted,
                                                           const Scope& facts,
                                                           std::string* refusals) const {
  Candidate out{&variant, "", facts};
  out.name = add_tunables(variant, wanted.settings, &out.scope);
  add_let(variant, &out.scope);
  const std::string reason = refusal(variant, out.scope);
  if (reason.empty()) return out;
  *refusals += (refusals->empty() ? "" : "; ") + reason;
  return std::nullopt;
}

std::vector<PackPlugin::Candidate> PackPlugin::candidates(const plugin::Host& host,
                                                          netcl_device* device,
                                                          const netcl_opkey& key,
                                                          std::string_view only,
                                                          std::string* refusals) {
  const VariantFile& file = variants();
  Scope facts = key_scope(key);
  add_device(host, device, &facts);
  const VariantName wanted = parse_variant_name(only);
  std::vector<Candidate> preferred, others;
  bool known = false;
  for (const auto* list : {find(file.ops, key.op), find(file.families, key.family)}) {
    if (list == nullptr) continue;
    for (const VariantSpec& variant : *list) {
      if (!wanted.id.empty() && variant.id != wanted.id) continue;
      known = true;
      std::optional<Candidate> one = candidate(variant, wanted, facts, refusals);
      if (!one) continue;
      bool first = true;
      try {
        first = !variant.prefer.has_value() || variant.prefer->truth(one->scope);
      } catch (const ExprError& e) {
        throw plugin::Failure(NETCL_E_ARG, "variant " + variant.id + ", prefer: " + e.what());
      }
      (first ? preferred : others).push_back(std::move(*one));
    }
  }
  if (!known) {
    *refusals = only.empty() ? "the set has no kernels for this op"
                             : "the op has no variant \"" + wanted.id + "\" in this set";
  }
  for (Candidate& other : others) preferred.push_back(std::move(other));
  return preferred;
}

netcl_rc PackPlugin::plan(netcl_plugin* p, netcl_call* call, netcl_device* device,
                          const netcl_opkey* key, netcl_str variant, netcl_sink sink, void* ctx) {
  PackPlugin& self = of(p);
  return plugin::guard(self.host(), call, [&] {
    std::string refusals;
    auto found = self.candidates(plugin::Host(self.host(), call), device, *key,
                                 plugin::view(variant), &refusals);
    const std::string op(plugin::view(key->op));
    if (found.empty()) throw plugin::Decline(op + ": " + refusals);
    Candidate& best = found.front();
    try {
      const PlannedRecipe recipe(
          *best.variant, best.name, *key, std::move(best.scope),
          [&self](const std::string& name) -> const std::string& { return self.source(name); });
      recipe.emit(sink, ctx);
    } catch (const plugin::Failure& e) {
      throw plugin::Failure(e.code(), op + ", variant " + best.variant->id + ": " + e.what());
    }
  });
}

netcl_rc PackPlugin::enumerate(netcl_plugin* p, netcl_call* call, netcl_device* device,
                               const netcl_opkey* key, netcl_sink sink, void* ctx) {
  PackPlugin& self = of(p);
  return plugin::guard(self.host(), call, [&] {
    std::string refusals;
    for (const Candidate& candidate :
         self.candidates(plugin::Host(self.host(), call), device, *key, "", &refusals)) {
      netcl_variant item{};
      item.id = plugin::to_abi(candidate.variant->id);
      item.detail = plugin::to_abi(candidate.variant->needs);
      plugin::check(sink(ctx, &item), "sink");
    }
  });
}

netcl_rc PackPlugin::tunables(netcl_plugin* p, netcl_call* call, netcl_device* device,
                              const netcl_opkey* key, netcl_str variant, netcl_sink sink,
                              void* ctx) {
  PackPlugin& self = of(p);
  return plugin::guard(self.host(), call, [&] {
    std::string refusals;
    const auto found = self.candidates(plugin::Host(self.host(), call), device, *key,
                                       plugin::view(variant), &refusals);
    if (found.empty()) throw plugin::Decline(std::string(plugin::view(key->op)) + ": " + refusals);
    for (const TunableSpec& tunable : found.front().variant->tunables) {
      netcl_tunable item{};
      item.name = plugin::to_abi(tunable.name);
      item.values = tunable.values.data();
      item.n_values = static_cast<uint32_t>(tunable.values.size());
      item.def = tunable.def.integer(found.front().scope);
      plugin::check(sink(ctx, &item), "sink");
    }
  });
}

}  // namespace pack
}  // namespace netcl
