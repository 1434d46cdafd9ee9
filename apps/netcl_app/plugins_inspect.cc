// netcl-app plugins inspect ID: one plugin's manifest, its state, the devices it serves and the
// keys of its layers.
#include <iostream>
#include <variant>

#include "apps/netcl_app/options.h"
#include "apps/netcl_app/plugins_commands.h"
#include "apps/netcl_app/probe.h"
#include "core/base/json_doc.h"
#include "core/base/text.h"
#include "core/runtime/layer_set.h"

namespace netcl::app {

namespace {

const char* kind_name(uint32_t kind) {
  switch (kind) {
    case NETCL_ATTR_INT:
      return "integer";
    case NETCL_ATTR_BOOL:
      return "boolean";
    case NETCL_ATTR_FLOAT:
      return "number";
    case NETCL_ATTR_STR:
      return "text";
    case NETCL_ATTR_INTS:
      return "integers";
    case NETCL_ATTR_LAYERS:
      return "layers";
    default:
      return "value";
  }
}

Json default_json(const LayerAttr& attr) {
  const Attrs::Item& item = *attr.def;
  if (const auto* integer = std::get_if<int64_t>(&item))
    return attr.kind == NETCL_ATTR_BOOL ? Json(*integer != 0) : Json(*integer);
  if (const auto* number = std::get_if<double>(&item)) return *number;
  if (const auto* text = std::get_if<std::string>(&item)) return *text;
  if (const auto* list = std::get_if<std::vector<int64_t>>(&item)) return *list;
  return std::get<Shape>(item).dims();
}

Json layer_json(const LayerType& type) {
  Json out = {{"type", type.name()},
              {"doc", type.doc()},
              {"inputs", type.n_in()},
              {"outputs", type.n_out()},
              {"keys", Json::array()}};
  for (const LayerAttr& attr : type.attrs()) {
    Json key = {{"key", attr.key},
                {"kind", kind_name(attr.kind)},
                {"required", attr.required},
                {"doc", attr.doc}};
    if (!attr.required && attr.def) key["default"] = default_json(attr);
    if (attr.min != 0 || attr.max != 0) key["range"] = {attr.min, attr.max};
    if (!attr.choices.empty()) key["choices"] = attr.choices;
    out["keys"].push_back(key);
  }
  return out;
}

Json provision_json(const Provision& provision, const std::vector<DeviceInfo>& devices) {
  Json out;
  for (const auto& [key, value] : {std::pair<const char*, const std::string*>{"op", &provision.op},
                                   {"family", &provision.family},
                                   {"layer", &provision.layer},
                                   {"transport", &provision.transport}}) {
    if (!value->empty()) out[key] = *value;
  }
  out["priority"] = provision.priority;
  if (provision.op.empty() && provision.family.empty()) return out;
  out["devices"] = Json::object();
  for (const DeviceInfo& device : devices) {
    out["devices"][device.selector] = refuses_device(provision, device).value_or("serves it");
  }
  return out;
}

const PluginRow& row_of(const PluginHost& plugins, const std::string& id) {
  std::vector<std::string> ids;
  for (const PluginRow& row : plugins.rows()) {
    if (row.id == id) return row;
    ids.push_back(row.id);
  }
  fail(ErrorCode::kPlugin, "there is no plugin \"", id, "\"", suggest(id, ids));
}

int run_inspect(const CommonOptions& options, const std::string& id) {
  const std::vector<DeviceInfo> devices = probe_devices().devices();
  PluginHost plugins(options.plugin_options(), devices, stderr_logger(options.quiet));
  row_of(plugins, id);
  plugins.load_all();
  const PluginRow& row = row_of(plugins, id);
  Json out = {{"id", row.id},       {"kind", row.kind}, {"version", row.version},
              {"state", row.state}, {"code", row.code}, {"detail", row.detail},
              {"path", row.path}};
  for (const std::string kind : {"kernels", "layer", "transport"}) {
    for (const Manifest* manifest : plugins.manifests(kind)) {
      if (manifest->id != id || out.contains("provides")) continue;
      out["name"] = manifest->name;
      out["license"] = manifest->license;
      out["abi"] = str_cat(manifest->abi_major, ".", manifest->abi_minor);
      out["library"] = manifest->library.string();
      out["provides"] = Json::array();
      for (const Provision& p : manifest->provides)
        out["provides"].push_back(provision_json(p, devices));
      if (row.state != "serving" || !manifest->has_kind("layer")) continue;
      LayerSet layers(plugins);
      out["layers"] = Json::array();
      for (const LayerType* type : layers.types_of(id)) out["layers"].push_back(layer_json(*type));
    }
  }
  if (options.json) {
    std::cout << out.dump(2) << "\n";
    return 0;
  }
  for (const auto& item : out.items()) {
    if (item.value().is_array()) {
      std::cout << item.key() << ":\n";
      for (const Json& entry : item.value()) std::cout << "    " << entry.dump() << "\n";
    } else if (!item.value().get<std::string>().empty()) {
      std::cout << item.key() << ": " << item.value().get<std::string>() << "\n";
    }
  }
  return 0;
}

}  // namespace

void add_plugins_inspect(CLI::App& plugins, Run& run) {
  struct Options : CommonOptions {
    std::string id;
  };
  auto options = std::make_shared<Options>();
  CLI::App* command = plugins.add_subcommand(
      "inspect", "One plugin: manifest, state, devices, layers and their keys");
  command->footer("Example: netcl-app plugins inspect standard");
  command->add_option("ID", options->id, "The plugin's id")->required();
  add_common(*command, *options);
  command->callback(
      [options, &run] { run = [options] { return run_inspect(*options, options->id); }; });
}

}  // namespace netcl::app
