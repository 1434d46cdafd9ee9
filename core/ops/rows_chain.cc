// Row of chain: elementwise ops one after the other (chain.h). What lies between two steps is
// rounded to its type, as if it had been stored.
#include <algorithm>
#include <cctype>
#include <sstream>

#include "core/base/error.h"
#include "core/ops/chain.h"
#include "core/ops/elementwise.h"
#include "core/ops/reference/iterate.h"
#include "core/ops/rows.h"

namespace netcl {

namespace {

Chain chain_of(const OpCall& call) {
  return Chain::parse(call.attrs.text("program"), call.attrs.text("views"));
}

std::vector<TensorDesc> infer_chain(const OpCall& call) {
  const TensorDesc last = chain_of(call).infer(call.in).back();
  const Shape& shape = call.attrs.shape("shape");
  NETCL_CHECK(broadcast_shapes(last.shape, shape, "result and shape") == shape, ErrorCode::kUsage,
              "the result ", last.str(), " does not stretch to ", shape.str());
  return {{last.dtype, shape}};
}

// Where the elements of an input lie for those of the output.
struct Access {
  int64_t offset = 0;
  std::vector<int64_t> strides;
};

Access access_of(const ChainView& view, const Shape& input, const Shape& out) {
  std::vector<int64_t> plain(input.rank(), 1);
  for (size_t d = input.rank(); d-- > 1;) plain[d - 1] = plain[d] * input[d];
  Access a;
  if (!view.cut.empty()) a.offset = view.cut[1] * plain[static_cast<size_t>(view.cut[0])];
  const Shape seen = viewed(view, input);
  a.strides.assign(out.rank(), 0);
  for (size_t d = 0; d < seen.rank(); ++d) {
    const size_t from = view.axes.empty() ? d : static_cast<size_t>(view.axes[d]);
    if (seen[d] != 1) a.strides[out.rank() - seen.rank() + d] = plain[from];
  }
  return a;
}

const char* held_type(DType dtype) {
  if (is_float(dtype)) return "float";
  return dtype == DType::kI64 ? "long" : "int";
}

std::string literal(double value) {
  std::ostringstream out;
  out.precision(9);
  out << std::showpoint << value << "f";
  return "(" + out.str() + ")";
}

// The expression with its names (x0, p0 ...) replaced.
std::string replaced(const std::string& expression,
                     const std::vector<std::pair<std::string, std::string>>& names) {
  const auto is_word = [](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || c == '.';
  };
  std::string out;
  for (size_t at = 0; at < expression.size();) {
    size_t end = at;
    while (end < expression.size() && is_word(expression[end])) ++end;
    if (end == at) {
      out += expression[at++];
      continue;
    }
    const std::string word = expression.substr(at, end - at);
    const auto found = std::find_if(names.begin(), names.end(),
                                    [&](const auto& name) { return name.first == word; });
    out += found == names.end() ? word : found->second;
    at = end;
  }
  return out;
}

// What a result becomes when it is stored and loaded again.
std::string rounded(DType dtype, const std::string& value) {
  return std::string("HOLD(") + dtype_name(dtype) + ")(" + value + ")";
}

std::string step_code(const ChainStep& step, const std::vector<TensorDesc>& in,
                      const std::vector<TensorDesc>& results, size_t number) {
  const DType to = results[number].dtype;
  const std::string begin = str_cat("const ", held_type(to), " t", number, " = ");
  if (step.op->name == "full")
    return begin + rounded(to, literal(step.attrs.number("value"))) + "; ";
  const auto dtype_of = [&](const ChainOperand& o) {
    return o.input ? in[o.index].dtype : results[o.index].dtype;
  };
  bool any_float = false, any_long = false;
  for (const ChainOperand& o : step.operands) {
    any_float = any_float || is_float(dtype_of(o));
    any_long = any_long || dtype_of(o) == DType::kI64;
  }
  const std::string type = any_float ? "float" : any_long ? "long" : "int";
  std::vector<std::pair<std::string, std::string>> names;
  for (size_t i = 0; i < step.operands.size(); ++i) {
    const ChainOperand& o = step.operands[i];
    const std::string name = (o.input ? "x" : "t") + std::to_string(o.index);
    names.emplace_back("x" + std::to_string(i),
                       type == held_type(dtype_of(o)) ? name : "((" + type + ")" + name + ")");
  }
  for (size_t i = 0; i < step.op->parameters.size(); ++i)
    names.emplace_back("p" + std::to_string(i), literal(step.attrs.number(step.op->parameters[i])));
  return begin + rounded(to, "(" + type + ")(" + replaced(step.op->expression, names) + ")") + "; ";
}

void chain_facts(const OpCall& call, Attrs& facts) {
  const Chain chain = chain_of(call);
  const std::vector<TensorDesc> results = chain.infer(call.in);
  std::string code;
  for (size_t i = 0; i < chain.steps.size(); ++i)
    code += step_code(chain.steps[i], call.in, results, i);
  facts.set("code", code);
  facts.set("result",
            chain.steps.empty() ? std::string("x0") : "t" + std::to_string(chain.steps.size() - 1));
  const Shape& shape = call.attrs.shape("shape");
  facts.set("n", shape.num_elements());
  std::vector<std::vector<int64_t>> strides;
  bool whole = true;
  std::vector<int64_t> offsets(NETCL_MAX_RANK, 0);
  for (size_t i = 0; i < call.in.size(); ++i) {
    const Access a = access_of(chain.view(i), call.in[i].shape, shape);
    strides.push_back(a.strides);
    offsets[i] = a.offset;
    whole = whole && call.in[i].shape.num_elements() == shape.num_elements();
  }
  access_facts(shape, strides, whole, Chain::kMostInputs, facts);
  facts.set("offsets", offsets);
}

HostTensor seen_by_host(const HostTensor& x, const ChainView& view) {
  if (view.plain()) return x;
  const Shape shape = viewed(view, x.desc.shape);
  const Access a = access_of(view, x.desc.shape, shape);
  HostTensor out{{x.desc.dtype, shape}, {}};
  out.data.resize(static_cast<size_t>(shape.num_elements()));
  for_each_strided(shape, {a.strides}, [&](int64_t e, const std::vector<int64_t>& at) {
    out.data[static_cast<size_t>(e)] = x.data[static_cast<size_t>(a.offset + at[0])];
  });
  return out;
}

void chain_reference(const OpCall& call, const std::vector<const HostTensor*>& in,
                     std::vector<HostTensor>& out) {
  const Chain chain = chain_of(call);
  const std::vector<TensorDesc> results = chain.infer(call.in);
  std::vector<HostTensor> seen, made;
  for (size_t i = 0; i < in.size(); ++i) seen.push_back(seen_by_host(*in[i], chain.view(i)));
  for (size_t s = 0; s < chain.steps.size(); ++s) {
    const ChainStep& step = chain.steps[s];
    std::vector<const HostTensor*> operands;
    std::vector<TensorDesc> descs;
    for (const ChainOperand& o : step.operands) {
      operands.push_back(o.input ? &seen[o.index] : &made[o.index]);
      descs.push_back(operands.back()->desc);
    }
    std::vector<HostTensor> result(1);
    result[0].desc = results[s];
    result[0].data.resize(static_cast<size_t>(results[s].shape.num_elements()));
    step.op->reference({*step.op, descs, step.attrs}, operands, result);
    made.push_back(std::move(result[0]));
  }
  const HostTensor& last = chain.steps.empty() ? seen[0] : made.back();
  const Access a = access_of({}, last.desc.shape, out[0].desc.shape);
  for_each_strided(out[0].desc.shape, {a.strides}, [&](int64_t e, const std::vector<int64_t>& at) {
    out[0].data[static_cast<size_t>(e)] = last.data[static_cast<size_t>(at[0])];
  });
}

OpCase chain_case(const std::vector<Shape>& in, const std::string& program, const Shape& shape,
                  const std::string& views = "") {
  OpCase c;
  for (const Shape& s : in) c.in.push_back({DType::kF32, s});
  c.attrs = {{"program", program}, {"views", views}, {"shape", shape}};
  return c;
}

std::vector<OpCase> chain_cases() {
  const std::string two = "add(x0,x1);tanh(t0)", many =
                                                     "mul(x0,x1);add(t0,x2);max(t1,x3);"
                                                     "sub(t2,x4);mul(t3,x5);scale(t4,factor=0.5,"
                                                     "offset=0.25)";
  std::vector<OpCase> out;
  for (const Shape& s : {Shape{1}, Shape{}, Shape{7}, Shape{3, 5}, Shape{0, 3}, Shape{1031}})
    out.push_back(chain_case({s, s}, two, s));
  out.push_back(chain_case({{13, 17}, {17}}, two, {13, 17}));     // rows
  out.push_back(chain_case({{13, 1}, {13, 17}}, two, {13, 17}));  // columns
  out.push_back(chain_case({{1}, {3, 300}}, two, {3, 300}));      // a number
  out.push_back(chain_case({{2, 3, 4, 5}, {3, 1, 5}}, two, {2, 3, 4, 5}));
  out.push_back(chain_case({{5, 1}, {1, 3}}, two, {2, 5, 3}));  // stretched at the end
  out.push_back(chain_case({{3, 5}, {3, 5}, {5}, {1}, {3, 1}, {3, 5}}, many, {3, 5}));
  out.push_back(chain_case({{2, 3, 4, 40}}, "x0", {2, 4, 3, 40}, "0:axes(0,2,1,3)"));
  out.push_back(chain_case({{31, 37}}, "neg(x0)", {37, 31}, "0:axes(1,0)"));
  out.push_back(
      chain_case({{2, 3, 3, 2, 16}}, "x0", {2, 2, 3, 1, 16}, "0:cut(2,1,2)axes(0,3,1,2,4)"));
  out.push_back(chain_case({{4, 9}, {4, 3}}, two, {4, 3}, "0:cut(1,3,6)"));
  out.push_back(chain_case({{3, 5}},
                           "relu(x0);full(value=0.75);mul(t0,t1);cast(t2,dtype=bf16);"
                           "gelu(t3)",
                           {3, 5}));
  out.push_back(chain_case({{3, 5}, {3, 5}}, "less(x0,x1);where(t0,x1,x0)", {3, 5}));
  OpCase integers = chain_case({{3, 5}, {3, 5}},
                               "mul(x0,x1);cast(t0,dtype=f32);scale(t1,factor=0.5,"
                               "offset=0)",
                               {3, 5});
  for (TensorDesc& desc : integers.in) desc.dtype = DType::kI32;
  integers.int_high = {100, 100};
  out.push_back(integers);
  return out;
}

}  // namespace

void add_chain_rows(std::vector<OpRow>& rows) {
  OpRow row;
  row.name = "chain";
  row.family = "chain";
  row.min_in = 1;
  row.max_in = Chain::kMostInputs;
  row.attrs = {{"program", std::nullopt}, {"views", std::string()}, {"shape", std::nullopt}};
  row.infer = infer_chain;
  row.facts = chain_facts;
  row.reference = chain_reference;
  row.half_storage = true;
  row.doc = {
      "elementwise ops one after the other, by their program, over views of the inputs: cut, "
      "with other axes, broadcast",
      "", ""};
  row.cases = chain_cases();
  rows.push_back(std::move(row));
}

}  // namespace netcl
