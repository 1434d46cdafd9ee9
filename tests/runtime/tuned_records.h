// Tuned records for tests.
#ifndef NETCL_TESTS_RUNTIME_TUNED_RECORDS_H_
#define NETCL_TESTS_RUNTIME_TUNED_RECORDS_H_

#include <string>
#include <vector>

#include "core/runtime/tuned_record.h"

namespace netcl {
namespace testing {

inline TunedDevice test_device() { return {"acme", "a1", "Acme One", 8, "gpu", 256, 32768, 0, 1}; }
inline TunedSoftware test_software() { return {"Acme CL", "OpenCL 3.0", "1.0"}; }

// Of a product of [m,k] and [k,n]; the default, by `usual`, took 20 us.
inline TunedRecord matmul_record(const std::vector<int64_t>& mkn, const std::string& plugin,
                                 const std::string& variant, double median_us) {
  TunedRecord out;
  out.question.op = "matmul";
  out.question.in = {{DType::kF32, Shape{mkn[0], mkn[1]}}, {DType::kF32, Shape{mkn[1], mkn[2]}}};
  out.device = test_device();
  out.software = test_software();
  out.plugin = plugin;
  out.content = "c0ffee";
  out.variant = variant;
  out.median_us = median_us;
  out.spread = 0.01;
  out.default_plugin = "usual";
  out.default_variant = "vec";
  out.default_us = 20;
  out.kernel_sets = {plugin, "usual"};
  out.check = "reference: written by hand";
  out.date = "2026-11-30";
  return out;
}

}  // namespace testing
}  // namespace netcl

#endif  // NETCL_TESTS_RUNTIME_TUNED_RECORDS_H_
