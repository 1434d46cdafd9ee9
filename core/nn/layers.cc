#include "core/nn/layers.h"

#include "core/base/error.h"

namespace netcl {

namespace {

using Json = nlohmann::ordered_json;

int64_t positive(const char* layer, const char* key, int64_t value) {
  NETCL_CHECK(value > 0, ErrorCode::kUsage, layer, ": ", key, " must be at least 1, is ", value);
  return value;
}

}  // namespace

LayerSpec::LayerSpec(const std::string& type, const Json& keys) {
  config["type"] = type;
  for (const auto& [key, value] : keys.items()) config[key] = value;
}

Linear::Linear(int64_t inputs, int64_t out, bool bias)
    : LayerSpec("linear", {{"out", positive("Linear", "out", out)}, {"bias", bias}}) {
  in = positive("Linear", "in", inputs);
  weight_elements = in * out;
}

Conv2d::Conv2d(int64_t inputs, int64_t out, int64_t kernel, const Conv2dOptions& options)
    : LayerSpec("conv2d", {{"out", positive("Conv2d", "out", out)},
                           {"kernel", positive("Conv2d", "kernel", kernel)},
                           {"stride", options.stride},
                           {"padding", options.padding},
                           {"bias", options.bias}}) {
  in = positive("Conv2d", "in", inputs);
  weight_elements = in * out * kernel * kernel;
}

MaxPool2d::MaxPool2d(int64_t kernel)
    : LayerSpec("max_pool2d", {{"kernel", positive("MaxPool2d", "kernel", kernel)}}) {}

AvgPool2d::AvgPool2d(int64_t kernel)
    : LayerSpec("avg_pool2d", {{"kernel", positive("AvgPool2d", "kernel", kernel)}}) {}

Dropout::Dropout(double p) : LayerSpec("dropout", {{"p", p}}) {}

BatchNorm::BatchNorm(bool sync) : LayerSpec("batch_norm", {{"sync", sync}}) {}

}  // namespace netcl
