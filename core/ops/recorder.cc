// Recorder::apply: the one way in which ops are written down. Threads: one per recorder.
#include "core/ops/recorder.h"

#include <algorithm>

#include "core/base/error.h"
#include "core/ops/fused.h"
#include "core/ops/op.h"

namespace netcl {

namespace {

// "matmul(f32[4,3], f32[5,2])": how messages name a call.
std::string call_text(const OpRow& row, const std::vector<TensorDesc>& in) {
  std::string out = row.name + "(";
  for (size_t i = 0; i < in.size(); ++i) out += (i > 0 ? ", " : "") + in[i].str();
  return out + ")";
}

void check_input_count(const OpRow& row, const std::vector<TensorDesc>& in) {
  if (row.min_in == row.max_in) {
    NETCL_CHECK(in.size() == row.min_in, ErrorCode::kUsage, "takes ", row.min_in,
                " inputs, was given ", in.size());
  }
  NETCL_CHECK(in.size() >= row.min_in && in.size() <= row.max_in, ErrorCode::kUsage, "takes ",
              row.min_in, " to ", row.max_in, " inputs, was given ", in.size());
}

// A guard against sizes that no machine holds, so that products of dimensions cannot wrap. Of a
// symbolic shape the elements for one sample count.
void require_possible(const TensorDesc& desc) {
  constexpr double kMost = 1e13;
  double elements = 1;
  for (const int64_t d : desc.shape.dims()) elements *= static_cast<double>(d < 0 ? -d : d);
  NETCL_CHECK(elements < kMost, ErrorCode::kUsage, "the output would be ", desc.str(),
              ", which is beyond any memory; make the layer or its input smaller");
}

}  // namespace

std::vector<ValueId> Recorder::autocast(const OpRow& row, std::vector<ValueId> in) {
  if (!autocast_ || row.name == "cast") return in;
  const auto stays_f32 = [&](size_t i) {
    return !row.half_storage || std::count(row.always_f32.begin(), row.always_f32.end(), i) > 0;
  };
  // Rows that follow take their inputs' type; the elementwise family promotes by itself.
  DType type = row.autocast == Autocast::kLow ? *autocast_ : DType::kF32;
  if (row.autocast == Autocast::kFollow) {
    if (row.family == "elementwise") return in;
    bool any_f32 = false;
    for (size_t i = 0; i < in.size(); ++i)
      any_f32 = any_f32 || (descs_[in[i]].dtype == DType::kF32 && !stays_f32(i));
    if (!any_f32) type = *autocast_;
  }
  for (size_t i = 0; i < in.size(); ++i) {
    const DType want = stays_f32(i) ? DType::kF32 : type;
    const DType have = descs_[in[i]].dtype;
    if (!is_float(have) || have == want) continue;
    in[i] = call("cast", {in[i]}, {{"dtype", std::string(dtype_name(want))}});
  }
  return in;
}

std::vector<ValueId> Recorder::apply(const std::string& op, const std::vector<ValueId>& given,
                                     Attrs attrs) {
  const OpRow& row = find_op(op);
  for (const ValueId id : given) {
    NETCL_CHECK(id < descs_.size(), ErrorCode::kUsage, op, ": value ", id,
                " is not of this recorder, which holds ", descs_.size(), " values");
  }
  const std::vector<ValueId> in = autocast(row, given);
  std::vector<TensorDesc> in_descs;
  for (const ValueId id : in) in_descs.push_back(descs_[id]);
  Node node;
  std::vector<TensorDesc> out_descs;
  try {
    check_input_count(row, in_descs);
    node.attrs = complete_attrs(row, attrs);
    out_descs = row.infer({row, in_descs, node.attrs});
    for (const TensorDesc& desc : out_descs) {
      NETCL_CHECK(desc.shape.rank() <= NETCL_MAX_RANK, ErrorCode::kUsage, "the output ", desc.str(),
                  " has more than ", NETCL_MAX_RANK, " dimensions");
      require_possible(desc);
    }
  } catch (const Error& e) {
    fail(e.code(), call_text(row, in_descs), ": ", e.message());
  }
  node.op = &row;
  node.in = in;
  for (TensorDesc& desc : out_descs) node.out.push_back(add_value(std::move(desc)));
  const std::vector<ValueId> out = node.out;
  nodes_.push_back(std::move(node));
  recorded(nodes_.back());
  return out;
}

ValueId Recorder::call(const std::string& op, const std::vector<ValueId>& in, Attrs attrs) {
  const std::vector<ValueId> out = apply(op, in, std::move(attrs));
  NETCL_CHECK(out.size() == 1, ErrorCode::kInternal, op, " has ", out.size(),
              " outputs; use apply instead of call");
  return out[0];
}

std::vector<ValueId> Recorder::repeat(const Node& node, const std::vector<ValueId>& in) {
  if (node.fused) return apply(node.fused, in, node.attrs);
  return apply(node.op->name, in, node.attrs);
}

std::vector<ValueId> Recorder::fused(const std::string& name, const std::vector<ValueId>& in,
                                     const Attrs& attrs, const std::vector<ValueId>& out) {
  const auto op = cut_out(*this, name, in, out);
  return keeps_fused() ? apply(op, in, attrs) : out;
}

std::vector<ValueId> Recorder::apply(std::shared_ptr<const FusedOp> op,
                                     const std::vector<ValueId>& in, const Attrs& attrs) {
  NETCL_CHECK(keeps_fused() && in.size() == op->num_inputs(), ErrorCode::kInternal, op->row.name,
              " was recorded with ", in.size(), " of ", op->num_inputs(),
              " inputs, or where no fused op can be");
  for (size_t i = 0; i < in.size(); ++i) {
    NETCL_CHECK(desc(in[i]) == op->body.desc(static_cast<ValueId>(i)), ErrorCode::kInternal,
                op->row.name, ": input ", i, " is ", desc(in[i]).str());
  }
  Node node;
  node.op = &op->row;
  node.in = in;
  node.attrs = attrs;
  for (const TensorDesc& out : op->out_descs) node.out.push_back(add_value(out));
  node.fused = std::move(op);
  const std::vector<ValueId> out = node.out;
  nodes_.push_back(std::move(node));
  recorded(nodes_.back());
  return out;
}

std::string Recorder::describe(ValueId value) const { return str_cat("value ", value); }

ValueId Recorder::add_value(TensorDesc desc) {
  descs_.push_back(std::move(desc));
  return static_cast<ValueId>(descs_.size() - 1);
}

}  // namespace netcl
