// The checks of a layer's own kernels: its fused ops and their gradients, in every variant of this
// plugin's kernel set, against what the layer's recorded ops make of the same inputs in double
// precision.
#include <set>

#include "apps/netcl_app/verify/child.h"
#include "core/base/error.h"
#include "core/nn/fused_cases.h"
#include "core/ops/fused.h"
#include "core/runtime/kernel_set.h"
#include "core/runtime/layer_set.h"
#include "core/verify/layer_example.h"
#include "core/verify/op_check.h"

namespace netcl::app::verify {

namespace {

constexpr uint64_t kSeed = 17;
constexpr double kTolerance = 2e-5;  // of sums over a batch or a row, in f32
constexpr int64_t kBatches[] = {3, 1, 33, 0};
constexpr int64_t kWidths[] = {4, 7, 64, 1028};  // of a sample's last dimension, beside its own

class FusedTrial {
 public:
  explicit FusedTrial(ChildContext& context)
      : tell_(context.tell()),
        device_(context.device()),
        queue_(Queue::create(device_)),
        set_(context.plugin()),
        layers_(context.plugins()),
        directory_(context.job().directory) {
    for (const Provision& p : context.manifest().provides)
      if (p.op.find('.') != std::string::npos) offered_.insert(p.op);
  }

  void run() {
    for (const LayerType* type : layers_.types_of(set_.id())) {
      tell_.at(check::layer(type->name(), "kernels"), "looking for fused ops of " + type->name());
      for (const LayerExample& example : examples(*type))
        for (const int64_t batch : kBatches) try_example(type->name(), example, batch);
    }
    for (const std::string& op : offered_) {
      if (served_.count(op) > 0)
        tell_.ran(check::kOffers);
      else
        tell_.failed(check::kOffers,
                     op +
                         ": no layer of this plugin, with the keys and inputs that were tried, has "
                         "this op in a form that its kernels serve; give one in verify.json" +
                         (declined_.empty() ? "" : ". The last refusal: " + declined_));
    }
  }

 private:
  // Also with other widths.
  std::vector<LayerExample> examples(const LayerType& type) {
    std::vector<LayerExample> found;
    try {
      found = given_examples(directory_, type.name());
      if (found.empty()) found = find_examples(type, layers_);
    } catch (const Error&) {
      return {};  // the layer's own checks say so
    }
    const LayerExample first = found.front();
    for (const int64_t width : kWidths) {
      LayerExample other = first;
      if (other.sample.shape.rank() == 0 || !is_float(other.sample.dtype)) break;
      other.sample.shape[other.sample.shape.rank() - 1] = width;
      try {
        trace_example(other, layers_, true);
        found.push_back(other);
      } catch (const Error&) {
        continue;  // the layer does not take it
      }
    }
    return found;
  }

  void try_example(const std::string& type, const LayerExample& example, int64_t batch) {
    std::vector<int64_t> dims = {batch};
    for (const int64_t d : example.sample.shape.dims()) dims.push_back(d);
    const TensorDesc input{example.sample.dtype, Shape(std::move(dims))};
    const std::vector<TensorDesc> in(layers_.find(type).n_in(), input);
    for (const FusedCase& c : fused_cases(layers_, example.config, in)) {
      if (offered_.count(c.row.name) == 0) continue;
      const bool gradient =
          c.row.name == gradient_name(c.row.name.substr(0, c.row.name.rfind('.')));
      const std::string check = check::layer(type, gradient ? "kernel_gradients" : "kernels");
      const std::string what =
          c.row.name + " of " + example.text() + ", batch " + std::to_string(batch);
      tell_.guard([&] { try_case(check, what, c); });
    }
  }

  void try_case(const std::string& check, const std::string& what, const FusedCase& c) {
    tell_.at(check, "planning " + what);
    const KernelQuestion question{c.row, c.in, c.out, c.attrs};
    OpCase with_values = with_inputs(c, kSeed);
    with_values.tolerance = kTolerance;
    const OpCheck judge(c.row, with_values, kSeed);
    for (const std::string& variant : set_.variants(device_, question)) {
      std::string reason;
      const auto recipe = set_.plan(device_, question, variant, &reason);
      if (recipe == nullptr) declined_ = reason;
      if (recipe == nullptr) continue;
      served_.insert(c.row.name);
      tell_.at(check, "running " + variant + ", " + what);
      const OpVerdict verdict = judge.judge(*queue_, *recipe);
      if (!verdict.right()) tell_.failed(check, variant + ", " + what + ": " + verdict.text());
      tell_.ran(check);
    }
    std::string reason;
    if (set_.plan(device_, question, "", &reason) == nullptr) declined_ = reason;
  }

  Teller& tell_;
  Device& device_;
  const std::shared_ptr<Queue> queue_;
  const KernelSet set_;
  LayerSet layers_;
  const std::string directory_;
  std::set<std::string> offered_, served_;
  std::string declined_;
};

}  // namespace

void run_fused_unit(ChildContext& context) { FusedTrial(context).run(); }

}  // namespace netcl::app::verify
