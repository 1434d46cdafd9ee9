// Graphs from text, in the form of Graph::str(), so that a test of a pass is a text before and one
// after it. Values are numbered from v0 on in the order of the lines; attributes with a default may
// be left out; what follows " : " is checked, or left out where a node makes it. Threads: any.
#ifndef NETCL_TESTS_GRAPH_GRAPH_TEXT_H_
#define NETCL_TESTS_GRAPH_GRAPH_TEXT_H_

#include <cstdlib>
#include <string>
#include <vector>

#include "core/base/error.h"
#include "core/base/text.h"
#include "core/graph/graph.h"

namespace netcl {
namespace testing {

// "[B,64]", "[16B]", "[]".
inline Shape shape_from_text(const std::string& text) {
  std::vector<int64_t> dims;
  for (const std::string& word : split(text.substr(1, text.size() - 2), ',')) {
    if (word.empty()) continue;
    const bool symbolic = word.back() == 'B';
    const int64_t n = word == "B" ? 1 : std::atoll(word.c_str());
    dims.push_back(symbolic ? -n : n);
  }
  return Shape(std::move(dims));
}

inline TensorDesc desc_from_text(const std::string& text) {
  const size_t open = text.find('[');
  return {dtype_named(text.substr(0, open)), shape_from_text(text.substr(open))};
}

inline std::vector<ValueId> values_from_text(const std::string& text) {
  std::vector<ValueId> out;
  for (const std::string& word : split(text, ',')) {
    const size_t v = word.find('v');
    if (v != std::string::npos)
      out.push_back(static_cast<ValueId>(std::atoi(word.c_str() + v + 1)));
  }
  return out;
}

inline Attrs::Item attr_from_text(const OpRow& row, const std::string& key,
                                  const std::string& text) {
  for (const AttrRule& rule : row.attrs) {
    if (rule.key == key && rule.def && std::holds_alternative<std::string>(*rule.def)) return text;
  }
  if (key == "shape") return shape_from_text(text);
  if (text.empty() || (text[0] != '[' && text.find_first_not_of("0123456789.e-+") != text.npos))
    return text;
  if (text[0] == '[') return shape_from_text(text).dims();
  if (text.find_first_of(".e") == text.npos) return int64_t{std::atoll(text.c_str())};
  return std::strtod(text.c_str(), nullptr);
}

inline void read_node(Graph& graph, const std::string& line) {
  const size_t equal = line.find(" = "), open = line.find('(', equal);
  const size_t close = line.find(')', open), colon = line.find(" : ", close);
  const std::string op = line.substr(equal + 3, open - equal - 3);
  Attrs attrs;
  for (const std::string& word : split(line.substr(close + 1, colon - close - 1), ' ')) {
    const size_t at = word.find('=');
    if (at == std::string::npos) continue;
    const std::string key = word.substr(0, at);
    attrs.set(key, attr_from_text(find_op(op), key, word.substr(at + 1)));
  }
  const auto made =
      graph.apply(op, values_from_text(line.substr(open + 1, close - open - 1)), attrs);
  NETCL_CHECK(made == values_from_text(line.substr(0, equal)), ErrorCode::kInternal,
              "the numbers do not follow: ", line);
  NETCL_CHECK(colon == std::string::npos || line.substr(colon + 3) == graph.desc(made[0]).str(),
              ErrorCode::kInternal, "it is ", graph.desc(made[0]).str(), ": ", line);
}

inline Graph read_graph(const std::string& text) {
  Graph graph;
  for (std::string line : split(text, '\n')) {
    line.erase(0, line.find_first_not_of(' '));
    if (line.empty()) continue;
    const size_t external = line.find(" = external "), colon = line.find(" : ");
    if (line.rfind("output ", 0) == 0) {
      graph.output(line.substr(7, line.find(" = ") - 7),
                   values_from_text(line.substr(line.find(" = ")))[0]);
    } else if (external != std::string::npos) {
      graph.external(line.substr(external + 12, colon - external - 12),
                     desc_from_text(line.substr(colon + 3)));
    } else {
      read_node(graph, line);
    }
  }
  return graph;
}

// The same with the blanks before lines taken away, to be compared with Graph::str().
inline std::string graph_text(const std::string& text) {
  std::string out;
  for (std::string line : split(text, '\n')) {
    line.erase(0, line.find_first_not_of(' '));
    if (!line.empty()) out += line + "\n";
  }
  return out;
}

}  // namespace testing
}  // namespace netcl

#endif  // NETCL_TESTS_GRAPH_GRAPH_TEXT_H_
