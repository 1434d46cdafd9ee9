#include "core/runtime/tuned_fit.h"

#include <algorithm>
#include <vector>

#include "core/base/error.h"
#include "core/base/text.h"
#include "core/ops/op.h"

namespace netcl {

namespace {

// Multiplies without an overflow: outputs are as large as the inputs make them.
std::string size_problem(const char* what, const std::vector<TensorDesc>& all,
                         int64_t max_alloc_bytes) {
  for (size_t i = 0; i < all.size(); ++i) {
    int64_t elements = 1;
    for (const int64_t dim : all[i].shape.dims()) {
      if (dim < 0 || (dim > 0 && elements > kMaxTunedElements / dim))
        return str_cat(what, " ", i, ", ", all[i].str(), ", has more than ", kMaxTunedElements,
                       " elements");
      elements *= dim;
    }
    const auto bytes = elements * static_cast<int64_t>(size_of(all[i].dtype));
    if (max_alloc_bytes > 0 && bytes > max_alloc_bytes)
      return str_cat(what, " ", i, ", ", all[i].str(), ", has ", bytes,
                     " bytes; the record's device allocates at most ", max_alloc_bytes);
  }
  return "";
}

}  // namespace

const OpRow* row_of(const std::string& op) {
  const auto& rows = op_table();
  const auto row =
      std::find_if(rows.begin(), rows.end(), [&](const OpRow& r) { return r.name == op; });
  return row == rows.end() ? nullptr : &*row;
}

std::string question_problem(const TunedQuestion& question, int64_t max_alloc_bytes) {
  const OpRow* row = row_of(question.op);
  if (row == nullptr) {
    std::vector<std::string> names;
    for (const OpRow& r : op_table()) names.push_back(r.name);
    const std::string near = nearest_name(question.op, names);
    return "there is no op \"" + question.op + "\"" +
           (near.empty() ? "" : "; did you mean \"" + near + "\"?");
  }
  if (question.in.size() < row->min_in || question.in.size() > row->max_in)
    return str_cat(question.op, " has ", row->min_in, " to ", row->max_in, " inputs, not ",
                   question.in.size());
  std::string problem = size_problem("input", question.in, max_alloc_bytes);
  if (!problem.empty()) return problem;
  try {
    const Attrs attrs = complete_attrs(*row, attrs_of(question));
    return size_problem("output", row->infer({*row, question.in, attrs}), max_alloc_bytes);
  } catch (const std::exception& e) {
    return question.op + ": " + e.what();
  }
}

}  // namespace netcl
