// Row of dropout. Which elements are kept depends on the seed, the step, the stream and the
// position in the global batch alone (kernels/README.md), so any split of a batch keeps the same
// ones.
#include "core/base/error.h"
#include "core/ops/checks.h"
#include "core/ops/gradients.h"
#include "core/ops/reference/philox.h"
#include "core/ops/rows.h"

namespace netcl {

namespace {

// Elements of one sample: all dimensions but the first.
int64_t row_size(const Shape& shape) {
  int64_t row = 1;
  for (size_t d = 1; d < shape.rank(); ++d) row *= shape[d];
  return row;
}

std::vector<TensorDesc> infer_dropout(const OpCall& call) {
  common_float(call, {0});
  NETCL_CHECK((call.in[1] == TensorDesc{DType::kI32, Shape{8}}), ErrorCode::kUsage,
              "the random state must be i32[8], is ", call.in[1].str());
  const double p = call.attrs.number("p");
  NETCL_CHECK(p >= 0 && p < 1, ErrorCode::kUsage, "p must be in [0, 1), is ", p);
  return {call.in[0]};
}

void dropout_reference(const OpCall& call, const std::vector<const HostTensor*>& in,
                       std::vector<HostTensor>& out) {
  const double p = call.attrs.number("p");
  const auto stream = static_cast<uint32_t>(call.attrs.integer("stream"));
  const auto state = [&in](size_t i) {
    return static_cast<uint32_t>(static_cast<int32_t>(in[1]->data[i]));
  };
  const auto row = static_cast<uint64_t>(row_size(call.in[0].shape));
  const uint64_t first = static_cast<uint64_t>(state(3)) * row;
  for (size_t i = 0; i < out[0].data.size(); ++i) {
    const uint64_t e = first + i, q = e / 4;
    const PhiloxCounter counter{static_cast<uint32_t>(q), static_cast<uint32_t>(q >> 32), state(2),
                                stream};
    const double u = philox_uniform(philox4x32(counter, {state(0), state(1)})[e % 4]);
    // Compared as f32, like the kernels do, so that both keep the same elements.
    out[0].data[i] = u >= static_cast<double>(static_cast<float>(p)) ? in[0]->data[i] / (1 - p) : 0;
  }
}

std::vector<OpCase> dropout_cases() {
  std::vector<OpCase> cases;
  const std::vector<double> plain = {12345, -678, 3, 0, 0, 0, 0, 0};
  const std::vector<double> later = {7, 0, 99, 5, 0, 0, 0, 0};
  // Sample 2147483647 of the global batch: element indices beyond 32 bits.
  const std::vector<double> far = {7, 1, 2, 2147483647, 0, 0, 0, 0};
  const auto add = [&cases](const Shape& shape, double p, int64_t stream,
                            const std::vector<double>& state) {
    OpCase c;
    c.in = {{DType::kF32, shape}, {DType::kI32, {8}}};
    c.attrs = {{"p", p}, {"stream", stream}};
    c.fixed = {{1, state}};
    cases.push_back(c);
  };
  add({1}, 0.5, 0, plain);
  add({7}, 0.1, 1, plain);
  add({13, 17}, 0.5, 2, plain);
  add({13, 17}, 0.5, 2, later);
  add({3, 5, 7}, 0.75, 11, later);
  add({5, 1031}, 0.25, 3, far);
  add({0, 3}, 0.5, 0, plain);
  add({31}, 0.0, 0, plain);
  return cases;
}

}  // namespace

void add_random_rows(std::vector<OpRow>& rows) {
  OpRow row;
  row.name = "dropout";
  row.doc = {
      "y = x / (1 - p) where u >= p, else 0; u uniform in [0, 1), of seed, step, stream and "
      "the element's place in the global batch",
      "dx = dropout(dy, state): the same elements",
      "Srivastava et al., Dropout, JMLR 2014; Salmon et al., Parallel random numbers: as easy "
      "as 1, 2, 3, 2011 (Philox)"};
  row.min_in = row.max_in = 2;
  row.half_storage = true;
  row.attrs = {{"p", 0.5}, {"stream", int64_t{0}}};
  row.infer = infer_dropout;
  row.facts = [](const OpCall& call, Attrs& facts) {
    facts.set("n", call.in[0].shape.num_elements());
    facts.set("row", row_size(call.in[0].shape));
  };
  // Linear in x: the same elements are kept in dy. Nothing is saved but the state.
  row.gradient = [](const GradCall& c) -> Grads {
    return {c.recorder.call("dropout", {dy0(c), c.node.in[1]}, c.node.attrs), std::nullopt};
  };
  row.reference = dropout_reference;
  row.cases = dropout_cases();
  rows.push_back(std::move(row));
}

}  // namespace netcl
