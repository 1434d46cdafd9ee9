// Runs recipes with plain OpenCL on the first device found: a host small enough to read, for tests
// of kernel sets without the core. One thread.
#ifndef NETCL_TESTS_PLUGINS_PACK_CL_RUNNER_H_
#define NETCL_TESTS_PLUGINS_PACK_CL_RUNNER_H_

#include <CL/cl.h>

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "core/abi/netcl_plugin.hpp"
#include "tests/plugins/fake_host.h"
#include "tests/plugins/pack/op_key.h"

namespace netcl {
namespace testing {

// The bytes of a tensor; elements have 4 bytes (f32, i32) or 1 (u8, bool).
using Bytes = std::vector<unsigned char>;

template <typename T>
Bytes to_bytes(const std::vector<T>& values) {
  const auto* begin = reinterpret_cast<const unsigned char*>(values.data());
  return Bytes(begin, begin + values.size() * sizeof(T));
}
template <typename T>
std::vector<T> from_bytes(const Bytes& bytes) {
  const auto* begin = reinterpret_cast<const T*>(bytes.data());
  return std::vector<T>(begin, begin + bytes.size() / sizeof(T));
}

class ClRunner {
 public:
  // `plugin_dir` holds plugin.json, variants.json and the sources. Throws std::runtime_error.
  explicit ClRunner(const std::string& plugin_dir);
  ~ClRunner();
  ClRunner(const ClRunner&) = delete;
  ClRunner& operator=(const ClRunner&) = delete;

  // Ids of the variants that serve the key on this device.
  std::vector<std::string> variants(const OpKey& key);
  // Plans the variant ("": the best), runs it `repeats` times and returns the outputs, which were
  // poisoned with NaN bits before. Seconds of the fastest run in `seconds`, if given.
  std::vector<Bytes> run(const OpKey& key, const std::vector<Bytes>& inputs,
                         const std::string& variant = "", int repeats = 1,
                         double* seconds = nullptr);
  const std::string& device_name() const { return name_; }

 private:
  struct Memory;
  void launch(const netcl_launch& launch, const Memory& memory);
  cl_kernel kernel(const netcl_launch& launch);
  void query_device();

  FakeDevice facts_;
  FakeCall call_;
  netcl_host host_;
  netcl_plugin_api api_{};
  const netcl_kernels_api* kernels_ = nullptr;
  std::string name_;
  cl_device_id device_ = nullptr;
  cl_context context_ = nullptr;
  cl_command_queue queue_ = nullptr;
  std::map<std::string, std::pair<cl_program, cl_kernel>> kernels_built_;
};

}  // namespace testing
}  // namespace netcl

#endif  // NETCL_TESTS_PLUGINS_PACK_CL_RUNNER_H_
