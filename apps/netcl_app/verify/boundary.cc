// The checks of the boundary itself: opening, tables, closing, hosts that are not as usual, and
// questions that nobody should ask.
#include <algorithm>
#include <cstring>
#include <set>

#include "apps/netcl_app/verify/exercise.h"
#include "apps/netcl_app/verify/host_doubles.h"
#include "core/base/error.h"
#include "core/base/text.h"
#include "core/runtime/host_call.h"
#include "core/runtime/kernel_set.h"

namespace netcl::app::verify {

namespace {

// ---- tables ----

void require_functions(const char* interface,
                       const std::vector<std::pair<const char*, bool>>& functions) {
  for (const auto& [name, there] : functions)
    NETCL_CHECK(there, ErrorCode::kPlugin, "NPL-13: the table ", interface, " has no function ",
                name);
}

void check_kernels_table(const LoadedPlugin& plugin) {
  const auto& t = plugin.table<netcl_kernels_api>(NETCL_KERNELS_INTERFACE);
  require_functions(NETCL_KERNELS_INTERFACE,
                    {{"plan", NETCL_HAS(&t, plan)}, {"enumerate", NETCL_HAS(&t, enumerate)}});
}

void check_transport_table(const LoadedPlugin& plugin) {
  const auto& t = plugin.table<netcl_transport_api>(NETCL_TRANSPORT_INTERFACE);
  require_functions(NETCL_TRANSPORT_INTERFACE, {{"accept", NETCL_HAS(&t, accept)},
                                                {"open", NETCL_HAS(&t, open)},
                                                {"bucket_new", NETCL_HAS(&t, bucket_new)},
                                                {"bucket_free", NETCL_HAS(&t, bucket_free)},
                                                {"post", NETCL_HAS(&t, post)},
                                                {"wait", NETCL_HAS(&t, wait)},
                                                {"abort", NETCL_HAS(&t, abort)},
                                                {"close", NETCL_HAS(&t, close)}});
}

netcl_rc collect_type(void* ctx, const void* item) {
  const netcl_str name = static_cast<const netcl_layer_type*>(item)->name;
  static_cast<std::set<std::string>*>(ctx)->emplace(name.ptr, name.len);
  return NETCL_OK;
}

void check_layer_table(const LoadedPlugin& plugin) {
  const auto& t = plugin.table<netcl_layer_api>(NETCL_LAYER_INTERFACE);
  require_functions(NETCL_LAYER_INTERFACE,
                    {{"types", NETCL_HAS(&t, types)}, {"trace", NETCL_HAS(&t, trace)}});
  std::set<std::string> has;
  plugin.must("asking for layer types",
              [&](netcl_call* call) { return t.types(plugin.self(), call, &collect_type, &has); });
  std::set<std::string> named;
  for (const Provision& p : plugin.manifest().provides)
    if (!p.layer.empty()) named.insert(p.layer);
  for (const std::string& name : named)
    NETCL_CHECK(has.count(name) > 0, ErrorCode::kPlugin, "NPL-13: the manifest names the layer ",
                name, ", the library does not have it", suggest(name, {has.begin(), has.end()}));
  for (const std::string& name : has)
    NETCL_CHECK(named.count(name) > 0, ErrorCode::kPlugin, "NPL-13: the library has the layer ",
                name, ", which the manifest does not name: nobody finds it");
}

// The tables of every kind that the manifest names.
void require_tables(const LoadedPlugin& plugin) {
  for (const std::string& kind : plugin.manifest().kinds) {
    if (kind == "kernels") check_kernels_table(plugin);
    if (kind == "layer") check_layer_table(plugin);
    if (kind == "transport") check_transport_table(plugin);
  }
}

void check_opens(ChildContext& context) {
  Teller& tell = context.tell();
  tell.at(check::kOpens, "loading the library and opening it");
  const auto& plugin = *new LoadedPlugin(context.manifest(), Logger());
  tell.ran(check::kOpens);
  tell.at(check::kTables, "asking for the interfaces of its kinds");
  NETCL_CHECK(!plugin.manifest().kinds.empty(), ErrorCode::kPlugin,
              "the manifest's \"kinds\" is empty");
  require_tables(plugin);
  tell.ran(check::kTables, plugin.manifest().kinds.size());
}

void check_opens_again(ChildContext& context) {
  Teller& tell = context.tell();
  tell.at(check::kOpensAgain, "opening it twice in one process");
  const auto& first = *new LoadedPlugin(context.manifest(), Logger());
  const auto& second = *new LoadedPlugin(context.manifest(), Logger());
  for (const LoadedPlugin* plugin : {&first, &second, &first}) require_tables(*plugin);
  tell.ran(check::kOpensAgain);
}

void check_close_twice(ChildContext& context) {
  Teller& tell = context.tell();
  auto& plugin = *new LoadedPlugin(context.manifest(), Logger());
  tell.at(check::kCloseTwice, "closing it");
  plugin.close();
  tell.at(check::kCloseTwice, "closing it again");
  plugin.close();
  tell.at(check::kCloseTwice, "opening it after it was closed");
  auto& again = *new LoadedPlugin(context.manifest(), Logger());
  again.close();
  tell.ran(check::kCloseTwice);
}

// ---- sizes ----

// Room for the plugin's table, with poison behind it.
struct GuardedApi {
  static constexpr size_t kBehind = 64;
  static constexpr unsigned char kPoison = 0xa5;

  explicit GuardedApi(size_t size) {
    std::memset(bytes, kPoison, sizeof(bytes));
    std::memset(bytes, 0, std::min(size, sizeof(netcl_plugin_api)));
    api().size = size;
  }
  netcl_plugin_api& api() { return *reinterpret_cast<netcl_plugin_api*>(bytes); }
  // The first byte from `from` on that is no poison, or -1.
  long first_written(size_t from) const {
    for (size_t i = from; i < sizeof(bytes); ++i)
      if (bytes[i] != kPoison) return static_cast<long>(i);
    return -1;
  }

  alignas(16) unsigned char bytes[sizeof(netcl_plugin_api) + kBehind];
};

void check_api_size(ChildContext& context, const char* what, size_t size, bool must_open) {
  Teller& tell = context.tell();
  tell.at(check::kSizes, what);
  GuardedApi guarded(size);
  netcl_call call{
      context.manifest().id, context.manifest().directory.string(), Logger(), "", 0, nullptr};
  const netcl_rc rc = load_entry(context.manifest())(&host_table(), &call, &guarded.api());
  const long written = guarded.first_written(std::min(size, sizeof(netcl_plugin_api)));
  NETCL_CHECK(written < 0, ErrorCode::kPlugin, "it wrote to byte ", written,
              " of a netcl_plugin_api whose size says ", size,
              "; write what fits, or refuse with NETCL_E_ABI");
  NETCL_CHECK(rc == NETCL_OK || !must_open, ErrorCode::kPlugin, "it refused with status ", rc, " (",
              call.error, ")");
  tell.ran(check::kSizes);
}

void check_hosts(ChildContext& context, const std::vector<Exercise>& all, const std::string& what,
                 const netcl_host& host, bool must_serve) {
  Teller& tell = context.tell();
  for (const Exercise& exercise : all) {
    tell.at(check::kSizes, what + ", " + exercise.name);
    try {
      exercise.run(host);
    } catch (const Error&) {
      if (must_serve) throw;
    }
  }
  tell.ran(check::kSizes);
}

void check_sizes(ChildContext& context) {
  Teller& tell = context.tell();
  tell.at(check::kSizes, "opening it with the usual host");
  const std::vector<Exercise> all = exercises(context);
  const auto guarded = [&](auto&& body) { tell.guard(body); };
  guarded([&] {
    check_api_size(context, "a host whose netcl_plugin_api has no room for the last member",
                   offsetof(netcl_plugin_api, close), false);
  });
  guarded([&] {
    check_api_size(context, "a host whose netcl_plugin_api is larger",
                   sizeof(netcl_plugin_api) + GuardedApi::kBehind, true);
  });
  guarded([&] {
    check_hosts(context, all, "a host table of boundary 0.1", cut_host(first_host_size(), 1),
                false);
  });
  guarded([&] {
    check_hosts(context, all, "a host table without the services since 0.2",
                cut_host(first_host_size(), NETCL_ABI_MINOR), false);
  });
  guarded(
      [&] { check_hosts(context, all, "a newer host, with a larger table", newer_host(), true); });
}

// ---- a host that fails ----

void check_host_fails(ChildContext& context) {
  Teller& tell = context.tell();
  tell.at(check::kHostFails, "opening it with the usual host");
  const std::vector<Exercise> all = exercises(context);
  for (const FailingService& service : failing_hosts()) {
    for (const Exercise& exercise : all) {
      tell.at(check::kHostFails, exercise.name + " while the host's " + service.name + " fails");
      reset_failing_calls();
      bool refused = false;
      tell.guard([&] {
        try {
          exercise.run(*service.host);
        } catch (const Error&) {
          refused = true;
        }
      });
      tell.ran(check::kHostFails);
      if (failing_calls() == 0) continue;
      if (!refused && !service.may_be_borne)
        tell.failed(check::kHostFails, exercise.name + ": the host's " + service.name +
                                           " failed, and the plugin says that all is well; hand "
                                           "the status on");
    }
  }
}

// ---- questions that nobody should ask ----

netcl_rc refuse_item(void*, const void*) { return NETCL_E_NOMEM; }
netcl_rc take_item(void*, const void*) { return NETCL_OK; }

netcl_str str(const char* text) { return {text, std::strlen(text)}; }

void ask_kernels(ChildContext& context, const LoadedPlugin& plugin) {
  const auto& t = plugin.table<netcl_kernels_api>(NETCL_KERNELS_INTERFACE);
  netcl_device device{&context.device().info(), &context.device()};
  netcl_opkey key{};
  key.size = sizeof(key);
  std::vector<std::string> ops = {"no such op", ""};
  for (const Provision& p : plugin.manifest().provides)
    if (!p.op.empty() && ops.size() < 5) ops.push_back(p.op);
  std::string text;
  for (const std::string& op : ops) {
    key.op = {op.data(), op.size()};  // without inputs, outputs and attributes
    for (const netcl_sink sink : {&take_item, &refuse_item}) {
      context.tell().at(check::kExceptions, "asked for kernels of \"" + op + "\" without inputs");
      const auto ask = [&](const std::function<netcl_rc(netcl_call*)>& body) {
        plugin.raw_call(body, &text);
        context.tell().ran(check::kExceptions);
      };
      ask([&](netcl_call* c) {
        return t.plan(plugin.self(), c, &device, &key, str("x(Y=1"), sink, nullptr);
      });
      ask([&](netcl_call* c) {
        return t.enumerate(plugin.self(), c, &device, &key, sink, nullptr);
      });
      if (!NETCL_HAS(&t, tunables)) continue;
      ask([&](netcl_call* c) {
        return t.tunables(plugin.self(), c, &device, &key, str("no such variant"), sink, nullptr);
      });
    }
  }
}

void ask_layers(ChildContext& context, const LoadedPlugin& plugin) {
  const auto& t = plugin.table<netcl_layer_api>(NETCL_LAYER_INTERFACE);
  std::string text;
  context.tell().at(check::kExceptions, "asked to trace a layer that it does not have");
  netcl_graph graph{};
  netcl_value value = 0;
  const netcl_rc rc = plugin.raw_call(
      [&](netcl_call* c) {
        return t.trace(plugin.self(), c, str("no.such.layer"), nullptr, 0, &graph, nullptr, 0,
                       &value, 0);
      },
      &text);
  NETCL_CHECK(rc != NETCL_OK, ErrorCode::kPlugin, "it says that all is well");
  context.tell().at(check::kExceptions, "asked for its layers by a host that takes none");
  plugin.raw_call([&](netcl_call* c) { return t.types(plugin.self(), c, &refuse_item, nullptr); },
                  &text);
  context.tell().ran(check::kExceptions, 2);
}

void ask_transport(ChildContext& context, const LoadedPlugin& plugin) {
  const auto& t = plugin.table<netcl_transport_api>(NETCL_TRANSPORT_INTERFACE);
  std::vector<netcl_member> members;
  for (uint32_t r = 0; r < 300; ++r) members.push_back({r, r, r, r});
  netcl_group_spec spec{};
  spec.size = sizeof(spec);
  spec.n_ranks = 300;
  spec.members = members.data();
  context.tell().at(check::kExceptions, "asked to accept 300 ranks on as many machines");
  std::string text;
  plugin.raw_call([&](netcl_call* c) { return t.accept(plugin.self(), c, &spec); }, &text);
  context.tell().ran(check::kExceptions);
}

void check_exceptions(ChildContext& context) {
  Teller& tell = context.tell();
  tell.at(check::kExceptions, "opening it");
  const auto& plugin = *new LoadedPlugin(context.manifest(), Logger());
  tell.at(check::kExceptions, "asked for an interface that it cannot know");
  bool has_it = true;
  try {
    plugin.table<netcl_layer_api>("netcl.no_such_interface/1");
  } catch (const Error&) {
    has_it = false;
  }
  NETCL_CHECK(!has_it, ErrorCode::kPlugin, "it answers with a table; answer with NULL");
  tell.ran(check::kExceptions);
  const Manifest& manifest = context.manifest();
  if (manifest.has_kind("kernels") && context.job().device)
    tell.guard([&] { ask_kernels(context, plugin); });
  if (manifest.has_kind("layer")) tell.guard([&] { ask_layers(context, plugin); });
  if (manifest.has_kind("transport")) tell.guard([&] { ask_transport(context, plugin); });
}

}  // namespace

void run_boundary_unit(ChildContext& context, const std::string& family) {
  if (family == check::kOpens) return check_opens(context);
  if (family == check::kOpensAgain) return check_opens_again(context);
  if (family == check::kCloseTwice) return check_close_twice(context);
  if (family == check::kSizes) return check_sizes(context);
  if (family == check::kHostFails) return check_host_fails(context);
  if (family == check::kExceptions) return check_exceptions(context);
  fail(ErrorCode::kInternal, "there is no family of checks ", family);
}

}  // namespace netcl::app::verify
