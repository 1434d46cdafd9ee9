#include "tests/pytorch/harness.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <fstream>
#include <limits>

#include "core/base/error.h"
#include "core/verify/host_bytes.h"

namespace netcl {
namespace testing {

namespace {

constexpr const char* kPlace = "layers.0.";  // of the layer in its model

}  // namespace

ordered_json read_reference(const std::string& name) {
  std::ifstream file("tests/pytorch/" + name + ".json");
  return ordered_json::parse(file);
}

HostTensor host_tensor(const ordered_json& json) {
  const std::string dtype = json.value("dtype", "f32");
  HostTensor t{{dtype_named(dtype), Shape(json.at("shape").get<std::vector<int64_t>>())}, {}};
  for (const ordered_json& x : json.at("data")) {
    t.data.push_back(x.is_string() ? -std::numeric_limits<double>::infinity() : x.get<double>());
  }
  return t;
}

Attrs attrs_of(const ordered_json& json) {
  Attrs out;
  for (const auto& [key, value] : json.items()) {
    if (value.is_array()) {
      out.set(key, value.get<std::vector<int64_t>>());
    } else if (value.is_number_float()) {
      out.set(key, value.get<double>());
    } else {
      out.set(key, value.get<int64_t>());
    }
  }
  return out;
}

Tensor upload(const HostTensor& t) {
  return Tensor::from_host(shared_device().queue(), t.desc, to_bytes(t).data());
}

HostTensor download(const Tensor& t) {
  std::vector<uint8_t> bytes(t.desc().size_bytes());
  t.copy_to_host(bytes.data());
  return from_bytes(t.desc(), bytes);
}

namespace {

class LargestDifference : public ::testing::Environment {
 public:
  void note(double relative) {
    largest_ = std::max(largest_, relative);
    ++count_;
  }
  void TearDown() override {
    std::printf(
        "%zu numbers compared with PyTorch's; largest difference %.1e of the largest element\n",
        count_, largest_);
  }

 private:
  double largest_ = 0;
  size_t count_ = 0;
};

auto* const g_largest =
    static_cast<LargestDifference*>(::testing::AddGlobalTestEnvironment(new LargestDifference));

}  // namespace

void note_difference(double relative) { g_largest->note(relative); }

void expect_near(const HostTensor& got, const ordered_json& want, double tolerance,
                 const std::string& what) {
  SCOPED_TRACE(what);
  const HostTensor wanted = host_tensor(want);
  ASSERT_EQ(got.desc, wanted.desc) << got.desc.str() << " against " << wanted.desc.str();
  double largest = 1e-3;
  for (const double x : wanted.data) largest = std::max(largest, std::fabs(x));
  for (size_t i = 0; i < wanted.data.size(); ++i) {
    ASSERT_NEAR(got.data[i], wanted.data[i], tolerance * largest) << "element " << i;
    const bool equal = got.data[i] == wanted.data[i];  // infinities too
    note_difference(equal ? 0 : std::fabs(got.data[i] - wanted.data[i]) / largest);
  }
}

TracedLayer::TracedLayer(Recorder& recorder, const ordered_json& config, ValueId x,
                         const SlotValue& value, bool training) {
  LayerSet layers(shared_device().plugins());
  const auto own_name = [](const std::string& slot) {
    return slot.substr(std::string(kPlace).size());
  };
  Tracer tracer(
      recorder, layers, declared,
      [&](const Slot& slot) {
        const std::string name = own_name(slot.name);
        return slots[name] = value(name, slot);
      },
      []() -> ValueId { fail(ErrorCode::kUsage, "no random state"); },
      TraceOptions{training, nullptr});
  y = tracer.sequence(ordered_json::array({config}), "model.layers", x);
  for (const SlotUpdate& update : tracer.updates()) updates[own_name(update.slot)] = update.next;
}

}  // namespace testing
}  // namespace netcl
