// Measurements of `bench async`: what asynchronous execution is worth on a device. Each is repeated
// and gives medians, and each checks the results of the work that it times.
//
// They open OpenCL in this process. Times in seconds. Threads: one; devices run side by side by
// themselves.
#ifndef NETCL_APPS_NETCL_APP_BENCH_ASYNC_H_
#define NETCL_APPS_NETCL_APP_BENCH_ASYNC_H_

#include <memory>
#include <string>

#include "core/autograd/eager.h"
#include "core/base/json_doc.h"
#include "core/cl/device.h"

namespace netcl::app {

// A device with one queue on which ops run eagerly.
class BenchDevice {
 public:
  // Errors: kDevice.
  BenchDevice(FoundDevice found, KernelProvider& kernels, Logger log);

  const std::string& selector() const { return device_.info().selector; }
  Device& device() { return device_; }
  const std::shared_ptr<Queue>& queue() const { return queue_; }

  Tensor increment(const Tensor& x);                  // x + 1
  Tensor multiply(const Tensor& a, const Tensor& b);  // of two square matrices

 private:
  Device device_;
  std::shared_ptr<Queue> queue_;
  Eager eager_;
  const OpRow& scale_;
  const OpRow& matmul_;
  const Attrs increment_attrs_, matmul_attrs_;
};

struct AsyncBenchOptions {
  int repeats = 7;
  int increments = 10'000;  // of a tensor of 1,024 elements
  int64_t matrix_size = 1000;
  int bounded_ops = 1'000'000;
};

// Chained increments: enqueued and waited for once, with a wait after each, and as a bare OpenCL
// loop in place whose arguments are set once, both ways. Keys: count, async_s, sync_s, ratio (sync
// / async), raw_async_s, raw_sync_s, raw_ratio (async / raw_async), correct.
Json bench_increments(BenchDevice& device, const AsyncBenchOptions& options);

// One square product. Keys: size, enqueue_s (until the host goes on), finish_s (until it is done),
// gflops, max_rel_err (of the largest element of the product in double precision).
Json bench_matmul(BenchDevice& device, const AsyncBenchOptions& options);

// Reads an increment's result while products that were enqueued after it are still to be computed.
// Keys: read_s (until the value is there), all_s (until everything is), correct.
Json bench_read(BenchDevice& device, const AsyncBenchOptions& options);

// Independent products on two devices, the work of each made to take about as long as the other's:
// with a barrier between (first, wait, second, wait), and both enqueued before the waits. Keys:
// devices, products, serial_s, parallel_s, ratio (serial / parallel), correct.
Json bench_two_devices(BenchDevice& first, BenchDevice& second, const AsyncBenchOptions& options);

// Ops enqueued as fast as the host can. Keys: ops, seconds, pool_bytes (device memory held at the
// end), pool_growth_bytes and rss_growth_bytes (from after a tenth of the ops to the end), correct.
Json bench_bounded(BenchDevice& device, const AsyncBenchOptions& options);

}  // namespace netcl::app

#endif  // NETCL_APPS_NETCL_APP_BENCH_ASYNC_H_
