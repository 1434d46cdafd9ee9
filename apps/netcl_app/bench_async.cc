#include "apps/netcl_app/bench_async.h"

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <fstream>

#include "core/base/environment.h"
#include "core/base/statistics.h"
#include "core/ops/op.h"

namespace netcl::app {

namespace {

constexpr int64_t kElements = 1024;  // of an incremented tensor

double now_s() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

template <typename Body>
double seconds_of(Body&& body) {
  const double start = now_s();
  body();
  return now_s() - start;
}

int64_t resident_bytes() {
  std::ifstream file("/proc/self/statm");
  int64_t total = 0, resident = 0;
  file >> total >> resident;
  return resident * ::sysconf(_SC_PAGESIZE);
}

Tensor filled(BenchDevice& device, float value) {
  return Tensor::from_floats(device.queue(), {kElements}, std::vector<float>(kElements, value));
}

bool all_equal(const std::vector<float>& values, double wanted) {
  return std::all_of(values.begin(), values.end(),
                     [&](float v) { return v == static_cast<float>(wanted); });
}

// Element i of a matrix of small numbers without a pattern, the same in every run.
float element(int64_t i, int64_t seed) {
  const auto bits = static_cast<uint32_t>((i + 1) * 2654435761 + seed * 40503);
  return static_cast<float>((bits >> 8) % 2001) / 1000.0f - 1.0f;
}

struct Product {
  std::vector<float> a, b;
  std::vector<double> c;  // in double precision
};

Product make_product(int64_t n) {
  const auto size = static_cast<size_t>(n);
  Product out{std::vector<float>(size * size), std::vector<float>(size * size),
              std::vector<double>(size * size)};
  for (size_t i = 0; i < size * size; ++i) {
    out.a[i] = element(static_cast<int64_t>(i), 1);
    out.b[i] = element(static_cast<int64_t>(i), 2);
  }
  for (size_t i = 0; i < size; ++i) {
    for (size_t k = 0; k < size; ++k) {
      const double x = out.a[i * size + k];
      for (size_t j = 0; j < size; ++j) out.c[i * size + j] += x * out.b[k * size + j];
    }
  }
  return out;
}

double max_rel_err(const std::vector<float>& got, const std::vector<double>& wanted) {
  double largest = 0, error = 0;
  for (size_t i = 0; i < wanted.size(); ++i) {
    largest = std::max(largest, std::abs(wanted[i]));
    const double e = std::abs(got[i] - wanted[i]);
    error = std::isfinite(e) ? std::max(error, e) : INFINITY;
  }
  return error / largest;
}

// Rounding of n single-precision sums, relative to the largest of them.
double tolerance(int64_t n) { return 1e-7 * static_cast<double>(n); }

// The bare loop that the increments are compared with: one kernel, in place, arguments set once.
class RawLoop {
 public:
  explicit RawLoop(Device& device) : device_(device), queue_(device.make_queue()) {
    buffer_ = device.make_buffer(kElements * sizeof(float), "a bare loop");
    const cl::Program program = device.programs().get(
        "__kernel void increment(__global float* x) { x[get_global_id(0)] += 1.0f; }\n", "");
    with_cl_errors("a bare loop", [&] {
      kernel_ = cl::Kernel(program, "increment");
      kernel_.setArg(0, buffer_);
    });
  }

  // Seconds of `count` launches, waiting after each or once. Ends with every element = count.
  double run(int count, bool wait_each) {
    return with_cl_errors("a bare loop", [&] {
      queue_.enqueueFillBuffer(buffer_, 0.0f, 0, kElements * sizeof(float));
      queue_.finish();
      return seconds_of([&] {
        for (int i = 0; i < count; ++i) {
          queue_.enqueueNDRangeKernel(kernel_, cl::NullRange, cl::NDRange(kElements));
          if (wait_each) queue_.finish();
        }
        queue_.finish();
      });
    });
  }

  bool holds(double wanted) const {
    std::vector<float> values(kElements);
    queue_.enqueueReadBuffer(buffer_, CL_TRUE, 0, kElements * sizeof(float), values.data());
    return all_equal(values, wanted);
  }

 private:
  Device& device_;
  cl::CommandQueue queue_;
  cl::Buffer buffer_;
  cl::Kernel kernel_;
};

// One device's share of the work of bench_two_devices: products of a size that takes a while.
class ProductLoad {
 public:
  explicit ProductLoad(BenchDevice& device) : device_(device) {
    constexpr double kLongEnough = 0.004;
    for (size_ = 64; size_ <= 512; size_ *= 2) {
      product_ = make_product(size_);
      a_ = Tensor::from_floats(device.queue(), {size_, size_}, product_.a);
      b_ = Tensor::from_floats(device.queue(), {size_, size_}, product_.b);
      device_.multiply(a_, b_).wait_to_read();  // builds the kernel
      product_s_ =
          INFINITY;  // the least of a few: what else the machine does must not change the shares
      for (int i = 0; i < 7; ++i) {
        product_s_ =
            std::min(product_s_, seconds_of([&] { device_.multiply(a_, b_).wait_to_read(); }));
      }
      if (product_s_ >= kLongEnough) break;
    }
  }

  double product_s() const { return product_s_; }
  int64_t count() const { return count_; }
  void fill(double seconds) { count_ = std::max<int64_t>(1, std::llround(seconds / product_s_)); }
  void enqueue() {
    for (int64_t i = 0; i < count_; ++i) last_ = device_.multiply(a_, b_);
    with_cl_errors("flushing a queue", [&] { device_.queue()->cl().flush(); });
  }
  void wait() { device_.queue()->finish(); }
  bool correct() const {
    return max_rel_err(last_.to_floats(), product_.c) <= tolerance(last_.shape()[0]);
  }

 private:
  BenchDevice& device_;
  Product product_;
  Tensor a_, b_, last_;
  int64_t size_ = 0, count_ = 1;
  double product_s_ = 0;
};

}  // namespace

BenchDevice::BenchDevice(FoundDevice found, KernelProvider& kernels, Logger log)
    : device_(std::move(found), environment::cache_dir(), std::move(log)),
      queue_(Queue::create(device_)),
      eager_(kernels, queue_),
      scale_(find_op("scale")),
      matmul_(find_op("matmul")),
      increment_attrs_(complete_attrs(scale_, {{"offset", 1.0}})),
      matmul_attrs_(complete_attrs(matmul_, {})) {}

Tensor BenchDevice::increment(const Tensor& x) {
  return std::move(eager_.run(scale_, {x}, {x.desc()}, increment_attrs_).front());
}

Tensor BenchDevice::multiply(const Tensor& a, const Tensor& b) {
  return std::move(eager_.run(matmul_, {a, b}, {a.desc()}, matmul_attrs_).front());
}

Json bench_increments(BenchDevice& device, const AsyncBenchOptions& options) {
  const int count = options.increments;
  RawLoop raw(device.device());
  bool correct = true;
  const auto run = [&](bool wait_each) {
    Tensor x = filled(device, 0);
    const double seconds = seconds_of([&] {
      for (int i = 0; i < count; ++i) {
        x = device.increment(x);
        if (wait_each) x.wait_to_read();
      }
      x.wait_to_read();
    });
    correct = correct && all_equal(x.to_floats(), count);
    return seconds;
  };
  run(false);  // builds the kernels
  raw.run(count, false);
  std::vector<double> async, sync, raw_async, raw_sync;
  for (int i = 0; i < options.repeats;
       ++i) {  // side by side, so that a busy machine slows all alike
    async.push_back(run(false));
    raw_async.push_back(raw.run(count, false));
    correct = correct && raw.holds(count);
    sync.push_back(run(true));
    raw_sync.push_back(raw.run(count, true));
  }
  return {{"count", count},
          {"async_s", median(async)},
          {"sync_s", median(sync)},
          {"ratio", median(sync) / median(async)},
          {"raw_async_s", median(raw_async)},
          {"raw_sync_s", median(raw_sync)},
          {"raw_ratio", median(async) / median(raw_async)},
          {"correct", correct}};
}

Json bench_matmul(BenchDevice& device, const AsyncBenchOptions& options) {
  const int64_t n = options.matrix_size;
  const Product product = make_product(n);
  const Tensor a = Tensor::from_floats(device.queue(), {n, n}, product.a);
  const Tensor b = Tensor::from_floats(device.queue(), {n, n}, product.b);
  Tensor c = device.multiply(a, b);
  c.wait_to_read();
  std::vector<double> enqueue, finish;
  for (int i = 0; i < options.repeats; ++i) {
    const double start = now_s();
    c = device.multiply(a, b);
    enqueue.push_back(now_s() - start);
    c.wait_to_read();
    finish.push_back(now_s() - start);
  }
  const auto size = static_cast<double>(n);
  return {{"size", n},
          {"enqueue_s", median(enqueue)},
          {"finish_s", median(finish)},
          {"gflops", 2 * size * size * size / median(finish) * 1e-9},
          {"max_rel_err", max_rel_err(c.to_floats(), product.c)}};
}

Json bench_read(BenchDevice& device, const AsyncBenchOptions& options) {
  constexpr int kProducts = 8;
  const int64_t n = std::min<int64_t>(options.matrix_size, 512);
  const Tensor a(device.queue(), {DType::kF32, {n, n}});
  device.multiply(a, a).wait_to_read();
  const Tensor x = filled(device, 41);
  bool correct = true;
  std::vector<double> read, all;
  for (int i = 0; i < options.repeats; ++i) {
    const double start = now_s();
    const Tensor y = device.increment(x);
    for (int p = 0; p < kProducts; ++p) device.multiply(a, a);
    correct = all_equal(y.to_floats(), 42) && correct;
    read.push_back(now_s() - start);
    device.queue()->finish();
    all.push_back(now_s() - start);
  }
  return {{"read_s", median(read)}, {"all_s", median(all)}, {"correct", correct}};
}

Json bench_two_devices(BenchDevice& first, BenchDevice& second, const AsyncBenchOptions& options) {
  constexpr double kSeconds = 0.15;
  ProductLoad a(first), b(second);
  const double target = std::max({kSeconds, a.product_s(), b.product_s()});
  a.fill(target);
  b.fill(target);
  std::vector<double> serial, parallel;
  for (int i = 0; i < options.repeats; ++i) {
    serial.push_back(seconds_of([&] {
      a.enqueue();
      a.wait();
      b.enqueue();
      b.wait();
    }));
    parallel.push_back(seconds_of([&] {
      a.enqueue();
      b.enqueue();
      a.wait();
      b.wait();
    }));
  }
  return {{"devices", {first.selector(), second.selector()}},
          {"products", {a.count(), b.count()}},
          {"serial_s", median(serial)},
          {"parallel_s", median(parallel)},
          {"ratio", median(serial) / median(parallel)},
          {"correct", a.correct() && b.correct()}};
}

Json bench_bounded(BenchDevice& device, const AsyncBenchOptions& options) {
  const auto resident_after = [&](Tensor& x, int count) {
    for (int i = 0; i < count; ++i) x = device.increment(x);
    return resident_bytes();  // with work in flight
  };
  const int warm_up = options.bounded_ops / 10;
  Tensor x = filled(device, 0);
  const double start = now_s();
  const int64_t resident = resident_after(x, warm_up);
  const size_t pool = device.queue()->pool_bytes();
  const int64_t growth = resident_after(x, options.bounded_ops - warm_up) - resident;
  const std::vector<float> values = x.to_floats();
  const double seconds = now_s() - start;
  return {{"ops", options.bounded_ops},
          {"seconds", seconds},
          {"pool_bytes", device.queue()->pool_bytes()},
          {"pool_growth_bytes", device.queue()->pool_bytes() - pool},
          {"rss_growth_bytes", growth},
          {"correct", all_equal(values, options.bounded_ops)}};
}

}  // namespace netcl::app
