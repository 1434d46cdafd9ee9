#include "plugins/pack/variants.h"

#include <nlohmann/json.hpp>
#include <sstream>

#include "core/abi/netcl_plugin.hpp"

namespace netcl {
namespace pack {
namespace {

using Json = nlohmann::ordered_json;

constexpr const char* kNameLetters =
    "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_";

// A JSON value with the path that leads to it, so that every message can name its place.
class Cursor {
 public:
  Cursor(const Json& json, std::string file, std::string path)
      : json_(json), file_(std::move(file)), path_(std::move(path)) {}

  [[noreturn]] void fail(const std::string& problem) const {
    throw plugin::Failure(NETCL_E_ARG,
                          file_ + ": " + (path_.empty() ? "top level" : path_) + ": " + problem);
  }
  bool has(const char* key) const { return json_.contains(key); }
  Cursor at(const std::string& key) const {
    if (!json_.contains(key)) fail("member \"" + key + "\" is missing");
    return member(key);
  }
  // Calls visit(key, cursor) for every member, in the order of the file.
  template <typename Visit>
  void members(Visit&& visit) const {
    if (!json_.is_object()) fail("expected an object");
    for (const auto& item : json_.items()) visit(item.key(), member(item.key()));
  }
  template <typename Visit>
  void elements(Visit&& visit) const {
    if (!json_.is_array()) fail("expected an array");
    for (size_t i = 0; i < json_.size(); ++i) {
      visit(Cursor(json_[i], file_, path_ + "[" + std::to_string(i) + "]"));
    }
  }
  void allow(std::initializer_list<std::string_view> keys) const {
    members([&](const std::string& key, const Cursor& value) {
      std::string known;
      for (const std::string_view k : keys) {
        if (k == key) return;
        known += (known.empty() ? "" : ", ") + std::string(k);
      }
      value.fail("unknown member; known: " + known);
    });
  }
  const std::string& text() const {
    if (!json_.is_string()) fail("expected text");
    return json_.get_ref<const std::string&>();
  }
  int64_t integer() const {
    if (!json_.is_number_integer()) fail("expected a whole number");
    return json_.get<int64_t>();
  }
  Expr expr() const {
    if (json_.is_number_integer()) return Expr::parse(std::to_string(json_.get<int64_t>()));
    return parsed([&] { return Expr::parse(text()); });
  }
  Template filled_text() const {
    if (json_.is_number_integer()) return Template::parse(std::to_string(json_.get<int64_t>()));
    return parsed([&] { return Template::parse(text()); });
  }
  // Runs `body`; an ExprError becomes a message with this place.
  template <typename Body>
  auto parsed(Body&& body) const -> decltype(body()) {
    try {
      return body();
    } catch (const ExprError& e) {
      fail(e.what());
    }
  }

 private:
  Cursor member(const std::string& key) const {
    return Cursor(json_.at(key), file_, path_.empty() ? key : path_ + "." + key);
  }
  const Json& json_;
  std::string file_, path_;
};

std::vector<Expr> read_exprs(const Cursor& cursor) {
  std::vector<Expr> out;
  cursor.elements([&](const Cursor& item) { out.push_back(item.expr()); });
  return out;
}

// "in2", "out0", "scratch1": the number after the word. Returns false if `text` is another word.
bool read_indexed(std::string_view text, std::string_view word, uint32_t* index) {
  if (text.substr(0, word.size()) != word || text.size() == word.size()) return false;
  const std::string_view digits = text.substr(word.size());
  if (digits.size() > 2 || digits.find_first_not_of("0123456789") != std::string_view::npos) {
    return false;
  }
  *index = static_cast<uint32_t>(std::stoul(std::string(digits)));
  return true;
}

ArgSpec read_arg(const Cursor& cursor, size_t n_scratch) {
  ArgSpec arg;
  arg.text = cursor.text();
  std::string_view text = arg.text;
  if (!text.empty() && text.back() == '?') {
    arg.optional = true;
    text.remove_suffix(1);
  }
  const auto prefixed = [&](std::string_view prefix, uint32_t kind) {
    if (text.substr(0, prefix.size()) != prefix) return false;
    arg.kind = kind;
    text.remove_prefix(prefix.size());
    return true;
  };
  if (read_indexed(text, "in", &arg.index)) {
    arg.kind = NETCL_ARG_INPUT;
  } else if (read_indexed(text, "out", &arg.index)) {
    arg.kind = NETCL_ARG_OUTPUT;
  } else if (read_indexed(text, "scratch", &arg.index)) {
    arg.kind = NETCL_ARG_SCRATCH;
    if (arg.index >= n_scratch) {
      cursor.fail("the variant has " + std::to_string(n_scratch) + " scratch buffers");
    }
  } else if (prefixed("local:", NETCL_ARG_LOCAL) || prefixed("i32:", NETCL_ARG_I32) ||
             prefixed("i64:", NETCL_ARG_I64)) {
    arg.expr = cursor.parsed([&] { return Expr::parse(text); });
  } else if (prefixed("f32:", NETCL_ARG_F32) || prefixed("i32x8:", NETCL_ARG_I32X8)) {
    if (text.empty()) cursor.fail("the attribute's name is missing");
    arg.name = std::string(text);
  } else {
    cursor.fail("unknown argument '" + arg.text +
                "'; known: in0 out0 scratch0 local:EXPR i32:EXPR i64:EXPR f32:NAME i32x8:NAME");
  }
  const bool may_be_absent =
      arg.kind == NETCL_ARG_INPUT || arg.kind == NETCL_ARG_F32 || arg.kind == NETCL_ARG_I32X8;
  if (arg.optional && !may_be_absent) cursor.fail("'?' is for in, f32: and i32x8: only");
  return arg;
}

void check_file_name(const Cursor& item) {
  if (item.text().empty() || item.text().front() == '/' ||
      item.text().find("..") != std::string::npos) {
    item.fail("expected a file in the plugin's directory");
  }
}

LaunchSpec read_launch(const Cursor& cursor, size_t n_scratch) {
  cursor.allow({"sources", "entry", "defines", "options", "args", "global", "local", "if"});
  LaunchSpec out;
  cursor.at("sources").elements([&](const Cursor& item) {
    check_file_name(item);
    out.sources.push_back(item.text());
  });
  if (out.sources.empty()) cursor.at("sources").fail("expected at least one file");
  out.entry = cursor.at("entry").filled_text();
  if (cursor.has("options")) out.options = cursor.at("options").filled_text();
  if (cursor.has("defines")) {
    cursor.at("defines").members([&](const std::string& name, const Cursor& value) {
      if (name.empty() || name.find('\n') != std::string::npos) value.fail("bad macro name");
      out.defines.emplace_back(name, value.filled_text());
    });
  }
  cursor.at("args").elements(
      [&](const Cursor& item) { out.args.push_back(read_arg(item, n_scratch)); });
  out.global = read_exprs(cursor.at("global"));
  if (out.global.empty() || out.global.size() > 3)
    cursor.at("global").fail("expected 1 to 3 sizes");
  if (cursor.has("local")) {
    out.local = read_exprs(cursor.at("local"));
    if (out.local.size() != out.global.size()) {
      cursor.at("local").fail("expected as many sizes as in global");
    }
  }
  if (cursor.has("if")) out.condition = cursor.at("if").expr();
  return out;
}

TunableSpec read_tunable(const std::string& name, const Cursor& cursor) {
  const bool word = !name.empty() && name.find_first_not_of(kNameLetters) == std::string::npos &&
                    (name[0] < '0' || name[0] > '9');
  if (!word) cursor.fail("expected a name of letters, digits and '_'");
  cursor.allow({"values", "default"});
  TunableSpec out{name, {}, cursor.at("default").expr()};
  cursor.at("values").elements([&](const Cursor& item) { out.values.push_back(item.integer()); });
  if (out.values.empty()) cursor.at("values").fail("expected at least one value");
  return out;
}

VariantSpec read_variant(const Cursor& cursor) {
  cursor.allow({"id", "needs", "when", "prefer", "tunables", "let", "scratch", "launches"});
  VariantSpec out;
  out.id = cursor.at("id").text();
  if (out.id.empty()) cursor.at("id").fail("expected a name");
  if (cursor.has("needs")) out.needs = cursor.at("needs").text();
  if (cursor.has("when")) out.when = cursor.at("when").expr();
  if (cursor.has("prefer")) out.prefer = cursor.at("prefer").expr();
  if (cursor.has("tunables")) {
    cursor.at("tunables").members([&](const std::string& name, const Cursor& value) {
      out.tunables.push_back(read_tunable(name, value));
    });
  }
  if (cursor.has("let")) {
    cursor.at("let").members([&](const std::string& name, const Cursor& value) {
      out.let.emplace_back(name, value.expr());
    });
  }
  if (cursor.has("scratch")) out.scratch = read_exprs(cursor.at("scratch"));
  cursor.at("launches").elements([&](const Cursor& item) {
    out.launches.push_back(read_launch(item, out.scratch.size()));
  });
  if (out.launches.empty()) cursor.at("launches").fail("expected at least one launch");
  return out;
}

void read_table(const Cursor& cursor,
                std::map<std::string, std::vector<VariantSpec>, std::less<>>* out) {
  cursor.members([&](const std::string& ops, const Cursor& list) {
    std::vector<VariantSpec> variants;
    list.elements([&](const Cursor& item) {
      VariantSpec variant = read_variant(item);
      for (const VariantSpec& other : variants) {
        if (other.id == variant.id) item.fail("two variants have the id \"" + other.id + "\"");
      }
      variants.push_back(std::move(variant));
    });
    if (variants.empty()) list.fail("expected at least one variant");
    std::istringstream names(ops);
    for (std::string op; names >> op;) {
      if (!out->emplace(op, variants).second) list.fail("the op \"" + op + "\" is listed twice");
    }
  });
}

}  // namespace

VariantFile read_variants(std::string_view text, const std::string& file) {
  Json json;
  try {
    json = Json::parse(text);
  } catch (const Json::parse_error& e) {
    throw plugin::Failure(NETCL_E_ARG, file + ": not JSON: " + e.what());
  }
  const Cursor top(json, file, "");
  top.allow({"files", "ops", "families"});
  VariantFile out;
  if (top.has("files")) {
    top.at("files").elements([&](const Cursor& item) {
      check_file_name(item);
      out.files.push_back(item.text());
    });
  }
  if (top.has("ops")) read_table(top.at("ops"), &out.ops);
  if (top.has("families")) read_table(top.at("families"), &out.families);
  if (out.ops.empty() && out.families.empty() && out.files.empty()) {
    top.fail("expected \"ops\", \"families\" or \"files\"");
  }
  return out;
}

void merge_variants(VariantFile part, const std::string& file, VariantFile* out) {
  const auto move_into = [&](auto& from, auto* to) {
    for (auto& [op, variants] : from) {
      if (!to->emplace(op, std::move(variants)).second) {
        throw plugin::Failure(NETCL_E_ARG, file + ": \"" + op + "\" is listed in another file too");
      }
    }
  };
  if (!part.files.empty()) {
    throw plugin::Failure(NETCL_E_ARG, file + ": files: only variants.json may name further files");
  }
  move_into(part.ops, &out->ops);
  move_into(part.families, &out->families);
}

}  // namespace pack
}  // namespace netcl
