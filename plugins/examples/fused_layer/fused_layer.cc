// The layer example.gated_norm: rms_norm(a) * weight * silu(g), where [a, g] are the two halves of
// the last axis; [B,...,2C] becomes [B,...,C]. (Zhang, Sennrich, Root mean square layer
// normalization, 2019, with the gate of Dauphin et al., Language modeling with gated convolutional
// networks, 2017, and Hendrycks, Gimpel's silu.)
//
// Two things are said here. First, what the layer means: gated_norm() says it in ops, so it has a
// gradient and runs on every device. Second, that the plugin has kernels of its own for it, forward
// and backward: gated_norm() names that part of itself, and plan() answers for the name. Where
// plan() declines, or nobody offers kernels for a device, the ops run.
//
// To make it yours:
//   1. write the layer without fused() and train with it;
//   2. name the part with fused(), write the kernels, answer in plan(), and list the op and its
//      gradient in plugin.json ("provides");
//   3. `make check` compares trainings with the kernels and with the ops.
#include "netcl_kernels.hpp"
#include "netcl_plugin.hpp"

namespace {

using netcl::plugin::attr_float;
using netcl::plugin::attr_int;
using netcl::plugin::attr_ints;
using netcl::plugin::Decline;
using netcl::plugin::Failure;
using netcl::plugin::KernelCall;
using netcl::plugin::KernelSet;
using netcl::plugin::LayerFamily;
using netcl::plugin::num_elements;
using netcl::plugin::Recipe;
using netcl::plugin::Trace;
using netcl::plugin::Value;
using netcl::plugin::Variant;

constexpr const char* kOp = "example.gated_norm";
constexpr const char* kGradient = "example.gated_norm.grad";  // always the op's name and ".grad"
constexpr const char* kSource = "gated_norm.cl";

// ---- what the layer means

Value part(const Trace& t, Value x, int64_t axis, int64_t start, int64_t stop) {
  const std::vector<int64_t> axes = {axis}, from = {start}, to = {stop};
  return t.op("slice", {x},
              {attr_ints("axes", axes), attr_ints("start", from), attr_ints("stop", to)});
}

void gated_norm(const Trace& t) {
  const Value x = t.input(0);
  const std::vector<int64_t> shape = t.shape(x);
  if (shape.size() < 2 || shape.back() < 2 || shape.back() % 2 != 0) {
    throw Failure(NETCL_E_ARG, "gated_norm halves the last axis, which must be even, not " +
                                   netcl::plugin::shape_text(shape));
  }
  const int64_t columns = shape.back() / 2, axis = static_cast<int64_t>(shape.size()) - 1;
  const double eps = t.attrs().number("eps");
  const Value weight = t.parameter("weight", {columns}, NETCL_INIT_ONES);

  const Value a = part(t, x, axis, 0, columns), gate = part(t, x, axis, columns, 2 * columns);
  const Value normed = t.op("rms_norm", {a, weight}, {attr_int("dims", 1), attr_float("eps", eps)});
  const Value y = t.op("mul", {normed, t.op("silu", {gate})});

  // From here on y is what the op makes of x and weight; the attribute is for the kernels. All that
  // the ops read is an input, parameters too.
  t.output(0, t.fused(kOp, {x, weight}, {attr_float("eps", eps)}, y));
}

// ---- its kernels

class FusedLayer : public KernelSet<LayerFamily> {
 public:
  explicit FusedLayer(const netcl_host* host) : KernelSet(host) {
    add({kOp,
         "rms_norm of one half of the last axis, gated by silu of the other",
         {{"eps", NETCL_ATTR_FLOAT, false, 1e-5, "", 1e-30, 1, "", "added to the mean square"}},
         gated_norm});
  }
  std::string_view id() const override { return "fused_layer"; }
  std::string_view version() const override { return "0.1.0"; }

  // Two ways, by the work-items that share a row. Processors run a work-group as a loop, so few are
  // enough there; a card wants more.
  std::vector<Variant> variants(const KernelCall& call) const override {
    const Variant few = {"group16", "64 bytes of local memory"};
    const Variant many = {"group128", "512 bytes of local memory"};
    if (call.device("is_cpu") != 0) return {few, many};
    return {many, few};
  }

  // Called once for each device and shape. Inputs of the op: x, weight; output: y.
  // Inputs of its gradient: x, weight, y, dy; outputs: dx, dweight.
  void plan(const KernelCall& call, Recipe& recipe) const override {
    if (call.op() != kOp && call.op() != kGradient)
      throw Decline(std::string(call.op()) + " is none of this plugin's ops");
    call.require_all(NETCL_F32, "f32");  // in mixed precision the ops run
    const int64_t columns = num_elements(call.input(1));
    if (columns % 2 != 0) {
      throw Decline("the kernels read two columns at a time, and there are " +
                    std::to_string(columns));
    }
    const int64_t rows = num_elements(call.input(0)) / (2 * columns);
    const int64_t group = group_size(call);
    if (call.op() == kOp) {
      forward(call, recipe, rows, columns, group);
    } else {
      gradient(call, recipe, rows, columns, group);
    }
  }

 private:
  static int64_t group_size(const KernelCall& call) {
    const int64_t size = call.variant() == "group16" ? 16 : 128;  // a power of two
    const int64_t bytes = size * static_cast<int64_t>(sizeof(float));
    if (call.device("max_work_group") < size)
      throw Decline("the device has groups of " + std::to_string(call.device("max_work_group")) +
                    " work-items at most");
    if (call.device("local_mem_bytes") < bytes)
      throw Decline("the device has " + std::to_string(call.device("local_mem_bytes")) +
                    " bytes of local memory");
    return size;
  }

  static uint64_t size_of(int64_t n) { return static_cast<uint64_t>(n); }

  static void forward(const KernelCall& call, Recipe& recipe, int64_t rows, int64_t columns,
                      int64_t group) {
    recipe.launch("gated_norm_fused_layer_row")
        .source(kSource)
        .input(0)
        .input(1)
        .output(0)
        .i32(columns)
        .f32(call.attrs().number("eps"))
        .local(size_of(group) * sizeof(float))
        .over({size_of(rows * group)}, {size_of(group)});
  }

  static void gradient(const KernelCall& call, Recipe& recipe, int64_t rows, int64_t columns,
                       int64_t group) {
    constexpr int64_t kMostStrips = 64;  // parts of dweight that are added up in the end
    const int64_t strips = rows < kMostStrips ? rows : kMostStrips;
    const uint32_t partial =
        recipe.scratch(size_of((strips > 0 ? strips : 1) * columns) * sizeof(float));
    recipe.launch("gated_norm_fused_layer_grad")
        .source(kSource)
        .input(0)
        .input(1)
        .input(3)
        .output(0)
        .scratch(partial)
        .i32(rows)
        .i32(columns)
        .f32(call.attrs().number("eps"))
        .local(size_of(group) * sizeof(float))
        .over({size_of(strips * group)}, {size_of(group)});
    // Also of an empty batch: dweight must be written, with zeros.
    recipe.launch("gated_norm_fused_layer_weight")
        .source(kSource)
        .scratch(partial)
        .output(1)
        .i32(strips)
        .i32(columns)
        .over({size_of(columns)});
  }
};

}  // namespace

NETCL_PLUGIN(FusedLayer)
