// lstm_cell, gru_cell and their gradients: the elementwise part of one step of a recurrent layer.
//
// Contract   gx, gh: products of the input and of the previous state with their weights, biases
//            added, [B, gates H]; all tensors are X_DTYPE.
//            lstm (gates i f g o): c' = sigmoid(f) c + sigmoid(i) tanh(g), h' = sigmoid(o) tanh(c')
//            of gx + gh. gru (gates r z n): r = sigmoid, z = sigmoid of gx + gh,
//            n = tanh(gx_n + r gh_n), h' = (1 - z) n + z h.
//            Gradients: dgates [B,4H] (the same for gx and gh) and dc; dgx, dgh [B,3H] and dh.
// Defines    X_DTYPE; SPAN, or nothing: one work-item a (sample, unit); else, for CPUs, work-item
//            (SPAN units, sample) in a loop. Needs storage.cl before it, and with SPAN loop.cl.
// Divisible  nothing.
// Tunables   SPAN: 64, 256 or 1024.
// Order      none: one element each.

#define GET(p, i) LOAD(X_DTYPE)(p, i)
#define PUT(p, i, v) STORE(X_DTYPE)(p, i, v)

// The statement that follows is done for every `unit` of sample `row` that is the work-item's.
#ifdef SPAN
#define EACH_UNIT                                                              \
  const int row = (int)get_global_id(1), first = SPAN * (int)get_global_id(0); \
  INDEPENDENT                                                                  \
  for (int unit = first; unit < min(first + SPAN, H); ++unit)
#else
#define EACH_UNIT                                                       \
  const int own = (int)get_global_id(0), row = own / H, unit = own % H; \
  if (own < n)
#endif

static inline float sigmoid(const float x) { return 1.0f / (1.0f + exp(-x)); }

// Input, forget, value and output gate of a unit, which forward and backward both need.
static inline float4 lstm_gates(__global const TYPE(X_DTYPE)* gx, __global const TYPE(X_DTYPE)* gh,
                                const int at, const int H) {
  return (float4)(sigmoid(GET(gx, at) + GET(gh, at)), sigmoid(GET(gx, at + H) + GET(gh, at + H)),
                  tanh(GET(gx, at + 2 * H) + GET(gh, at + 2 * H)),
                  sigmoid(GET(gx, at + 3 * H) + GET(gh, at + 3 * H)));
}

// Reset gate, the part z that is kept, the inner product that is reset, and the new value of a unit.
static inline float4 gru_gates(__global const TYPE(X_DTYPE)* gx, __global const TYPE(X_DTYPE)* gh,
                               const int at, const int H) {
  const float reset = sigmoid(GET(gx, at) + GET(gh, at));
  const float keep = sigmoid(GET(gx, at + H) + GET(gh, at + H));
  const float inner = GET(gh, at + 2 * H);
  return (float4)(reset, keep, inner, tanh(GET(gx, at + 2 * H) + reset * inner));
}

__kernel void lstm_cell_generic_unit(
    __global const TYPE(X_DTYPE)* gx, __global const TYPE(X_DTYPE)* gh,
    __global const TYPE(X_DTYPE)* c, __global TYPE(X_DTYPE)* h_next, __global TYPE(X_DTYPE)* c_next,
    const int n, const int H) {
  EACH_UNIT {
    const int i = row * H + unit, at = row * 4 * H + unit;
    const float4 gates = lstm_gates(gx, gh, at, H);
    const float in = gates.x, forget = gates.y, value = gates.z, out = gates.w;
    const float next = forget * GET(c, i) + in * value;
    PUT(c_next, i, next);
    PUT(h_next, i, out * tanh(next));
  }
}

__kernel void lstm_cell_grad_generic_unit(
    __global const TYPE(X_DTYPE)* dh, __global const TYPE(X_DTYPE)* dc_next,
    __global const TYPE(X_DTYPE)* gx, __global const TYPE(X_DTYPE)* gh,
    __global const TYPE(X_DTYPE)* c, __global TYPE(X_DTYPE)* dgates, __global TYPE(X_DTYPE)* dc,
    const int n, const int H) {
  EACH_UNIT {
    const int i = row * H + unit, at = row * 4 * H + unit;
    const float4 gates = lstm_gates(gx, gh, at, H);
    const float in = gates.x, forget = gates.y, value = gates.z, out = gates.w;
    const float c_old = GET(c, i);
    const float bent = tanh(forget * c_old + in * value);
    const float d = GET(dh, i);
    const float total = GET(dc_next, i) + d * out * (1.0f - bent * bent);
    PUT(dgates, at, total * value * in * (1.0f - in));
    PUT(dgates, at + H, total * c_old * forget * (1.0f - forget));
    PUT(dgates, at + 2 * H, total * in * (1.0f - value * value));
    PUT(dgates, at + 3 * H, d * bent * out * (1.0f - out));
    PUT(dc, i, total * forget);
  }
}

__kernel void gru_cell_generic_unit(
    __global const TYPE(X_DTYPE)* gx, __global const TYPE(X_DTYPE)* gh,
    __global const TYPE(X_DTYPE)* h, __global TYPE(X_DTYPE)* h_next, const int n, const int H) {
  EACH_UNIT {
    const int i = row * H + unit, at = row * 3 * H + unit;
    const float4 gates = gru_gates(gx, gh, at, H);
    const float keep = gates.y, value = gates.w;
    PUT(h_next, i, (1.0f - keep) * value + keep * GET(h, i));
  }
}

__kernel void gru_cell_grad_generic_unit(
    __global const TYPE(X_DTYPE)* dy, __global const TYPE(X_DTYPE)* gx,
    __global const TYPE(X_DTYPE)* gh, __global const TYPE(X_DTYPE)* h, __global TYPE(X_DTYPE)* dgx,
    __global TYPE(X_DTYPE)* dgh, __global TYPE(X_DTYPE)* dh, const int n, const int H) {
  EACH_UNIT {
    const int i = row * H + unit, at = row * 3 * H + unit;
    const float4 gates = gru_gates(gx, gh, at, H);
    const float reset = gates.x, keep = gates.y, inner = gates.z, value = gates.w;
    const float d = GET(dy, i);
    const float d_value = d * (1.0f - keep) * (1.0f - value * value);
    const float d_keep = d * (GET(h, i) - value) * keep * (1.0f - keep);
    const float d_reset = d_value * inner * reset * (1.0f - reset);
    PUT(dgx, at, d_reset);
    PUT(dgh, at, d_reset);
    PUT(dgx, at + H, d_keep);
    PUT(dgh, at + H, d_keep);
    PUT(dgx, at + 2 * H, d_value);
    PUT(dgh, at + 2 * H, d_value * reset);
    PUT(dh, i, d * keep);
  }
}
