// Rows of the cells of recurrent layers: what follows the two matrix products of a step, fused.
// lstm_cell(gx, gh, c) -> h', c'; gru_cell(gx, gh, h) -> h'. Gates lie in PyTorch's order.
#include <cmath>

#include "core/base/error.h"
#include "core/ops/checks.h"
#include "core/ops/gradients.h"
#include "core/ops/rows.h"

namespace netcl {

namespace {

double sigmoid(double x) { return 1 / (1 + std::exp(-x)); }

bool is_lstm(const OpRow& row) { return row.name.rfind("lstm", 0) == 0; }
int64_t gates_of(const OpRow& row) { return is_lstm(row) ? 4 : 3; }

// Inputs first, first + 1 must be the gates [B, gates H] and first + 2 the state [B, H].
void check_cell(const OpCall& call, size_t first) {
  common_float(call);
  require_rank(call, first + 2, 2, "a state [B,H]");
  const TensorDesc& state = call.in[first + 2];
  const int64_t units = state.shape[1];
  NETCL_CHECK(units > 0, ErrorCode::kUsage, "the state ", state.shape.str(),
              " must have a fixed number of units above 0");
  const TensorDesc gates{state.dtype, Shape{state.shape[0], gates_of(call.row) * units}};
  require_desc(call, first, gates, "gates of the input");
  require_desc(call, first + 1, gates, "gates of the state");
  for (size_t i = 0; i < first; ++i) require_desc(call, i, state, "gradient of the state");
}

void cell_facts(const OpCall& call, Attrs& facts) {
  const Shape& state = call.in.back().shape;
  facts.set("n", state.num_elements());
  facts.set("H", state[1]);
}

// One unit of one sample: values of the gates and where they lie.
struct Unit {
  size_t state, gate, step;  // gate k lies at gate + k * step
};

template <typename F>
void for_each_unit(const OpCall& call, F f) {
  const auto units = static_cast<size_t>(call.in.back().shape[1]);
  const auto samples = static_cast<size_t>(call.in.back().shape[0]);
  const auto gates = static_cast<size_t>(gates_of(call.row));
  for (size_t b = 0; b < samples; ++b) {
    for (size_t j = 0; j < units; ++j) f(Unit{b * units + j, b * gates * units + j, units});
  }
}

using Inputs = std::vector<const HostTensor*>;

// Sum of both products at gate k.
double gate(const HostTensor& gx, const HostTensor& gh, const Unit& u, size_t k) {
  return gx.data[u.gate + k * u.step] + gh.data[u.gate + k * u.step];
}

void lstm_reference(const OpCall& call, const Inputs& in, std::vector<HostTensor>& out) {
  for_each_unit(call, [&](const Unit& u) {
    const double i = sigmoid(gate(*in[0], *in[1], u, 0)), f = sigmoid(gate(*in[0], *in[1], u, 1));
    const double g = std::tanh(gate(*in[0], *in[1], u, 2));
    const double c = f * in[2]->data[u.state] + i * g;
    out[0].data[u.state] = sigmoid(gate(*in[0], *in[1], u, 3)) * std::tanh(c);
    out[1].data[u.state] = c;
  });
}

void lstm_grad_reference(const OpCall& call, const Inputs& in, std::vector<HostTensor>& out) {
  for_each_unit(call, [&](const Unit& u) {
    const double i = sigmoid(gate(*in[2], *in[3], u, 0)), f = sigmoid(gate(*in[2], *in[3], u, 1));
    const double g = std::tanh(gate(*in[2], *in[3], u, 2));
    const double o = sigmoid(gate(*in[2], *in[3], u, 3));
    const double c = in[4]->data[u.state], bent = std::tanh(f * c + i * g);
    const double dh = in[0]->data[u.state];
    const double dc = in[1]->data[u.state] + dh * o * (1 - bent * bent);
    double* d = out[0].data.data() + u.gate;
    d[0] = dc * g * i * (1 - i);
    d[u.step] = dc * c * f * (1 - f);
    d[2 * u.step] = dc * i * (1 - g * g);
    d[3 * u.step] = dh * bent * o * (1 - o);
    out[1].data[u.state] = dc * f;
  });
}

void gru_reference(const OpCall& call, const Inputs& in, std::vector<HostTensor>& out) {
  for_each_unit(call, [&](const Unit& u) {
    const double r = sigmoid(gate(*in[0], *in[1], u, 0)), z = sigmoid(gate(*in[0], *in[1], u, 1));
    const size_t at = u.gate + 2 * u.step;
    const double n = std::tanh(in[0]->data[at] + r * in[1]->data[at]);
    out[0].data[u.state] = (1 - z) * n + z * in[2]->data[u.state];
  });
}

void gru_grad_reference(const OpCall& call, const Inputs& in, std::vector<HostTensor>& out) {
  for_each_unit(call, [&](const Unit& u) {
    const double r = sigmoid(gate(*in[1], *in[2], u, 0)), z = sigmoid(gate(*in[1], *in[2], u, 1));
    const size_t at = u.gate + 2 * u.step;
    const double inner = in[2]->data[at], n = std::tanh(in[1]->data[at] + r * inner);
    const double dy = in[0]->data[u.state];
    const double dn = dy * (1 - z) * (1 - n * n);
    for (HostTensor* t : {&out[0], &out[1]}) {
      t->data[u.gate] = dn * inner * r * (1 - r);
      t->data[u.gate + u.step] = dy * (in[3]->data[u.state] - n) * z * (1 - z);
    }
    out[0].data[at] = dn;
    out[1].data[at] = dn * r;
    out[2].data[u.state] = dy * z;
  });
}

// Zeros in place of the gradient of an output that nothing used.
ValueId or_zeros(const GradCall& c, size_t k) {
  if (c.dy[k]) return *c.dy[k];
  const TensorDesc desc = c.recorder.desc(c.node.out[k]);
  return c.recorder.call(
      "full", {},
      {{"shape", desc.shape}, {"value", 0.0}, {"dtype", std::string(dtype_name(desc.dtype))}});
}

Grads lstm_gradient(const GradCall& c) {
  const std::vector<ValueId> in = c.node.in;
  const ValueId dh = or_zeros(c, 0), dc = or_zeros(c, 1);
  const std::vector<ValueId> d = c.recorder.apply("lstm_cell_grad", {dh, dc, in[0], in[1], in[2]});
  return {d[0], d[0], d[1]};
}

Grads gru_gradient(const GradCall& c) {
  const std::vector<ValueId> in = c.node.in;
  const std::vector<ValueId> d = c.recorder.apply("gru_cell_grad", {dy0(c), in[0], in[1], in[2]});
  return {d[0], d[1], d[2]};
}

// `first` gradients of the states precede the gates.
OpRow cell_row(const std::string& name, size_t first) {
  OpRow row;
  row.name = name;
  row.min_in = row.max_in = first + 3;
  row.half_storage = true;
  row.infer = [first](const OpCall& call) -> std::vector<TensorDesc> {
    check_cell(call, first);
    const TensorDesc gates = call.in[first], state = call.in[first + 2];
    if (first == 0) return std::vector<TensorDesc>(is_lstm(call.row) ? 2 : 1, state);
    if (is_lstm(call.row)) return {gates, state};
    return {gates, gates, state};
  };
  row.facts = cell_facts;
  const int64_t gates = gates_of(row);
  for (const auto& [samples, units] :
       {std::pair<int64_t, int64_t>{1, 1}, {3, 5}, {13, 17}, {0, 4}, {2, 64}}) {
    OpCase c;
    c.in.assign(first + 3, {DType::kF32, Shape{samples, units}});
    c.in[first] = c.in[first + 1] = {DType::kF32, Shape{samples, gates * units}};
    c.low = -2;
    c.high = 2;
    row.cases.push_back(c);
  }
  return row;
}

}  // namespace

void add_recurrent_rows(std::vector<OpRow>& rows) {
  OpRow lstm = cell_row("lstm_cell", 0);
  lstm.gradient = lstm_gradient;
  lstm.reference = lstm_reference;
  lstm.doc = {
      "(i, f, g, o) = gx + gh; c' = sigmoid(f) c + sigmoid(i) tanh(g), h' = sigmoid(o) "
      "tanh(c')",
      "lstm_cell_grad: of both gates the same, and of c",
      "Hochreiter, Schmidhuber: Long Short-Term Memory, 1997; Gers et al., 2000 (forget)"};
  OpRow lstm_grad = cell_row("lstm_cell_grad", 2);
  lstm_grad.reference = lstm_grad_reference;
  lstm_grad.doc = {"gradients of lstm_cell's gates and c from those of h' and c'", "", ""};
  OpRow gru = cell_row("gru_cell", 0);
  gru.gradient = gru_gradient;
  gru.reference = gru_reference;
  gru.doc = {"r, z = sigmoid of gx + gh; n = tanh(gx_n + r gh_n); h' = (1 - z) n + z h",
             "gru_cell_grad: of gx, gh and h",
             "Cho et al.: Learning Phrase Representations using RNN Encoder-Decoder, EMNLP 2014"};
  OpRow gru_grad = cell_row("gru_cell_grad", 1);
  gru_grad.reference = gru_grad_reference;
  gru_grad.doc = {"gradients of gru_cell's gx, gh and h from that of h'", "", ""};
  for (OpRow* row : {&lstm, &lstm_grad, &gru, &gru_grad}) rows.push_back(std::move(*row));
}

}  // namespace netcl
