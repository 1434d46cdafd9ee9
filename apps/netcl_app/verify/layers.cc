// The checks of a layer: with examples that verify.json gives or that are found by trying.
#include "apps/netcl_app/verify/child.h"
#include "core/base/error.h"
#include "core/runtime/layer_set.h"
#include "core/verify/layer_check.h"

namespace netcl::app::verify {

namespace {

class LayerTrial {
 public:
  LayerTrial(ChildContext& context, const std::string& type)
      : tell_(context.tell()), type_(type), layers_(context.plugins()) {
    at("shapes", "finding keys and an input that it takes");
    const LayerType& known = layers_.find(type);
    examples_ = given_examples(context.job().directory, type);
    if (examples_.empty()) examples_ = find_examples(known, layers_);
    const bool large = is_large(trace_example(examples_.front(), layers_, true));
    const size_t most = large ? 1 : context.job().quick ? 2 : examples_.size();
    if (examples_.size() > most) examples_.resize(most);
  }

  void run() {
    for (const LayerExample& example : examples_) {
      try_one("shapes", example, [&] { return check_layer_shapes(example, layers_); });
      try_one("gradients", example, [&] { return check_layer_gradients(example, layers_); });
    }
    try_one("replay", examples_.front(), [&] { return check_layer_replay(examples_, layers_); });
    try_one("attributes", examples_.front(),
            [&] { return check_layer_attributes(examples_.front(), layers_); });
  }

 private:
  void at(const std::string& part, const std::string& doing) {
    tell_.at(check::layer(type_, part), "layer " + type_ + ": " + doing);
  }

  template <typename Body>
  void try_one(const std::string& part, const LayerExample& example, Body&& body) {
    at(part, part + " with " + example.text());
    tell_.guard([&] {
      const LayerFindings found = body();
      for (const std::string& wrong : found.wrong)
        tell_.failed(check::layer(type_, part), example.text() + ": " + wrong);
      if (found.tried > 0) tell_.ran(check::layer(type_, part), found.tried);
    });
  }

  Teller& tell_;
  const std::string type_;
  LayerSet layers_;
  std::vector<LayerExample> examples_;
};

}  // namespace

void run_layer_unit(ChildContext& context, const std::string& type) {
  LayerTrial(context, type).run();
}

}  // namespace netcl::app::verify
