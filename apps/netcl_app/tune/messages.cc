#include "apps/netcl_app/tune/messages.h"

namespace netcl::app {

Json to_json(const PluginOptions& options) {
  Json out = {{"paths", Json::array()}, {"disable", options.disable}, {"only", options.only}};
  for (const auto& path : options.paths) out["paths"].push_back(path.string());
  return out;
}

PluginOptions plugin_options_from_json(const Json& json) {
  PluginOptions out;
  for (const Json& path : json.at("paths")) out.paths.emplace_back(path.get<std::string>());
  json.at("disable").get_to(out.disable);
  json.at("only").get_to(out.only);
  return out;
}

Json to_json(const std::vector<VariantSpace>& spaces) {
  Json out = Json::array();
  for (const VariantSpace& space : spaces) {
    Json tunables = Json::array();
    for (const Tunable& t : space.tunables)
      tunables.push_back({{"name", t.name}, {"values", t.values}, {"default", t.def}});
    out.push_back(
        {{"plugin", space.plugin}, {"variant", space.variant}, {"tunables", std::move(tunables)}});
  }
  return out;
}

std::vector<VariantSpace> spaces_from_json(const Json& json) {
  std::vector<VariantSpace> out;
  for (const Json& space : json) {
    VariantSpace one{
        space.at("plugin").get<std::string>(), space.at("variant").get<std::string>(), {}};
    for (const Json& t : space.at("tunables"))
      one.tunables.push_back({t.at("name").get<std::string>(),
                              t.at("values").get<std::vector<int64_t>>(),
                              t.at("default").get<int64_t>()});
    out.push_back(std::move(one));
  }
  return out;
}

}  // namespace netcl::app
