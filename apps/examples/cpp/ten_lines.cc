// Trains a small network on whatever devices there are.
#include <cstdio>

#include "apps/examples/cpp/digits.h"
#include "core/distributed/device_manager.h"
#include "core/distributed/replicas.h"
#include "core/optim/optimizers.h"

int main(int argc, char** argv) {
  netcl::Runtime rt;  // finds devices and plugins
  auto queues = netcl::DeviceManager(rt).queues(argc > 2 ? argv[2] : "all");
  auto model = netcl::Sequential(rt, {netcl::Linear(64, 64), netcl::Relu(), netcl::Linear(64, 10)});
  auto replicas = netcl::prepare_replicas(model, queues, netcl::AdamW{.lr = 1e-2});
  const auto data = netcl::examples::load_digits(argc > 1 ? argv[1] : "digits.csv.gz");
  for (int epoch = 0; epoch < 5; ++epoch)
    for (const auto& [x, y] : netcl::examples::batches(data.train, 64, epoch))
      netcl::data_parallel_step(replicas, {x, y});
  std::printf("accuracy %.3f\n", replicas.evaluate({data.test.x, data.test.y}).accuracy());
}
