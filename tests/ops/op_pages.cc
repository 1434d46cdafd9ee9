// Prints the pages of kernels/README.md on the op table, one a family: what each op means, its
// gradient rule, the variants that the generic set has for it, and how it is tested. Formulas and
// sources come from the rows' OpDoc; a gradient without words is printed as the rule records it.
//
// Usage: op_pages VARIANTS.json...
#include <cctype>
#include <cstdio>
#include <fstream>
#include <iostream>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>
#include <variant>

#include "core/graph/graph.h"
#include "core/ops/case_inputs.h"
#include "core/ops/op.h"

namespace netcl {
namespace testing {
namespace {
using nlohmann::json;

// Variants by op or "family NAME".
std::map<std::string, std::vector<std::string>> read_variants(int argc, char** argv) {
  std::map<std::string, std::vector<std::string>> out;
  const auto add = [&out](const std::string& op, const json& list) {
    for (const json& variant : list) out[op].push_back(variant.at("id"));
  };
  for (int i = 1; i < argc; ++i) {
    std::ifstream file(argv[i]);
    const json content = json::parse(file);
    const json ops = content.value("ops", json::object());
    const json families = content.value("families", json::object());
    for (const auto& [names, list] : ops.items()) {
      std::istringstream words(names);
      for (std::string op; words >> op;) add(op, list);
    }
    for (const auto& [family, list] : families.items()) add("family " + family, list);
  }
  return out;
}

std::string join(const std::vector<std::string>& items, const std::string& between) {
  std::string out;
  for (const std::string& item : items) out += (out.empty() ? "" : between) + item;
  return out;
}

// What a gradient rule records, as text: "mul(dy, y)".
class RulePrinter {
 public:
  explicit RulePrinter(const OpRow& row) : row_(row) {}

  std::string str() {
    if (!row_.gradient) return "none";
    const OpCase& c = first_case();
    std::vector<ValueId> in;
    std::vector<bool> needed;
    for (size_t i = 0; i < c.in.size(); ++i) {
      in.push_back(graph_.external("x" + std::to_string(i), c.in[i]));
      names_[in.back()] = c.in.size() == 1 ? "x" : "x" + std::to_string(i);
      needed.push_back(is_float(c.in[i].dtype));
    }
    const std::vector<ValueId> out = graph_.apply(row_.name, in, c.attrs);
    const Node node = graph_.nodes().back();
    own_ = node.attrs;
    std::vector<std::optional<ValueId>> dy;
    for (size_t k = 0; k < out.size(); ++k) {
      const std::string number = out.size() == 1 ? "" : std::to_string(k);
      names_[out[k]] = "y" + number;
      const TensorDesc desc = graph_.desc(out[k]);
      dy.push_back(std::nullopt);
      if (!is_float(desc.dtype)) continue;
      dy.back() = graph_.external("dy" + number, desc);
      names_[*dy.back()] = "dy" + number;
    }
    const size_t begin = graph_.nodes().size();
    const Grads dx = row_.gradient({graph_, node, dy, needed});
    for (size_t i = begin; i < graph_.nodes().size(); ++i) {
      for (size_t k = 0; k < graph_.nodes()[i].out.size(); ++k)
        made_[graph_.nodes()[i].out[k]] = {i, k};
    }
    std::vector<std::string> parts;
    for (size_t i = 0; i < dx.size(); ++i) {
      if (!dx[i]) continue;
      parts.push_back("d" + names_.at(in[i]) + " = " + text(*dx[i]));
    }
    return parts.empty() ? "0" : join(parts, "; ");
  }

 private:
  // The first case with elements: broadcasting rules show in the larger ones.
  const OpCase& first_case() const {
    for (const OpCase& c : row_.cases) {
      bool full = !c.in.empty();
      for (const TensorDesc& d : c.in) full = full && d.shape.num_elements() > 1;
      if (full) return c;
    }
    return row_.cases.at(0);
  }

  std::string text(ValueId value) const {
    const auto name = names_.find(value);
    if (name != names_.end()) return name->second;
    const auto [index, output] = made_.at(value);
    const Node& node = graph_.nodes()[index];
    if (node.op->view) return text(node.in[0]);
    if (node.op->name == "full") return number(node.attrs.number("value"));
    std::vector<std::string> in;
    for (const ValueId v : node.in) in.push_back(text(v));
    for (const std::string& attr : attributes(node)) in.push_back(attr);
    std::string out = node.op->name + "(" + join(in, ", ") + ")";
    if (node.out.size() > 1) out += "." + std::to_string(output);
    return out;
  }

  static std::string number(double value) {
    std::ostringstream out;
    out << value;
    return out.str();
  }

  // What is not the default: "factor=-0.5", or only "factor" if it is the op's own. Shapes and axes
  // belong to the case at hand.
  std::vector<std::string> attributes(const Node& node) const {
    std::vector<std::string> out;
    for (const auto& [key, item] : node.attrs.items()) {
      const auto* real = std::get_if<double>(&item);
      const auto* text = std::get_if<std::string>(&item);
      bool usual = real == nullptr && text == nullptr, own = false;
      for (const AttrRule& rule : node.op->attrs) usual |= rule.key == key && rule.def == item;
      for (const auto& [name, value] : own_.items()) own |= name == key && value == item;
      if (usual) continue;
      out.push_back(own ? key : key + "=" + (real != nullptr ? number(*real) : *text));
    }
    return out;
  }

  const OpRow& row_;
  Graph graph_;
  Attrs own_;  // of the op whose rule this is
  std::map<ValueId, std::string> names_;
  std::map<ValueId, std::pair<size_t, size_t>> made_;  // node and output
};

// Text inside of a table's cell.
std::string cell(std::string text) {
  std::string out;
  for (const char c : text) {
    if (c == '|') out += '\\';
    out += c == '\n' ? ' ' : c;
  }
  return out;
}

std::string formula(const OpRow& row) {
  if (!row.doc.formula.empty()) return row.doc.formula;
  if (row.view) return "the input under another shape";
  std::string out = row.expression;
  for (size_t i = 0; i < row.attrs.size(); ++i) {
    const std::string place = "p" + std::to_string(i);
    size_t at = 0;
    while ((at = out.find(place, at)) != std::string::npos) {
      const bool part = at > 0 && (std::isalnum(static_cast<unsigned char>(out[at - 1])) != 0);
      if (!part) out.replace(at, place.size(), row.attrs[i].key);
      at += 1;
    }
  }
  return "`" + out + "`";
}

std::string types(const OpRow& row) {
  std::set<std::string> names;
  for (const DType dtype : {DType::kF32, DType::kF16, DType::kBF16}) {
    for (const OpCase& c : typed_cases(row, dtype)) {
      for (const TensorDesc& d : c.in) names.insert(dtype_name(d.dtype));
    }
  }
  if (names.empty()) return "as its `dtype` says";
  return join({names.begin(), names.end()}, " ");
}

size_t num_cases(const OpRow& row) {
  size_t n = 0;
  for (const DType dtype : {DType::kF32, DType::kF16, DType::kBF16})
    n += typed_cases(row, dtype).size();
  return n;
}

void print_page(const std::string& page,
                const std::map<std::string, std::vector<std::string>>& variants) {
  std::printf("\n### %s\n", page.c_str());
  std::printf("| op | formula | gradient | variants | cases | source |\n");
  std::printf("| --- | --- | --- | --- | --- | --- |\n");
  for (const OpRow& row : op_table()) {
    if (row.page != page) continue;
    auto found = variants.find(row.name);
    if (found == variants.end()) found = variants.find("family " + row.family);
    const std::string kernels = row.view                  ? "a view"
                                : row.collective          ? "the group's transport"
                                : found == variants.end() ? "none"
                                                          : join(found->second, " ");
    const std::string gradient =
        row.doc.gradient.empty() ? RulePrinter(row).str() : row.doc.gradient;
    std::printf("| `%s` | %s | %s | %s | %zu: %s | %s |\n", row.name.c_str(),
                cell(formula(row)).c_str(), cell(gradient).c_str(), kernels.c_str(), num_cases(row),
                types(row).c_str(), cell(row.doc.source).c_str());
  }
}

int main_of(int argc, char** argv) {
  const auto variants = read_variants(argc, argv);
  std::vector<std::string> pages;
  size_t cases = 0;
  for (const OpRow& row : op_table()) {
    cases += num_cases(row);
    if (pages.empty() || pages.back() != row.page) pages.push_back(row.page);
  }
  std::printf(
      "%zu ops, %zu cases over their data types. Every case is checked against the double-"
      "precision reference in the row on every variant, and gradients against central "
      "differences in double precision.\n",
      op_table().size(), cases);
  for (const std::string& page : pages) print_page(page, variants);
  return 0;
}

}  // namespace
}  // namespace testing
}  // namespace netcl

int main(int argc, char** argv) {
  try {
    return netcl::testing::main_of(argc, argv);
  } catch (const std::exception& e) {
    std::cerr << e.what() << "\n";
    return 1;
  }
}
