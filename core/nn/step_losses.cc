#include "core/nn/step_losses.h"

#include <numeric>

namespace netcl {

namespace {

ValueId sum_of(Recorder& recorder, ValueId value) {
  std::vector<int64_t> axes(recorder.desc(value).shape.rank());
  std::iota(axes.begin(), axes.end(), int64_t{0});
  return recorder.call("sum", {value}, {{"axes", axes}});
}

}  // namespace

LossSums cross_entropy(Recorder& recorder, ValueId logits, ValueId classes) {
  const std::vector<ValueId> rows = recorder.apply("cross_entropy", {logits, classes});
  LossSums out;
  out.loss = sum_of(recorder, rows[0]);
  out.denominator = sum_of(recorder, rows[1]);
  return out;
}

LossSums mean_squared_error(Recorder& recorder, ValueId output, ValueId targets) {
  LossSums out;
  out.loss = sum_of(recorder, recorder.apply("mse", {output, targets})[0]);
  out.denominator =
      recorder.call("full", {},
                    {{"shape", Shape{}},
                     {"value", static_cast<double>(recorder.desc(output).shape.num_elements())}});
  return out;
}

}  // namespace netcl
