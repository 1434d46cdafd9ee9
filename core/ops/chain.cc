#include "core/ops/chain.h"

#include <algorithm>
#include <cstdlib>

#include "core/base/error.h"
#include "core/base/text.h"

namespace netcl {

namespace {

[[noreturn]] void bad(const std::string& text, const std::string& why) {
  fail(ErrorCode::kUsage, "chain: ", why, " in \"", text, "\"");
}

size_t number_behind(const std::string& word) {
  char* end = nullptr;
  const unsigned long out = std::strtoul(word.c_str() + 1, &end, 10);
  if (word.size() < 2 || *end != '\0') bad(word, "expected x or t and a number");
  return out;
}

ChainOperand parse_operand(const std::string& word, size_t step) {
  const ChainOperand out{word[0] == 'x', number_behind(word)};
  if (word[0] != 'x' && word[0] != 't') bad(word, "expected an input or an earlier step");
  if (out.input ? out.index >= Chain::kMostInputs : out.index >= step)
    bad(word, "there is no such operand");
  return out;
}

Attrs::Item parse_value(const OpRow& row, const std::string& key, const std::string& text) {
  for (const AttrRule& rule : row.attrs) {
    if (rule.key == key && rule.def && !std::holds_alternative<std::string>(*rule.def))
      return std::strtod(text.c_str(), nullptr);
  }
  return text;
}

// "name(a,b,key=value)".
ChainStep parse_step(const std::string& text, size_t number) {
  const size_t open = text.find('(');
  if (open == std::string::npos || text.back() != ')') bad(text, "expected op(operands)");
  ChainStep out;
  out.op = &find_op(text.substr(0, open));
  if (out.op->family != "elementwise" && out.op->name != "full")
    bad(text, out.op->name + " is not elementwise");
  Attrs attrs;
  for (const std::string& word : split(text.substr(open + 1, text.size() - open - 2), ',')) {
    if (word.empty()) continue;
    const size_t equal = word.find('=');
    if (equal == std::string::npos) {
      out.operands.push_back(parse_operand(word, number));
    } else {
      const std::string key = word.substr(0, equal);
      attrs.set(key, parse_value(*out.op, key, word.substr(equal + 1)));
    }
  }
  if (out.op->name == "full") attrs.set("shape", Shape{});
  out.attrs = complete_attrs(*out.op, attrs);
  return out;
}

std::vector<int64_t> parse_list(const std::string& text) {
  std::vector<int64_t> out;
  for (const std::string& word : split(text, ',')) out.push_back(std::atoll(word.c_str()));
  return out;
}

std::string list_text(const std::vector<int64_t>& values) {
  std::vector<std::string> words;
  for (const int64_t v : values) words.push_back(std::to_string(v));
  return join(words, ",");
}

// "cut(2,1,2)axes(0,2,1,3)".
ChainView parse_view(const std::string& text) {
  ChainView out;
  for (size_t at = 0; at < text.size();) {
    const size_t open = text.find('(', at), close = text.find(')', at);
    if (open == std::string::npos || close == std::string::npos || close < open)
      bad(text, "expected cut(axis,first,end) or axes(order)");
    const std::string name = text.substr(at, open - at);
    if (name != "cut" && name != "axes") bad(text, "expected cut or axes");
    (name == "cut" ? out.cut : out.axes) = parse_list(text.substr(open + 1, close - open - 1));
    at = close + 1;
  }
  if (!out.cut.empty() && out.cut.size() != 3) bad(text, "cut has an axis, a first and an end");
  return out;
}

}  // namespace

Chain Chain::parse(const std::string& program, const std::string& views) {
  Chain out;
  if (program != "x0") {
    for (const std::string& text : split(program, ';'))
      out.steps.push_back(parse_step(text, out.steps.size()));
  }
  for (const std::string& text : split(views, ';')) {
    if (text.empty()) continue;
    const size_t colon = text.find(':');
    if (colon == std::string::npos) bad(views, "expected the number of an input and a colon");
    out.views[static_cast<size_t>(std::atoll(text.c_str()))] = parse_view(text.substr(colon + 1));
  }
  return out;
}

std::string Chain::program() const {
  if (steps.empty()) return "x0";
  std::vector<std::string> texts;
  for (const ChainStep& step : steps) {
    std::vector<std::string> words;
    for (const ChainOperand& o : step.operands)
      words.push_back((o.input ? "x" : "t") + std::to_string(o.index));
    for (const auto& [key, item] : step.attrs.items()) {
      if (key != "shape") words.push_back(Attrs{{key, item}}.str());
    }
    texts.push_back(step.op->name + "(" + join(words, ",") + ")");
  }
  return join(texts, ";");
}

std::string Chain::views_text() const {
  std::vector<std::string> texts;
  for (const auto& [input, view] : views) {
    if (view.plain()) continue;
    texts.push_back(str_cat(input, ":", view.cut.empty() ? "" : "cut(" + list_text(view.cut) + ")",
                            view.axes.empty() ? "" : "axes(" + list_text(view.axes) + ")"));
  }
  return join(texts, ";");
}

const ChainView& Chain::view(size_t input) const {
  static const ChainView kPlain;
  const auto found = views.find(input);
  return found == views.end() ? kPlain : found->second;
}

std::vector<TensorDesc> Chain::infer(const std::vector<TensorDesc>& in) const {
  std::vector<TensorDesc> seen, out;
  for (size_t i = 0; i < in.size(); ++i)
    seen.push_back({in[i].dtype, viewed(view(i), in[i].shape)});
  for (const ChainStep& step : steps) {
    std::vector<TensorDesc> operands;
    for (const ChainOperand& o : step.operands) {
      NETCL_CHECK(!o.input || o.index < seen.size(), ErrorCode::kUsage, "chain: there is no input ",
                  o.index);
      operands.push_back(o.input ? seen[o.index] : out[o.index]);
    }
    out.push_back(step.op->infer({*step.op, operands, step.attrs})[0]);
  }
  if (steps.empty()) out.push_back(seen.at(0));
  return out;
}

Shape viewed(const ChainView& view, const Shape& shape) {
  std::vector<int64_t> dims = shape.dims();
  if (!view.cut.empty()) {
    const auto axis = static_cast<size_t>(view.cut[0]);
    NETCL_CHECK(axis < dims.size() && view.cut[1] >= 0 && view.cut[1] <= view.cut[2] &&
                    view.cut[2] <= dims[axis],
                ErrorCode::kUsage, "chain: the cut does not lie within ", shape.str());
    dims[axis] = view.cut[2] - view.cut[1];
  }
  if (view.axes.empty()) return Shape(std::move(dims));
  std::vector<int64_t> out;
  std::vector<bool> seen(dims.size());
  for (const int64_t axis : view.axes) {
    NETCL_CHECK(
        axis >= 0 && static_cast<size_t>(axis) < dims.size() && !seen[static_cast<size_t>(axis)],
        ErrorCode::kUsage, "chain: axes are not an order of those of ", shape.str());
    seen[static_cast<size_t>(axis)] = true;
    out.push_back(dims[static_cast<size_t>(axis)]);
  }
  NETCL_CHECK(out.size() == dims.size(), ErrorCode::kUsage, "chain: axes name ", out.size(),
              " axes of ", shape.str());
  return Shape(std::move(out));
}

}  // namespace netcl
