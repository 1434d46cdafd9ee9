// A plugin of two kinds, a kernel set for relu, relu_grad and the op of its layer, and that layer,
// in which the tests of `plugins verify` switch on one fault at a time. Without one it is right.
#include <algorithm>
#include <cstdlib>
#include <stdexcept>
#include <string>
#include <vector>

#include "core/abi/netcl_plugin.hpp"
#include "tests/verify/faults/fault.h"

namespace {

using faults::has;
using netcl::plugin::to_abi;
using netcl::plugin::view;

const netcl_host* g_host = nullptr;

__attribute__((constructor)) void at_load() {
  if (has("crash_at_load")) faults::crash();
}

netcl_rc refuse(netcl_call* call, netcl_rc code, const char* why) {
  return g_host->fail(call, code, 0, to_abi(why));
}

// ---- kernels: one work-item an element ----

constexpr const char* kRelu =
    "__kernel void relu_faulty_plain(__global float* x, __global float* y, const int n,\n"
    "                                const int f, const float factor) {\n"
    "  const int i = (int)get_global_id(0);\n"
    "  if (i < n) y[i] = x[i] < 0.0f ? 0.0f : x[i];\n"
    "  FAULT\n"
    "}\n";
constexpr const char* kReluGrad =
    "__kernel void relu_grad_faulty_plain(__global float* dy, __global float* y,\n"
    "                                     __global float* dx, const int n, const int f,\n"
    "                                     const float factor) {\n"
    "  const int i = (int)get_global_id(0);\n"
    "  if (i < n) dx[i] = y[i] > 0.0f ? SIGN dy[i] : 0.0f;\n"
    "}\n";
constexpr const char* kGain =
    "__kernel void gain_faulty_plain(__global float* x, __global float* gain, __global float* y,\n"
    "                                const int n, const int f, const float factor) {\n"
    "  const int i = (int)get_global_id(0);\n"
    "  if (i < n) y[i] = factor * x[i] * gain[GAIN];\n"
    "}\n";
constexpr const char* kGainGrad =
    "__kernel void gain_grad_faulty_plain(__global float* x, __global float* gain,\n"
    "                                     __global float* y, __global float* dy,\n"
    "                                     __global float* dx, __global float* dgain, const int n,\n"
    "                                     const int f, const float factor) {\n"
    "  const int i = (int)get_global_id(0);\n"
    "  if (i < n) dx[i] = factor * dy[i] * gain[i % f];\n"
    "  if (i >= f) return;\n"
    "  float sum = 0.0f;\n"
    "  for (int j = i; j < n; j += f) sum += dy[j] * x[j];\n"
    "  dgain[i] = SIGN factor * sum;\n"
    "}\n";

struct Kernel {
  const char *op, *entry, *source;
  uint32_t n_in, n_out;
};
constexpr Kernel kKernels[] = {{"relu", "relu_faulty_plain", kRelu, 1, 1},
                               {"relu_grad", "relu_grad_faulty_plain", kReluGrad, 2, 1},
                               {"faulty.gain", "gain_faulty_plain", kGain, 2, 1},
                               {"faulty.gain.grad", "gain_grad_faulty_plain", kGainGrad, 4, 2}};

const Kernel* kernel_of(netcl_str op) {
  for (const Kernel& kernel : kKernels)
    if (view(op) == kernel.op) return &kernel;
  return nullptr;
}

// What stands for FAULT, SIGN and GAIN.
std::string defines(int64_t width) {
  std::string fault, sign;
  if (has("wrong_in_one_shape")) fault = "if (n == 1031 && i == 1030) y[i] = 9.0f;";
  if (has("past_the_end")) fault = "if (i == 0) y[n] = 1.0f;";
  if (has("input_modified")) fault = "if (i == 0) x[0] = 0.25f;";
  if (has("hang_in_kernel")) fault = "for (volatile int t = 0; n > 0; ++t) {}";
  if (has("wrong_knob") && width == 4) fault = "if (i == 0) y[0] = 9.0f;";
  if (has("wrong_sign")) sign = "-";
  return "#define FAULT " + fault + "\n#define SIGN " + sign + "\n#define GAIN " +
         (has("wrong_fused") ? "0" : "i % f") + "\n";
}

uint64_t elements(const netcl_desc& desc) {
  uint64_t n = 1;
  for (uint32_t d = 0; d < desc.rank; ++d) n *= static_cast<uint64_t>(desc.dim[d]);
  return n;
}

// "plain" or "plain(WIDTH=4)"; 0 for another.
int64_t width_of(std::string_view variant) {
  if (variant.empty() || variant == "plain") return 1;
  const std::string_view head = "plain(WIDTH=";
  if (variant.substr(0, head.size()) != head) return has("any_variant") ? 1 : 0;
  return std::atoll(std::string(variant.substr(head.size())).c_str());
}

netcl_rc plan(netcl_plugin*, netcl_call* call, netcl_device*, const netcl_opkey* key,
              netcl_str variant, netcl_sink sink, void* ctx) {
  static int plans = 0;
  ++plans;
  if (has("hang_in_plan")) faults::hang();
  if (has("crash_in_plan")) faults::crash();
  if (has("exit_in_plan")) std::exit(0);
  if (has("exception_in_plan")) throw std::runtime_error("let out of plan");
  const Kernel* const kernel = kernel_of(key->op);
  if (kernel == nullptr) return refuse(call, NETCL_DECLINE, "not this op");
  if (key->n_in != kernel->n_in || key->n_out != kernel->n_out)
    return refuse(call, NETCL_E_ARG, "the op has other inputs");
  const int64_t width = width_of(view(variant));
  if (width == 0 || has("declines_all")) return refuse(call, NETCL_DECLINE, "no such variant");
  const uint64_t n = elements(key->out[0]);
  const std::string text = defines(width), id = "plain(WIDTH=" + std::to_string(width) + ")";
  const netcl_source sources[] = {{to_abi("defines"), to_abi(text)},
                                  {to_abi("kernel"), to_abi(kernel->source)}};
  const netcl_desc& widest = key->in[0];
  const int64_t features = widest.rank > 0 ? widest.dim[widest.rank - 1] : 1;
  const netcl::plugin::AttrView attrs(key->attrs, key->n_attrs);
  std::vector<netcl_arg> args;
  for (uint32_t i = 0; i < key->n_in; ++i) args.push_back({NETCL_ARG_INPUT, i, {0}});
  for (uint32_t i = 0; i < key->n_out; ++i)
    args.push_back({NETCL_ARG_OUTPUT, has("bad_index") ? 7u : i, {0}});
  args.push_back({NETCL_ARG_I32, 0, {static_cast<int64_t>(n)}});
  args.push_back({NETCL_ARG_I32, 0, {features}});
  args.push_back({NETCL_ARG_F32, 0, {0}});
  args.back().u.f = attrs.find("factor") != nullptr ? attrs.number("factor") : 0;
  netcl_launch launch{};
  launch.entry = to_abi(kernel->entry);
  launch.options = to_abi("-cl-std=CL1.2");
  launch.sources = sources;
  launch.n_sources = 2;
  launch.args = args.data();
  launch.n_args = static_cast<uint32_t>(args.size());
  launch.dims = 1;
  launch.global[0] = std::max(n, key->n_out > 1 ? static_cast<uint64_t>(features) : 0);
  if (has("another_plan") && n > 0) launch.global[0] += static_cast<uint64_t>(plans);
  launch.global[1] = launch.global[2] = 1;
  netcl_recipe recipe{};
  recipe.size = sizeof(recipe);
  recipe.variant = width == 1 ? to_abi("plain") : to_abi(id);
  recipe.launches = &launch;
  recipe.n_launches = 1;
  return sink(ctx, &recipe);
}

netcl_rc enumerate(netcl_plugin*, netcl_call*, netcl_device*, const netcl_opkey* key,
                   netcl_sink sink, void* ctx) {
  if (kernel_of(key->op) == nullptr || has("declines_all")) return NETCL_OK;
  const netcl_variant item{to_abi("plain"), to_abi("")};
  return sink(ctx, &item);
}

netcl_rc tunables(netcl_plugin*, netcl_call*, netcl_device*, const netcl_opkey*, netcl_str,
                  netcl_sink sink, void* ctx) {
  static const int64_t values[] = {1, 4};
  const netcl_tunable item{to_abi("WIDTH"), values, 2, 0, 1};
  return sink(ctx, &item);
}

// ---- the layer faulty.gain: y = factor * x * gain ----

netcl_attr_spec factor_spec() {
  netcl_attr_spec out{};
  out.def = netcl::plugin::attr_float("factor", 1);
  out.min = 0.1;
  out.max = 10;
  return out;
}
netcl_attr_spec order_spec() {
  netcl_attr_spec out{};
  out.def = netcl::plugin::attr_int("order", 1);
  return out;
}

netcl_rc types(netcl_plugin*, netcl_call*, netcl_sink sink, void* ctx) {
  const netcl_attr_spec specs[] = {factor_spec(), order_spec()};
  netcl_layer_type type{};
  type.name = to_abi("faulty.gain");
  type.attrs = specs;
  type.n_attrs = 2;
  type.n_in = type.n_out = 1;
  return sink(ctx, &type);
}

void let_out() { throw std::runtime_error("let out of noexcept"); }
void no_way_out() noexcept { let_out(); }

// Records one op; with its fault a refusal of the host's is forgotten.
netcl_rc record(netcl_call* call, netcl_graph* graph, const char* op,
                const std::vector<netcl_value>& in, const std::vector<netcl_attr>& attrs,
                netcl_value* out) {
  *out = in[0];
  const netcl_rc rc =
      g_host->op(call, graph, to_abi(op), in.data(), static_cast<uint32_t>(in.size()), attrs.data(),
                 static_cast<uint32_t>(attrs.size()), out, 1);
  return has("forgets_errors") ? netcl_rc{NETCL_OK} : rc;
}

netcl_rc declare(netcl_call* call, netcl_graph* graph, const char* name, int64_t features,
                 netcl_value* out) {
  netcl_slot slot{};
  slot.size = sizeof(slot);
  slot.name = to_abi(name);
  slot.desc.dtype = NETCL_F32;
  slot.desc.rank = 1;
  slot.desc.dim[0] = features;
  slot.init = NETCL_INIT_ONES;
  return g_host->slot(call, graph, &slot, out);
}

netcl_rc trace(netcl_plugin*, netcl_call* call, netcl_str type, const netcl_attr* attrs,
               uint32_t n_attrs, netcl_graph* graph, const netcl_value* in, uint32_t,
               netcl_value* out, uint32_t) {
  static int traces = 0;
  if (view(type) != "faulty.gain") {
    if (has("exception_let_out")) throw std::runtime_error("let out of trace");
    if (has("terminates")) no_way_out();
    return refuse(call, NETCL_E_ARG, "no such layer");
  }
  const netcl::plugin::AttrView keys(attrs, n_attrs);
  if (has("crash_on_a_key") && keys.integer("order") < 0) faults::crash();
  netcl_desc desc{};
  if (const netcl_rc rc = g_host->value_desc(call, graph, in[0], &desc); rc != NETCL_OK) return rc;
  if (desc.rank < 2) return refuse(call, NETCL_E_ARG, "it needs features");
  netcl_trace_info info{};
  info.size = sizeof(info);
  if (const netcl_rc rc = g_host->trace_info(call, graph, &info); rc != NETCL_OK) return rc;
  netcl_value gain = 0, x = in[0], ignored = 0;
  const int64_t features = desc.dim[desc.rank - 1];
  if (const netcl_rc rc = declare(call, graph, "gain", features, &gain); rc != NETCL_OK) return rc;
  if (has("parameter_in_evaluation") && info.training == 0)
    declare(call, graph, "other", features, &ignored);
  double factor = keys.number("factor");
  if (has("another_trace")) factor += 0.01 * ++traces;
  const std::vector<int64_t> batch = {0};
  netcl_rc rc =
      record(call, graph, "scale", {x}, {netcl::plugin::attr_float("factor", factor)}, &x);
  if (rc == NETCL_OK && has("misused_op")) {  // its gradient is made for sums of x itself
    netcl_value sums = 0;
    rc = record(call, graph, "scale", {x}, {netcl::plugin::attr_float("factor", 2)}, &sums);
    if (rc == NETCL_OK) rc = record(call, graph, "batch_norm_sums", {sums, gain}, {}, &sums);
    const netcl_attr eps = netcl::plugin::attr_float("eps", 0.1);
    if (rc == NETCL_OK)
      rc = record(call, graph, "batch_norm", {x, sums, gain, gain, gain}, {eps}, &x);
  }
  if (rc == NETCL_OK && has("mixes_samples")) {
    netcl_value mean = 0;
    rc = record(call, graph, "mean", {x},
                {netcl::plugin::attr_ints("axes", batch), netcl::plugin::attr_bool("keep", true)},
                &mean);
    if (rc == NETCL_OK) rc = record(call, graph, "sub", {x, mean}, {}, &x);
  }
  if (rc == NETCL_OK && !has("unused_parameter"))
    rc = record(call, graph, "mul", {x, gain}, {}, &x);
  out[0] = x;
  const bool whole = !has("unused_parameter") && !has("mixes_samples") && !has("forgets_errors") &&
                     !has("misused_op");
  if (rc != NETCL_OK || !whole || !NETCL_HAS(g_host, fused)) return rc;
  const netcl_value inputs[] = {in[0], gain};
  const netcl_attr attr = netcl::plugin::attr_float("factor", factor);
  return g_host->fused(call, graph, to_abi("faulty.gain"), inputs, 2, &attr, 1, &x, 1, out);
}

// ---- the plugin ----

class Faulty : public netcl::plugin::Plugin {
 public:
  using Plugin::Plugin;
  std::string_view id() const override { return has("wrong_id") ? "other" : "faulty"; }
  std::string_view version() const override { return has("wrong_version") ? "2.0.0" : "1.0.0"; }
  const void* query(std::string_view interface_name) override {
    static const netcl_kernels_api kernels = {sizeof(netcl_kernels_api), plan, enumerate, tunables};
    static const netcl_layer_api layers = {sizeof(netcl_layer_api), types, trace};
    if (interface_name == NETCL_KERNELS_INTERFACE && !has("no_kernels_table")) return &kernels;
    return interface_name == NETCL_LAYER_INTERFACE || has("any_interface") ? &layers : nullptr;
  }
};

void close_again(netcl_plugin* p) { delete &netcl::plugin::self(p); }

int opened = 0;

}  // namespace

extern "C" NETCL_EXPORT netcl_rc netcl_plugin_open_v1(const netcl_host* host, netcl_call* call,
                                                      netcl_plugin_api* out) {
  g_host = host;
  if (has("crash_in_open")) faults::crash();
  if (has("abort_in_open")) std::abort();
  if (has("exit_in_open")) std::exit(0);
  if (has("hang_in_open")) faults::hang();
  if (has("exception_in_open")) throw std::runtime_error("let out of open");
  if (has("prints")) std::puts("hello from the plugin");
  if (has("prints_errors")) std::fputs("an error of the plugin\n", stderr);
  if (has("opens_once") && opened++ > 0) return NETCL_E_STATE;
  if (has("reads_beyond_host") && host->sublayer == nullptr) return NETCL_E_ABI;
  if (has("old_hosts_only") && host->abi_minor > NETCL_ABI_MINOR) return NETCL_E_ABI;
  const size_t room = out->size;
  if (has("writes_beyond_api")) out->size = sizeof(*out);
  const netcl_rc rc = netcl::plugin::open_plugin<Faulty>(host, call, out);
  out->size = room;
  if (rc == NETCL_OK && has("frees_twice")) out->close = close_again;
  return rc;
}
