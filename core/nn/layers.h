// A model's layers as a program writes them down: Linear(784, 256), Relu(), ... Each is a
// configuration object, as a file would hold it; the layers themselves come from plugins.
// Threads: values.
#ifndef NETCL_CORE_NN_LAYERS_H_
#define NETCL_CORE_NN_LAYERS_H_

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace netcl {

// Any layer that a plugin offers: its type and its keys (apps/README.md lists them).
struct LayerSpec {
  nlohmann::ordered_json config;
  // Inputs (features or channels) that the program expects it to have, and the elements that its
  // weight then has; 0: it says nothing. Checked when the model is made.
  int64_t in = 0, weight_elements = 0;

  explicit LayerSpec(const std::string& type, const nlohmann::ordered_json& keys = {});
};

// y = x W^T + b from `in` to `out` features.
struct Linear : LayerSpec {
  Linear(int64_t in, int64_t out, bool bias = true);
};

// Square kernels over [B,C,H,W].
struct Conv2dOptions {
  int64_t stride = 1, padding = 0;
  bool bias = true;
};
struct Conv2d : LayerSpec {
  Conv2d(int64_t in, int64_t out, int64_t kernel, const Conv2dOptions& options = {});
};
struct MaxPool2d : LayerSpec {
  explicit MaxPool2d(int64_t kernel);
};
struct AvgPool2d : LayerSpec {
  explicit AvgPool2d(int64_t kernel);
};

struct Relu : LayerSpec {
  Relu() : LayerSpec("relu") {}
};
struct Gelu : LayerSpec {
  Gelu() : LayerSpec("gelu") {}
};
struct Tanh : LayerSpec {
  Tanh() : LayerSpec("tanh") {}
};
struct Sigmoid : LayerSpec {
  Sigmoid() : LayerSpec("sigmoid") {}
};
struct Flatten : LayerSpec {
  Flatten() : LayerSpec("flatten") {}
};
// Drops elements with probability p, in training only.
struct Dropout : LayerSpec {
  explicit Dropout(double p);
};
// `sync`: over the whole batch instead of each replica's shard.
struct BatchNorm : LayerSpec {
  explicit BatchNorm(bool sync = false);
};

}  // namespace netcl

#endif  // NETCL_CORE_NN_LAYERS_H_
