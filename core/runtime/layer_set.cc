#include "core/runtime/layer_set.h"

#include <algorithm>
#include <functional>

#include "core/base/text.h"
#include "core/nn/tracer.h"

namespace netcl {

namespace {

std::string text(netcl_str s) { return std::string(s.ptr, s.len); }

LayerAttr copy_attr(const netcl_attr_spec& spec) {
  LayerAttr out;
  out.key = text(spec.def.key);
  out.kind = spec.def.kind;
  out.required = (spec.flags & NETCL_ATTR_REQUIRED) != 0;
  out.min = spec.min;
  out.max = spec.max;
  out.doc = text(spec.doc);
  if (spec.choices.len > 0) out.choices = split(text(spec.choices), '|');
  if (!out.required && out.kind != NETCL_ATTR_LAYERS) {
    out.def = attrs_from_abi(&spec.def, 1).items().front().second;
  }
  return out;
}

class PluginLayerType : public LayerType {
 public:
  PluginLayerType(const LoadedPlugin& plugin, const netcl_layer_type& type)
      : plugin_(plugin),
        name_(text(type.name)),
        doc_(text(type.doc)),
        n_in_(type.n_in),
        n_out_(type.n_out) {
    for (uint32_t i = 0; i < type.n_attrs; ++i) attrs_.push_back(copy_attr(type.attrs[i]));
  }
  const std::string& name() const override { return name_; }
  std::string doc() const override { return doc_; }
  const std::vector<LayerAttr>& attrs() const override { return attrs_; }
  size_t n_in() const override { return n_in_; }
  size_t n_out() const override { return n_out_; }

  std::vector<ValueId> trace(Tracer& tracer, const LayerArgs& args,
                             const std::vector<ValueId>& in) const override {
    std::vector<netcl_attr> attrs = to_abi(args.values);
    for (const auto& [key, nested] : args.nested) {
      netcl_attr a{};
      a.key = {key.data(), key.size()};
      a.kind = NETCL_ATTR_LAYERS;
      a.n = nested.count;
      a.u.i = nested.handle;
      attrs.push_back(a);
    }
    netcl_graph graph{&tracer};
    std::vector<netcl_value> out(n_out_, UINT32_MAX);
    const auto& table = plugin_.table<netcl_layer_api>(NETCL_LAYER_INTERFACE);
    plugin_.must("layer " + name_, [&](netcl_call* call) {
      return table.trace(plugin_.self(), call, {name_.data(), name_.size()}, attrs.data(),
                         static_cast<uint32_t>(attrs.size()), &graph, in.data(),
                         static_cast<uint32_t>(in.size()), out.data(),
                         static_cast<uint32_t>(out.size()));
    });
    for (const netcl_value v : out) {
      NETCL_CHECK(v < tracer.recorder().num_values(), ErrorCode::kPlugin, "layer ", name_,
                  " of plugin ", plugin_.id(), " left an output unset");
    }
    return out;
  }

 private:
  const LoadedPlugin& plugin_;
  std::string name_, doc_;
  size_t n_in_, n_out_;
  std::vector<LayerAttr> attrs_;
};

}  // namespace

std::vector<std::string> LayerSet::open(const std::string& plugin_id) {
  const LoadedPlugin& plugin = plugins_.load(plugin_id);
  const auto& table = plugin.table<netcl_layer_api>(NETCL_LAYER_INTERFACE);
  std::vector<std::unique_ptr<LayerType>> found;
  struct Context {
    const LoadedPlugin& plugin;
    std::vector<std::unique_ptr<LayerType>>& found;
  } context{plugin, found};
  plugin.must("asking for layer types", [&](netcl_call* call) {
    return table.types(
        plugin.self(), call,
        [](void* ctx, const void* item) -> netcl_rc {
          auto* c = static_cast<Context*>(ctx);
          c->found.push_back(std::make_unique<PluginLayerType>(
              c->plugin, *static_cast<const netcl_layer_type*>(item)));
          return NETCL_OK;
        },
        &context);
  });
  std::vector<std::string> names;
  for (auto& type : found) {
    names.push_back(type->name());
    types_.emplace(names.back(), std::move(type));
  }
  return names;
}

std::vector<const LayerType*> LayerSet::types_of(const std::string& plugin_id) {
  std::vector<std::string> names = open(plugin_id);
  std::sort(names.begin(), names.end());
  std::vector<const LayerType*> out;
  for (const std::string& name : names) out.push_back(types_.at(name).get());
  return out;
}

const LayerType& LayerSet::find(const std::string& name) {
  const auto known = types_.find(name);
  if (known != types_.end()) return *known->second;
  std::vector<std::string> names;
  std::vector<std::string> owners;
  for (const Manifest* manifest : plugins_.manifests("layer")) {
    for (const Provision& provision : manifest->provides) {
      if (provision.layer.empty()) continue;
      names.push_back(provision.layer);
      if (provision.layer == name) owners.push_back(manifest->id);
    }
  }
  NETCL_CHECK(!names.empty(), ErrorCode::kPlugin,
              "no layer plugin serves, so there is no layer type \"", name, "\". ",
              plugins_.rejections());
  const std::string refused = plugins_.rejections();
  NETCL_CHECK(!owners.empty() || refused.empty(), ErrorCode::kPlugin,
              "no plugin that serves offers a layer type \"", name, "\"", suggest(name, names),
              ". Plugins that do not serve: ", refused);
  NETCL_CHECK(!owners.empty(), ErrorCode::kUsage, "no plugin offers a layer type \"", name, "\"",
              suggest(name, names));
  NETCL_CHECK(owners.size() == 1, ErrorCode::kPlugin, "layer type \"", name,
              "\" is offered by plugins ", join(owners, " and "),
              "; disable one with --disable-plugins");
  open(owners[0]);
  const auto opened = types_.find(name);
  NETCL_CHECK(opened != types_.end(), ErrorCode::kPlugin, "NPL-13: the manifest of plugin ",
              owners[0], " names the layer type \"", name, "\", its library does not");
  return *opened->second;
}

}  // namespace netcl
