// What the comparisons with PyTorch share: stored values, tensors on the device, layers traced with
// given slots. Threads: one.
#ifndef NETCL_TESTS_PYTORCH_HARNESS_H_
#define NETCL_TESTS_PYTORCH_HARNESS_H_

#include <functional>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "core/nn/tracer.h"
#include "core/runtime/layer_set.h"
#include "tests/ops/device_fixture.h"

namespace netcl {
namespace testing {

using nlohmann::ordered_json;

// tests/pytorch/NAME.json.
ordered_json read_reference(const std::string& name);
// {"shape", "data", "dtype" (f32)}; a text among the data stands for minus infinity.
HostTensor host_tensor(const ordered_json& json);
Attrs attrs_of(const ordered_json& json);

Tensor upload(const HostTensor& t);
HostTensor download(const Tensor& t);

// Keeps the largest of the differences that a program's comparisons met, each relative to the
// largest element of its tensor; it is printed at the end.
void note_difference(double relative);

// Elements may differ by `tolerance` times the largest element.
void expect_near(const HostTensor& got, const ordered_json& want, double tolerance,
                 const std::string& what);

// Gives a slot of a layer its value; `name` is the layer's own name for it.
using SlotValue = std::function<ValueId(const std::string& name, const Slot& slot)>;

// The one layer of a model, traced.
struct TracedLayer {
  // Errors: as Tracer::sequence.
  TracedLayer(Recorder& recorder, const ordered_json& config, ValueId x, const SlotValue& value,
              bool training = false);

  ValueId y = 0;
  std::vector<Slot> declared;
  std::map<std::string, ValueId> slots;    // by the layer's own names
  std::map<std::string, ValueId> updates;  // next values of statistics, likewise
};

}  // namespace testing
}  // namespace netcl

#endif  // NETCL_TESTS_PYTORCH_HARNESS_H_
