// What all optimiser kernels share: blocks of parameters, their groups, the divided gradient.
//
// Contract   a block is 128 floats of the arena and belongs to one slot. blocks[b] holds its group in
//            the low 8 bits (255: frozen, nothing changes) and its slot above them. hyper holds 16
//            floats a group: [0] learning rate, [1] weight decay, [2] clip value (0: none), the rest
//            as the kernels say.
// Defines    REAL: float if absent, or a vector of them.
// Use        comes first among a launch's sources, but for what REAL needs.

#ifndef REAL
#define REAL float
#endif

#define NETCL_BLOCK 128
#define NETCL_HYPER 16
#define NETCL_FROZEN 255

static inline int netcl_group(const int block) { return block & 255; }
static inline int netcl_slot(const int block) { return block >> 8; }

// A step whose divisor is no finite number is skipped.
static inline int netcl_skips(const float divisor) { return !isfinite(divisor); }

// A divisor of 0 means that nobody had a sample: the gradient counts as zero. NaN stays NaN.
static inline REAL netcl_gradient(const REAL sum, const float divisor, const float clip) {
  REAL g = divisor == 0.0f ? (REAL)(0.0f) : sum / divisor;
  if (clip > 0.0f) {
    g = g > clip ? (REAL)(clip) : g;
    g = g < -clip ? (REAL)(-clip) : g;
  }
  return g;
}
