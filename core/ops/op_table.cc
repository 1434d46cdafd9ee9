// The op table: its families in order, look-up by name, and the check that no row lacks a part.
// Threads: any; the table is built once, at first use, and never changes.
#include <algorithm>
#include <set>
#include <unordered_map>

#include "core/base/error.h"
#include "core/base/text.h"
#include "core/ops/op.h"
#include "core/ops/rows.h"

namespace netcl {

namespace {

struct Family {
  const char* page;  // its title among the generated pages
  void (*add)(std::vector<OpRow>& rows);
};

constexpr Family kFamilies[] = {
    {"Elementwise: one input", add_unary_rows},
    {"Elementwise: two and three inputs", add_binary_rows},
    {"Activations", add_activation_rows},
    {"Chains", add_chain_rows},
    {"Layout", add_layout_rows},
    {"Slices, joins and windows", add_index_rows},
    {"Indexing", add_gather_rows},
    {"Reductions", add_reduce_rows},
    {"Matrix product", add_matmul_rows},
    {"Attention", add_attention_rows},
    {"Softmax", add_softmax_rows},
    {"Cross entropy", add_cross_entropy_rows},
    {"Losses", add_loss_rows},
    {"Random", add_random_rows},
    {"Norms over rows", add_norm_rows},
    {"Batch norm", add_batch_norm_rows},
    {"Collectives", add_collective_rows},
    {"Recurrent cells", add_recurrent_rows},
    {"Optimiser steps", add_optim_rows},
    {"Convolution", add_conv_rows},
    {"Pooling", add_pool_rows},
    {"Around the optimiser step", add_update_rows},
};

std::vector<OpRow> build_table() {
  std::vector<OpRow> rows;
  for (const Family& family : kFamilies) {
    const size_t begin = rows.size();
    family.add(rows);
    for (size_t i = begin; i < rows.size(); ++i) rows[i].page = family.page;
  }
  return rows;
}

// Built before it is checked: rows of chains look others up.
const std::vector<OpRow>& unchecked_table() {
  static const std::vector<OpRow> table = build_table();
  return table;
}

std::unordered_map<std::string, const OpRow*> index_rows(const std::vector<OpRow>& rows) {
  std::unordered_map<std::string, const OpRow*> index;
  for (const OpRow& row : rows) index.emplace(row.name, &row);
  return index;
}

void check_parts(const OpRow& row) {
  const auto lacks = [&row](bool missing, const char* part) {
    NETCL_CHECK(!missing, ErrorCode::kInternal, "op table: row \"", row.name, "\" lacks ", part);
  };
  lacks(row.name.empty(), "a name");
  lacks(!row.infer, "a shape rule (infer)");
  lacks(!row.reference, "a double-precision reference");
  lacks(row.cases.empty(), "test cases");
  lacks(row.min_in > row.max_in, "a valid number of inputs");
  lacks(!row.view && !row.collective && !row.facts, "kernel facts");
  const bool elementwise = row.family == "elementwise";
  lacks(elementwise && row.expression.empty(), "an OpenCL expression");
  lacks(!elementwise && !row.expression.empty(), "the family of its expression");
  lacks(row.parameters.size() > 2, "room for its parameters (p0 and p1 only)");
  for (const std::string& key : row.parameters) {
    lacks(std::none_of(row.attrs.begin(), row.attrs.end(),
                       [&key](const AttrRule& rule) { return rule.key == key; }),
          ("the attribute of its parameter " + key).c_str());
  }
}

void check_case(const OpRow& row, const OpCase& c, size_t number) {
  try {
    NETCL_CHECK(c.in.size() >= row.min_in && c.in.size() <= row.max_in, ErrorCode::kInternal,
                "it has ", c.in.size(), " inputs");
    for (size_t i = 0; i < c.in.size(); ++i) {
      const bool fixed =
          std::any_of(c.fixed.begin(), c.fixed.end(), [i](const auto& f) { return f.first == i; });
      NETCL_CHECK(is_float(c.in[i].dtype) || fixed || (i < c.int_high.size() && c.int_high[i] > 0),
                  ErrorCode::kInternal, "integer input ", i, " has no int_high");
    }
    for (const auto& [i, values] : c.fixed) {
      NETCL_CHECK(
          i < c.in.size() && static_cast<int64_t>(values.size()) == c.in[i].shape.num_elements(),
          ErrorCode::kInternal, "the fixed values of input ", i, " do not fit it");
    }
    const Attrs attrs = complete_attrs(row, c.attrs);
    const OpCall call{row, c.in, attrs};
    const size_t outputs = row.infer(call).size();
    NETCL_CHECK(row.aliases.empty() || row.aliases.size() >= outputs, ErrorCode::kInternal,
                "aliases name ", row.aliases.size(), " of ", outputs, " outputs");
  } catch (const Error& e) {
    fail(ErrorCode::kInternal, "op table: case ", number, " of row \"", row.name,
         "\": ", e.message());
  }
}

}  // namespace

const std::vector<OpRow>& op_table() {
  static const bool checked = (check_op_table(unchecked_table()), true);
  (void)checked;
  return unchecked_table();
}

const OpRow& find_op(const std::string& name) {
  static const std::unordered_map<std::string, const OpRow*> index = index_rows(unchecked_table());
  const auto it = index.find(name);
  if (it != index.end()) return *it->second;
  std::vector<std::string> names;
  for (const OpRow& row : op_table()) names.push_back(row.name);
  fail(ErrorCode::kUsage, "unknown op \"", name, "\"", suggest(name, names));
}

Attrs complete_attrs(const OpRow& row, const Attrs& attrs) {
  std::vector<std::string> keys;
  for (const AttrRule& rule : row.attrs) keys.push_back(rule.key);
  for (const auto& [key, item] : attrs.items()) {
    NETCL_CHECK(std::find(keys.begin(), keys.end(), key) != keys.end(), ErrorCode::kUsage,
                "unknown attribute \"", key, "\"",
                keys.empty() ? "; this op takes none" : suggest(key, keys));
  }
  Attrs out;
  for (const AttrRule& rule : row.attrs) {
    const auto given = std::find_if(attrs.items().begin(), attrs.items().end(),
                                    [&rule](const auto& item) { return item.first == rule.key; });
    if (given == attrs.items().end()) {
      NETCL_CHECK(rule.def.has_value(), ErrorCode::kUsage, "attribute \"", rule.key,
                  "\" is missing");
      out.set(rule.key, *rule.def);
      continue;
    }
    Attrs::Item item = given->second;
    const auto* integer = std::get_if<int64_t>(&item);
    const auto* list = std::get_if<std::vector<int64_t>>(&item);
    if (integer != nullptr && rule.def && std::holds_alternative<double>(*rule.def)) {
      item = static_cast<double>(*integer);
    } else if (list != nullptr && rule.key == "shape") {
      item = Shape(std::vector<int64_t>(*list));
    }
    NETCL_CHECK(!rule.def || rule.def->index() == item.index(), ErrorCode::kUsage, "attribute \"",
                rule.key, "\" is of the wrong kind; its default is ",
                Attrs{{rule.key, *rule.def}}.str());
    out.set(rule.key, std::move(item));
  }
  return out;
}

void check_op_table(const std::vector<OpRow>& rows) {
  std::set<std::string> names;
  for (const OpRow& row : rows) {
    check_parts(row);
    NETCL_CHECK(names.insert(row.name).second, ErrorCode::kInternal, "op table: row \"", row.name,
                "\" appears twice");
    for (size_t i = 0; i < row.cases.size(); ++i) check_case(row, row.cases[i], i);
  }
}

}  // namespace netcl
