// A LeNet written from ops, trained on several devices: its parameters are a list, its forward part
// is a function on a tape, and gradients come from the tape. For 8x8 digits the convolutions are
// 3x3; for MNIST the network is LeNet-5's, with ReLU and max pooling.
// Source: LeCun, Bottou, Bengio, Haffner, "Gradient-based learning applied to document
// recognition", Proc. IEEE 86 (1998).
//
// Build:  bazel build //apps/examples/cpp:lenet
// Run:    NETCL_PLUGIN_PATH=bazel-bin/plugins/dir bazel-bin/apps/examples/cpp/lenet
//             apps/examples/data/digits.csv.gz|FOLDER_OF_MNIST [devices] [epochs]
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <vector>

#include "apps/examples/cpp/digits.h"
#include "core/distributed/device_manager.h"
#include "core/distributed/parameter_replicas.h"
#include "core/nn/step_losses.h"
#include "core/optim/optimizers.h"

namespace {

using netcl::Shape;
using netcl::Tape;
using netcl::ValueId;
using Params = std::vector<ValueId>;
using Ints = std::vector<int64_t>;

// What depends on the images' size.
struct Sizes {
  int64_t side;                // of an image
  int64_t kernel;              // of both convolutions
  int64_t padding1, padding2;  // of each
  int64_t flat;                // features behind the second pooling

  static Sizes of(int64_t side) {
    // 8 -> conv 3, padding 1 -> 8 -> pool -> 4 -> conv 3, padding 1 -> 4 -> pool -> 2
    // 28 -> conv 5, padding 2 -> 28 -> pool -> 14 -> conv 5 -> 10 -> pool -> 5
    return side == 8 ? Sizes{8, 3, 1, 1, 16 * 4} : Sizes{28, 5, 2, 0, 16 * 25};
  }
};

netcl::ParameterList lenet_parameters(const Sizes& s) {
  netcl::ParameterList out(/*seed=*/1);
  const auto layer = [&](const std::string& name, const Shape& weight) {
    const int64_t fan_in = weight.num_elements() / weight[0];
    const double limit = 1 / std::sqrt(static_cast<double>(fan_in));
    out.uniform(name + ".weight", weight, limit).uniform(name + ".bias", {weight[0]}, limit);
  };
  layer("conv1", {6, 1, s.kernel, s.kernel});
  layer("conv2", {16, 6, s.kernel, s.kernel});
  layer("full1", {120, s.flat});
  layer("full2", {84, 120});
  layer("full3", {10, 84});
  return out;
}

ValueId convolve(Tape& tape, ValueId x, ValueId weight, ValueId bias, int64_t padding) {
  const ValueId y = tape.call("conv2d", {x, weight, bias}, {{"padding", Ints{padding, padding}}});
  return tape.apply("max_pool2d", {tape.call("relu", {y})}, {{"kernel", Ints{2, 2}}})[0];
}

ValueId full(Tape& tape, ValueId x, ValueId weight, ValueId bias) {
  return tape.call("matmul", {x, weight, bias}, {{"transpose_b", int64_t{1}}});
}

ValueId logits(Tape& tape, const Params& p, ValueId images, const Sizes& s) {
  const int64_t rows = tape.desc(images).shape[0];
  ValueId x = convolve(tape, images, p[0], p[1], s.padding1);
  x = convolve(tape, x, p[2], p[3], s.padding2);
  x = tape.call("reshape", {x}, {{"shape", Shape{rows, s.flat}}});
  x = tape.call("relu", {full(tape, x, p[4], p[5])});
  x = tape.call("relu", {full(tape, x, p[6], p[7])});
  return full(tape, x, p[8], p[9]);
}

// One training step on all replicas; the mean loss of the batch.
double train_batch(netcl::ParameterReplicas& replicas, const netcl::Batch& batch, const Sizes& s) {
  const netcl::StepFunction step = [&s](Tape& tape, const Params& p, ValueId x, ValueId y) {
    return netcl::cross_entropy(tape, logits(tape, p, x, s), y);
  };
  const auto shards = netcl::shard_batch(batch, replicas.plan());
  replicas.zero_grad();
  for (size_t r = 0; r < replicas.size(); ++r) replicas[r].forward_backward(shards[r], step);
  netcl::sync_grads(replicas);
  replicas.step();
  return replicas.loss();
}

// Part of the samples whose highest score is their class's; on the first replica, in pieces.
double accuracy(netcl::ParameterReplica& replica, const netcl::examples::Samples& samples,
                const Sizes& s) {
  const auto n = static_cast<int64_t>(samples.y.size()), pixels = s.side * s.side;
  constexpr int64_t kPiece = 500;
  int64_t right = 0;
  for (int64_t first = 0; first < n; first += kPiece) {
    const int64_t rows = std::min(kPiece, n - first);
    Tape tape(replica.eager());
    Params p;
    for (const netcl::Tensor& tensor : replica.parameters()) p.push_back(tape.watch(tensor));
    const ValueId x = tape.watch(netcl::Tensor::from_host(
        replica.queue(), {netcl::DType::kF32, Shape{rows, 1, s.side, s.side}},
        samples.x.data() + first * pixels));
    const std::vector<float> scores = tape.tensor(logits(tape, p, x, s)).to_floats();
    for (int64_t i = 0; i < rows; ++i) {
      const auto row = scores.begin() + i * 10;
      const auto guess = std::max_element(row, row + 10) - row;
      right += guess == samples.y[static_cast<size_t>(first + i)] ? 1 : 0;
    }
  }
  return static_cast<double>(right) / static_cast<double>(n);
}

int run(const std::string& path, const std::string& devices, int epochs) {
  const netcl::examples::Digits data = std::filesystem::is_directory(path)
                                           ? netcl::examples::load_mnist(path)
                                           : netcl::examples::load_digits(path);
  const Sizes sizes = Sizes::of(data.side);
  netcl::Runtime runtime;
  netcl::ParameterOptions options;
  options.sample = Shape{1, data.side, data.side};
  auto replicas = netcl::prepare_replicas(runtime, lenet_parameters(sizes),
                                          netcl::DeviceManager(runtime).queues(devices),
                                          netcl::AdamW{.lr = 5e-3}, options);
  std::printf("LeNet for %lldx%lld images on %zu replicas\n", static_cast<long long>(data.side),
              static_cast<long long>(data.side), replicas.size());
  for (int epoch = 0; epoch < epochs; ++epoch) {
    double loss = 0;
    const auto batches = netcl::examples::batches(data.train, 64, epoch);
    for (const auto& [x, y] : batches) loss += train_batch(replicas, {x, y}, sizes);
    std::printf("epoch %d: loss %.4f\n", epoch + 1, loss / static_cast<double>(batches.size()));
  }
  std::printf("test: accuracy %.4f of %zu samples\n", accuracy(replicas[0], data.test, sizes),
              data.test.y.size());
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2) {
    std::fprintf(stderr, "usage: lenet digits.csv.gz|MNIST_FOLDER [devices] [epochs]\n");
    return 2;
  }
  try {
    return run(argv[1], argc > 2 ? argv[2] : "all", argc > 3 ? std::atoi(argv[3]) : 15);
  } catch (const netcl::Error& e) {
    std::fprintf(stderr, "lenet: %s\n", e.what());
    return netcl::exit_code(e.code());
  }
}
