// netcl_plugin.hpp - C++17 veneer over netcl_plugin.h for plugin authors.
//
// Derive from Plugin and from the interface you offer (KernelSet, LayerFamily, Transport), write
// NETCL_PLUGIN(MyPlugin) once, and throw Failure or Decline where something is wrong: the veneer
// turns them into status codes at the edge. Build with
//   g++ -std=c++17 -fPIC -shared -fvisibility=hidden -fno-gnu-unique
// Everything here has hidden visibility, so two plugins never share code by accident.
#ifndef NETCL_CORE_ABI_NETCL_PLUGIN_HPP_
#define NETCL_CORE_ABI_NETCL_PLUGIN_HPP_

#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "netcl_base.hpp"
#include "netcl_plugin.h"

#pragma GCC visibility push(hidden)
namespace netcl {
namespace plugin {

// ---- base class of every plugin
class Plugin {
 public:
  explicit Plugin(const netcl_host* host) : host_(host) {}
  Plugin(const Plugin&) = delete;
  Plugin& operator=(const Plugin&) = delete;
  virtual ~Plugin() = default;
  virtual std::string_view id() const = 0;
  virtual std::string_view version() const = 0;
  // Returns the C table of the interface, or nullptr.
  virtual const void* query(std::string_view interface_name) = 0;
  const netcl_host* host() const { return host_; }

 private:
  const netcl_host* host_;
};

inline Plugin& self(netcl_plugin* p) { return *reinterpret_cast<Plugin*>(p); }

// The instances that are open. Never destroyed: close() may come late.
struct OpenInstances {
  std::mutex mutex;
  std::set<Plugin*> all;
  static OpenInstances& get() {
    static OpenInstances* const instances = new OpenInstances;
    return *instances;
  }
};

template <typename P>
netcl_rc open_plugin(const netcl_host* host, netcl_call* call, netcl_plugin_api* out) {
  if (host == nullptr || out == nullptr || !NETCL_HAS(host, fail)) return NETCL_E_ABI;
  return guard(host, call, [&] {
    if (host->abi_major != NETCL_ABI_MAJOR || host->abi_minor < NETCL_ABI_MINOR) {
      const auto version = [](uint32_t major, uint32_t minor) {
        return std::to_string(major) + "." + std::to_string(minor);
      };
      throw Failure(NETCL_E_ABI, "the library was built for boundary " +
                                     version(NETCL_ABI_MAJOR, NETCL_ABI_MINOR) +
                                     ", its plugin.json says " +
                                     version(host->abi_major, host->abi_minor));
    }
    if (out->size < NETCL_END_(out, close))
      throw Failure(NETCL_E_ABI, "the host has no room for the plugin's table");
    P* plugin = nullptr;
    if constexpr (std::is_constructible_v<P, const netcl_host*, netcl_call*>) {
      plugin = new P(host, call);  // for a plugin that needs host services to know itself
    } else {
      plugin = new P(host);
    }
    out->abi_major = NETCL_ABI_MAJOR;
    out->abi_minor = NETCL_ABI_MINOR;
    out->id = to_abi(plugin->id());
    out->version = to_abi(plugin->version());
    const std::lock_guard<std::mutex> lock(OpenInstances::get().mutex);
    OpenInstances::get().all.insert(plugin);
    out->self = reinterpret_cast<netcl_plugin*>(static_cast<Plugin*>(plugin));
    out->query = [](netcl_plugin* p, netcl_str name) -> const void* {
      try {
        return self(p).query(view(name));
      } catch (...) {
        return nullptr;
      }
    };
    out->close = [](netcl_plugin* p) {  // again: nothing
      const std::lock_guard<std::mutex> one(OpenInstances::get().mutex);
      if (OpenInstances::get().all.erase(&self(p)) > 0) delete &self(p);
    };
  });
}

// ---- layers
// "[B,8,4]", for messages: -k is shown as k times the batch.
inline std::string shape_text(const std::vector<int64_t>& shape) {
  std::string out = "[";
  for (const int64_t d : shape) {
    if (out.size() > 1) out += ',';
    out += d >= 0 ? std::to_string(d) : (d == -1 ? "" : std::to_string(-d)) + "B";
  }
  return out + "]";
}

// An axis of a sample from a configuration, counted from 0 (a negative one from the end).
// Errors: NETCL_E_ARG if it does not exist, or is axis 0, the batch.
inline int64_t sample_axis(const std::vector<int64_t>& shape, int64_t given) {
  const auto rank = static_cast<int64_t>(shape.size());
  const int64_t axis = given < 0 ? given + rank : given;
  if (axis >= 1 && axis < rank) return axis;
  throw Failure(NETCL_E_ARG, "axis " + std::to_string(given) + " of " + shape_text(shape) +
                                 (axis == 0 ? " is the batch, which is split over the workers"
                                            : " does not exist") +
                                 "; choose one from 1 to " + std::to_string(rank - 1));
}

// A value inside a graph, as a layer sees it.
struct Value {
  netcl_value id = 0;
};

// What a layer's trace may do. Valid during the call only.
class Trace {
 public:
  Trace(Host host, netcl_graph* graph, AttrView attrs, const netcl_value* in, uint32_t n_in,
        netcl_value* out, uint32_t n_out)
      : host_(host), graph_(graph), attrs_(attrs), in_(in), out_(out), n_in_(n_in), n_out_(n_out) {}

  const AttrView& attrs() const { return attrs_; }
  uint32_t n_inputs() const { return n_in_; }
  Value input(uint32_t i) const {
    if (i >= n_in_) throw Failure(NETCL_E_BUG, "the layer asks for an input that it does not have");
    return {in_[i]};
  }
  void output(uint32_t i, Value v) const {
    if (i >= n_out_) throw Failure(NETCL_E_BUG, "the layer sets an output that it does not have");
    out_[i] = v.id;
  }
  netcl_desc desc(Value v) const {
    netcl_desc d{};
    check(host_.table()->value_desc(host_.call(), graph_, v.id, &d));
    return d;
  }
  // Shape of a value; dimension 0 is negative where it grows with the batch.
  std::vector<int64_t> shape(Value v) const {
    const netcl_desc d = desc(v);
    return {d.dim, d.dim + d.rank};
  }
  bool training() const {
    netcl_trace_info info{};
    info.size = sizeof(info);
    check(host_.table()->trace_info(host_.call(), graph_, &info));
    return info.training != 0;
  }
  // Records one core op with one output.
  Value op(std::string_view name, const std::vector<Value>& in,
           const std::vector<netcl_attr>& attrs = {}) const {
    return ops(name, in, attrs, 1).front();
  }
  std::vector<Value> ops(std::string_view name, const std::vector<Value>& in,
                         const std::vector<netcl_attr>& attrs, uint32_t n_out) const {
    const std::vector<netcl_value> ids = ids_of(in);
    std::vector<netcl_value> results(n_out);
    check(host_.table()->op(host_.call(), graph_, to_abi(name), ids.data(),
                            static_cast<uint32_t>(ids.size()), attrs.data(),
                            static_cast<uint32_t>(attrs.size()), results.data(), n_out));
    return values_of(results);
  }
  // Names the ops between `in` and `out`, so that they may have kernels of their own: see
  // netcl_host.fused. Go on with what it returns. On a host older than 0.4 the ops just stay.
  std::vector<Value> fused(std::string_view name, const std::vector<Value>& in,
                           const std::vector<netcl_attr>& attrs,
                           const std::vector<Value>& out) const {
    if (!NETCL_HAS(host_.table(), fused)) return out;
    const std::vector<netcl_value> ids = ids_of(in), made = ids_of(out);
    std::vector<netcl_value> own(out.size());
    check(host_.table()->fused(host_.call(), graph_, to_abi(name), ids.data(),
                               static_cast<uint32_t>(ids.size()), attrs.data(),
                               static_cast<uint32_t>(attrs.size()), made.data(),
                               static_cast<uint32_t>(made.size()), own.data()));
    return values_of(own);
  }
  // The same for an op with one output.
  Value fused(std::string_view name, const std::vector<Value>& in,
              const std::vector<netcl_attr>& attrs, Value out) const {
    return fused(name, in, attrs, std::vector<Value>{out}).front();
  }
  // Declares a trained parameter (f32). `init` is NETCL_INIT_*, with its arguments a and b.
  Value parameter(std::string_view name, const std::vector<int64_t>& shape, uint32_t init,
                  double a = 0, double b = 0) const {
    return slot(name, shape, NETCL_ROLE_PARAMETER, init, NETCL_MERGE_FIRST, a, b);
  }
  // Declares a statistic that training changes without a gradient (a running mean).
  Value statistic(std::string_view name, const std::vector<int64_t>& shape, uint32_t init,
                  uint32_t merge, double a = 0, double b = 0) const {
    return slot(name, shape, NETCL_ROLE_STATISTIC, init, merge, a, b);
  }
  void update(Value statistic, Value next) const {
    check(host_.table()->update_slot(host_.call(), graph_, statistic.id, next.id));
  }
  // The step's random state and a stream id of this layer's own, for random ops.
  std::pair<Value, int64_t> random_stream() const {
    netcl_value state = 0;
    int64_t stream = 0;
    check(host_.table()->random_stream(host_.call(), graph_, &state, &stream));
    return {Value{state}, stream};
  }
  // Number of nested layers in an attribute of kind NETCL_ATTR_LAYERS.
  uint32_t num_layers(std::string_view key) const { return attrs_.at(key).n; }
  // Traces one of them.
  Value layer(std::string_view key, uint32_t index, Value in) const {
    netcl_value result = 0;
    check(host_.table()->layer(host_.call(), graph_, attrs_.at(key).u.i, index, &in.id, 1, &result,
                               1));
    return {result};
  }

  // Traces a layer of another type as the part `name` of this one; `attrs` are its keys.
  Value sublayer(std::string_view name, std::string_view type, const std::vector<netcl_attr>& attrs,
                 Value in) const {
    if (!NETCL_HAS(host_.table(), sublayer))
      throw Failure(NETCL_E_ABI, "the host has no sublayer; it is older than 0.2");
    netcl_value result = 0;
    check(host_.table()->sublayer(host_.call(), graph_, to_abi(name), to_abi(type), attrs.data(),
                                  static_cast<uint32_t>(attrs.size()), &in.id, 1, &result, 1));
    return {result};
  }

 private:
  static std::vector<netcl_value> ids_of(const std::vector<Value>& values) {
    std::vector<netcl_value> out;
    for (const Value v : values) out.push_back(v.id);
    return out;
  }
  static std::vector<Value> values_of(const std::vector<netcl_value>& ids) {
    std::vector<Value> out;
    for (const netcl_value id : ids) out.push_back({id});
    return out;
  }
  Value slot(std::string_view name, const std::vector<int64_t>& shape, uint32_t role, uint32_t init,
             uint32_t merge, double a, double b) const {
    if (shape.size() > NETCL_MAX_RANK) throw Failure(NETCL_E_ARG, "a slot has too many dimensions");
    netcl_slot s{};
    s.size = sizeof(s);
    s.name = to_abi(name);
    s.desc.dtype = NETCL_F32;
    s.desc.rank = static_cast<uint32_t>(shape.size());
    for (size_t i = 0; i < shape.size(); ++i) s.desc.dim[i] = shape[i];
    s.role = role;
    s.init = init;
    s.merge = merge;
    s.a = a;
    s.b = b;
    netcl_value v = 0;
    check(host_.table()->slot(host_.call(), graph_, &s, &v));
    return {v};
  }
  Host host_;
  netcl_graph* graph_;
  AttrView attrs_;
  const netcl_value* in_;
  netcl_value* out_;
  uint32_t n_in_, n_out_;
};

// Values joined along an axis; the op takes at most eight, so more are joined in rounds.
inline Value joined(const Trace& t, std::vector<Value> parts, int64_t axis) {
  constexpr size_t kAtOnce = 8;
  while (parts.size() > 1) {
    std::vector<Value> next;
    for (size_t i = 0; i < parts.size(); i += kAtOnce) {
      const size_t count = parts.size() - i < kAtOnce ? parts.size() - i : kAtOnce;
      const std::vector<Value> some(parts.data() + i, parts.data() + i + count);
      next.push_back(count == 1 ? some[0] : t.op("concat", some, {attr_int("axis", axis)}));
    }
    parts = std::move(next);
  }
  return parts.at(0);
}

// One key of a layer's configuration.
struct AttrSpec {
  std::string key;
  uint32_t kind = NETCL_ATTR_INT;
  bool required = true;
  double number = 0;  // default of INT, FLOAT and BOOL
  std::string text;   // default of STR
  double min = 0, max = 0;
  std::string choices;
  std::string doc;
};

struct LayerType {
  std::string name;
  std::string doc;
  std::vector<AttrSpec> attrs;
  std::function<void(const Trace&)> trace;
  uint32_t n_in = 1, n_out = 1;
};

// A plugin that offers layers: fill types() in the constructor.
class LayerFamily : public Plugin {
 public:
  using Plugin::Plugin;
  const void* query(std::string_view interface_name) override {
    static const netcl_layer_api api = {sizeof(netcl_layer_api), &LayerFamily::emit_types,
                                        &LayerFamily::trace};
    return interface_name == NETCL_LAYER_INTERFACE ? &api : nullptr;
  }

 protected:
  void add(LayerType type) { types_.push_back(std::move(type)); }

 private:
  static LayerFamily& of(netcl_plugin* p) { return static_cast<LayerFamily&>(self(p)); }

  static netcl_rc emit_types(netcl_plugin* p, netcl_call* call, netcl_sink sink, void* ctx) {
    return guard(of(p).host(), call, [&] {
      for (const LayerType& type : of(p).types_) {
        std::vector<netcl_attr_spec> specs;
        for (const AttrSpec& a : type.attrs) specs.push_back(to_abi_spec(a));
        netcl_layer_type t{};
        t.name = to_abi(type.name);
        t.doc = to_abi(type.doc);
        t.attrs = specs.data();
        t.n_attrs = static_cast<uint32_t>(specs.size());
        t.n_in = type.n_in;
        t.n_out = type.n_out;
        check(sink(ctx, &t));
      }
    });
  }

  static netcl_attr_spec to_abi_spec(const AttrSpec& a) {
    netcl_attr_spec s{};
    s.def.key = to_abi(a.key);
    s.def.kind = a.kind;
    if (a.kind == NETCL_ATTR_FLOAT) {
      s.def.u.f = a.number;
    } else if (a.kind == NETCL_ATTR_STR) {
      s.def.u.s = to_abi(a.text);
    } else {
      s.def.u.i = static_cast<int64_t>(a.number);
    }
    s.flags = a.required ? NETCL_ATTR_REQUIRED : 0;
    s.min = a.min;
    s.max = a.max;
    s.choices = to_abi(a.choices);
    s.doc = to_abi(a.doc);
    return s;
  }

  static netcl_rc trace(netcl_plugin* p, netcl_call* call, netcl_str type, const netcl_attr* attrs,
                        uint32_t n_attrs, netcl_graph* graph, const netcl_value* in, uint32_t n_in,
                        netcl_value* out, uint32_t n_out) {
    return guard(of(p).host(), call, [&] {
      for (const LayerType& t : of(p).types_) {
        if (t.name != view(type)) continue;
        t.trace(
            Trace(Host(of(p).host(), call), graph, AttrView(attrs, n_attrs), in, n_in, out, n_out));
        return;
      }
      throw Failure(NETCL_E_ARG, "no layer type " + std::string(view(type)));
    });
  }

  std::vector<LayerType> types_;
};

}  // namespace plugin
}  // namespace netcl
#pragma GCC visibility pop

// Defines the plugin's one exported function.
#define NETCL_PLUGIN(Class)                                                                       \
  extern "C" NETCL_EXPORT netcl_rc netcl_plugin_open_v1(const netcl_host* host, netcl_call* call, \
                                                        netcl_plugin_api* out) {                  \
    return netcl::plugin::open_plugin<Class>(host, call, out);                                    \
  }

#endif  // NETCL_CORE_ABI_NETCL_PLUGIN_HPP_
