// The flow of data-parallel training, one call after the other: discover devices, replicate a
// model, cut each batch into shards, run each replica forward and backward, synchronise the
// gradients, step, broadcast.
//
// Build:  bazel build //apps/examples/cpp:tutorial
// Run:    NETCL_PLUGIN_PATH=bazel-bin/plugins/dir bazel-bin/apps/examples/cpp/tutorial
//             apps/examples/data/digits.csv.gz [devices: all, gpu, cpu:0/2, ...] [epochs]
#include <cstdio>
#include <cstdlib>
#include <string>

#include "apps/examples/cpp/digits.h"
#include "core/distributed/device_manager.h"
#include "core/distributed/replicas.h"
#include "core/optim/optimizers.h"

namespace {

int run(const std::string& file, const std::string& devices, int epochs) {
  // Discover.
  netcl::Runtime runtime;
  const netcl::DeviceManager manager(runtime);
  for (const netcl::DeviceInfo& info : manager.devices())
    std::printf("found %s (%s)\n", info.selector.c_str(), info.name.c_str());
  const auto queues = manager.queues(devices);

  // Replicate: every replica begins with the same values.
  const netcl::Sequential model(
      runtime, {netcl::Linear(64, 64), netcl::Relu(), netcl::Dropout(0.1), netcl::Linear(64, 10)});
  auto replicas = netcl::prepare_replicas(model, queues, netcl::AdamW{.lr = 1e-2});
  std::printf("%zu replicas of %lld parameters\n", replicas.size(),
              static_cast<long long>(replicas.graphs().num_parameters()));

  const netcl::examples::Digits data = netcl::examples::load_digits(file);
  for (int epoch = 0; epoch < epochs; ++epoch) {
    double loss = 0;
    const auto batches = netcl::examples::batches(data.train, 64, epoch);
    for (const auto& [x, y] : batches) {
      // Shard: each replica gets whole samples; the plan says how many.
      const auto shards = netcl::shard_batch({x, y}, replicas.plan());

      // Forward and backward on each; all work is enqueued before anything is waited for.
      replicas.zero_grad();
      for (size_t r = 0; r < replicas.size(); ++r) replicas[r].forward_backward(shards[r]);

      // Synchronise: sums over all replicas. Then the same step everywhere.
      netcl::sync_grads(replicas);
      for (size_t r = 0; r < replicas.size(); ++r) replicas[r].step();

      // Devices of different make round differently; now and then they become equal again.
      netcl::broadcast_params(replicas, netcl::BroadcastPolicy::every_steps(20));
      loss += replicas.loss();
    }
    std::printf("epoch %d: loss %.4f\n", epoch + 1, loss / static_cast<double>(batches.size()));
  }
  const netcl::Sums test = replicas.evaluate({data.test.x, data.test.y});
  std::printf("test: loss %.4f, accuracy %.4f of %zu samples\n", test.loss(), test.accuracy(),
              data.test.y.size());
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2) {
    std::fprintf(stderr, "usage: tutorial digits.csv.gz [devices] [epochs]\n");
    return 2;
  }
  try {
    return run(argv[1], argc > 2 ? argv[2] : "all", argc > 3 ? std::atoi(argv[3]) : 10);
  } catch (const netcl::Error& e) {
    std::fprintf(stderr, "tutorial: %s\n", e.what());
    return netcl::exit_code(e.code());
  }
}
