#include "plugins/pack/planner.h"

#include <limits>
#include <string_view>

namespace netcl {
namespace pack {
namespace {

struct TypeNames {
  uint32_t dtype;
  const char* name;
  const char* cl_type;
};
constexpr TypeNames kTypes[] = {
    {NETCL_F32, "f32", "float"},   {NETCL_F16, "f16", "half"}, {NETCL_BF16, "bf16", "ushort"},
    {NETCL_I32, "i32", "int"},     {NETCL_I64, "i64", "long"}, {NETCL_U8, "u8", "uchar"},
    {NETCL_BOOL, "bool", "uchar"},
};

void add_desc(const std::string& prefix, const netcl_desc& desc, Scope* scope) {
  int64_t count = 1;
  for (uint32_t i = 0; i < desc.rank; ++i) {
    (*scope)[prefix + "_d" + std::to_string(i)] = desc.dim[i];
    count *= desc.dim[i];
  }
  (*scope)[prefix + "_rank"] = int64_t{desc.rank};
  (*scope)[prefix + "_n"] = count;
}

void add_type(const std::string& prefix, uint32_t dtype, Scope* scope) {
  for (const TypeNames& type : kTypes) {
    if (type.dtype != dtype) continue;
    (*scope)[prefix + "_dtype"] = std::string(type.name);
    (*scope)[prefix + "_type"] = std::string(type.cl_type);
  }
}

// Runs `body`; an ExprError becomes a Failure that names variant and place.
template <typename Body>
auto evaluated(const std::string& variant, const std::string& place, Body&& body)
    -> decltype(body()) {
  try {
    return body();
  } catch (const ExprError& e) {
    throw plugin::Failure(NETCL_E_ARG, "variant " + variant + ", " + place + ": " + e.what());
  }
}

[[noreturn]] void fail_arg(const ArgSpec& arg, const std::string& problem) {
  throw plugin::Failure(NETCL_E_ARG, "argument '" + arg.text + "': " + problem);
}

int32_t to_i32(const ArgSpec& arg, int64_t value) {
  if (value < std::numeric_limits<int32_t>::min() || value > std::numeric_limits<int32_t>::max()) {
    fail_arg(arg, std::to_string(value) + " does not fit into an int");
  }
  return static_cast<int32_t>(value);
}

const netcl_attr* find_attr(const ArgSpec& arg, const netcl_opkey& key) {
  const netcl_attr* attr = plugin::AttrView(key.attrs, key.n_attrs).find(arg.name);
  if (attr == nullptr && !arg.optional) fail_arg(arg, "the op has no such attribute");
  return attr;
}

double float_arg(const ArgSpec& arg, const netcl_opkey& key) {
  const netcl_attr* attr = find_attr(arg, key);
  if (attr == nullptr) return 0;
  if (attr->kind == NETCL_ATTR_FLOAT) return attr->u.f;
  if (attr->kind == NETCL_ATTR_INT || attr->kind == NETCL_ATTR_BOOL) {
    return static_cast<double>(attr->u.i);
  }
  fail_arg(arg, "the attribute is not a number");
}

std::array<int32_t, 8> vector_arg(const ArgSpec& arg, const netcl_opkey& key) {
  std::array<int32_t, 8> out{};
  const netcl_attr* attr = find_attr(arg, key);
  if (attr == nullptr) return out;
  const bool ints = attr->kind == NETCL_ATTR_INTS || attr->kind == NETCL_ATTR_DIMS;
  if (!ints || attr->n != 8) fail_arg(arg, "the attribute is not a list of 8 integers");
  for (size_t i = 0; i < 8; ++i) out[i] = to_i32(arg, attr->u.iv[i]);
  return out;
}

// `what`: "global size".
std::vector<uint64_t> sizes(const std::vector<Expr>& exprs, const Scope& scope,
                            const std::string& what, int64_t least) {
  std::vector<uint64_t> out;
  for (const Expr& expr : exprs) {
    const int64_t value = expr.integer(scope);
    if (value < least) {
      const std::string names = expr.explain(scope);
      throw plugin::Failure(NETCL_E_ARG, "the " + what + " `" + expr.text() + "` is " +
                                             std::to_string(value) +
                                             (names.empty() ? "" : ", where " + names) +
                                             "; it must be at least " + std::to_string(least));
    }
    out.push_back(static_cast<uint64_t>(value));
  }
  return out;
}

netcl_arg plan_arg(const ArgSpec& spec, const netcl_opkey& key, const Scope& scope) {
  netcl_arg arg{};
  arg.kind = spec.kind;
  arg.index = spec.index;
  switch (spec.kind) {
    case NETCL_ARG_INPUT:
      if (spec.index >= key.n_in) {
        if (!spec.optional || key.n_in == 0) fail_arg(spec, "the op has no such input");
        arg.index = 0;
      }
      break;
    case NETCL_ARG_OUTPUT:
      if (spec.index >= key.n_out) fail_arg(spec, "the op has no such output");
      break;
    case NETCL_ARG_SCRATCH:
      break;
    case NETCL_ARG_LOCAL: {
      const int64_t bytes = spec.expr->integer(scope);
      if (bytes <= 0) fail_arg(spec, "local memory of " + std::to_string(bytes) + " bytes");
      arg.u.bytes = static_cast<uint64_t>(bytes);
      break;
    }
    case NETCL_ARG_I32:
      arg.u.i = to_i32(spec, spec.expr->integer(scope));
      break;
    case NETCL_ARG_I64:
      arg.u.i = spec.expr->integer(scope);
      break;
    case NETCL_ARG_F32:
      arg.u.f = float_arg(spec, key);
      break;
    default:  // NETCL_ARG_I32X8: set once all vectors have their final place
      break;
  }
  return arg;
}

}  // namespace

// Of so many first inputs those that are absent have the type of input 0.
constexpr uint32_t kStandIns = 6;

Scope key_scope(const netcl_opkey& key) {
  Scope scope;
  scope["op"] = std::string(plugin::view(key.op));
  for (uint32_t i = 0; i < key.n_attrs; ++i) {
    const netcl_attr& attr = key.attrs[i];
    const std::string name(plugin::view(attr.key));
    if (attr.kind == NETCL_ATTR_INT || attr.kind == NETCL_ATTR_BOOL) scope[name] = attr.u.i;
    if (attr.kind == NETCL_ATTR_STR) scope[name] = std::string(plugin::view(attr.u.s));
  }
  for (uint32_t i = 0; i < key.n_in; ++i) {
    add_desc("in" + std::to_string(i), key.in[i], &scope);
    add_type("in" + std::to_string(i), key.in[i].dtype, &scope);
  }
  for (uint32_t i = key.n_in; i < kStandIns && key.n_in > 0; ++i) {
    add_type("in" + std::to_string(i), key.in[0].dtype, &scope);
  }
  for (uint32_t i = 0; i < key.n_out; ++i) {
    add_desc("out" + std::to_string(i), key.out[i], &scope);
    add_type("out" + std::to_string(i), key.out[i].dtype, &scope);
  }
  scope["n_in"] = int64_t{key.n_in};
  scope["n_out"] = int64_t{key.n_out};
  return scope;
}

void add_let(const VariantSpec& variant, Scope* scope) {
  for (const auto& [name, expr] : variant.let) {
    (*scope)[name] =
        evaluated(variant.id, "let " + name, [&e = expr, scope] { return e.evaluate(*scope); });
  }
}

std::string refusal(const VariantSpec& variant, const Scope& scope) {
  if (!variant.when.has_value()) return "";
  const Expr& when = *variant.when;
  if (evaluated(variant.id, "when", [&] { return when.truth(scope); })) return "";
  std::string out = "variant " + variant.id + " needs `" + when.text() + "`, but ";
  out += when.explain(scope);
  if (!variant.needs.empty()) out += " (" + variant.needs + ")";
  return out;
}

PlannedRecipe::PlannedRecipe(const VariantSpec& variant, std::string name, const netcl_opkey& key,
                             Scope scope, const SourceReader& read_source)
    : id_(std::move(name)) {
  scratch_bytes_ = evaluated(
      id_, "scratch", [&] { return sizes(variant.scratch, scope, "size of scratch memory", 0); });
  for (size_t i = 0; i < variant.launches.size(); ++i) {
    const LaunchSpec& spec = variant.launches[i];
    const std::string place = "launches[" + std::to_string(i) + "]";
    evaluated(id_, place, [&] {
      if (spec.condition.has_value() && !spec.condition->truth(scope)) return;
      launches_.push_back(plan_launch(spec, key, scope, read_source));
    });
  }
}

PlannedRecipe::Launch PlannedRecipe::plan_launch(const LaunchSpec& spec, const netcl_opkey& key,
                                                 const Scope& scope,
                                                 const SourceReader& read_source) const {
  Launch out;
  out.entry = spec.entry.fill(scope);
  out.options = spec.options.fill(scope);
  for (const auto& [name, text] : spec.defines) {
    out.prelude += "#define " + name + " " + text.fill(scope) + "\n";
  }
  for (const std::string& source : spec.sources) {
    out.sources.emplace_back(source, &read_source(source));
  }
  for (const ArgSpec& arg : spec.args) {
    out.args.push_back(plan_arg(arg, key, scope));
    if (arg.kind == NETCL_ARG_I32X8) {
      out.args.back().index = static_cast<uint32_t>(out.vectors.size());
      out.vectors.push_back(vector_arg(arg, key));
    }
  }
  out.global = sizes(spec.global, scope, "global size", 0);
  out.local = sizes(spec.local, scope, "local size", 1);
  for (size_t i = 0; i < out.local.size(); ++i) {
    if (out.global[i] % out.local[i] != 0) {
      throw plugin::Failure(NETCL_E_ARG, "the global size `" + spec.global[i].text() +
                                             "` is no multiple of the local size `" +
                                             spec.local[i].text() + "`");
    }
  }
  return out;
}

void PlannedRecipe::emit(netcl_sink sink, void* ctx) const {
  std::vector<netcl_launch> launches;
  std::vector<std::vector<netcl_source>> sources(launches_.size());
  std::vector<std::vector<netcl_arg>> args(launches_.size());
  for (size_t i = 0; i < launches_.size(); ++i) {
    const Launch& from = launches_[i];
    if (!from.prelude.empty()) {
      sources[i].push_back({plugin::to_abi("defines"), plugin::to_abi(from.prelude)});
    }
    for (const auto& [name, text] : from.sources) {
      sources[i].push_back({plugin::to_abi(name), plugin::to_abi(*text)});
    }
    args[i] = from.args;
    for (netcl_arg& arg : args[i]) {
      if (arg.kind != NETCL_ARG_I32X8) continue;
      arg.u.v8 = from.vectors[arg.index].data();
      arg.index = 0;
    }
    netcl_launch launch{};
    launch.entry = plugin::to_abi(from.entry);
    launch.options = plugin::to_abi(from.options);
    launch.sources = sources[i].data();
    launch.args = args[i].data();
    launch.n_sources = static_cast<uint32_t>(sources[i].size());
    launch.n_args = static_cast<uint32_t>(args[i].size());
    launch.dims = static_cast<uint32_t>(from.global.size());
    for (size_t d = 0; d < 3; ++d) {
      launch.global[d] = d < from.global.size() ? from.global[d] : 1;
      launch.local[d] = from.local.empty() ? 0 : d < from.local.size() ? from.local[d] : 1;
    }
    launches.push_back(launch);
  }
  netcl_recipe recipe{};
  recipe.size = sizeof(recipe);
  recipe.variant = plugin::to_abi(id_);
  recipe.launches = launches.data();
  recipe.scratch_bytes = scratch_bytes_.data();
  recipe.n_launches = static_cast<uint32_t>(launches.size());
  recipe.n_scratch = static_cast<uint32_t>(scratch_bytes_.size());
  plugin::check(sink(ctx, &recipe), "sink");
}

}  // namespace pack
}  // namespace netcl
