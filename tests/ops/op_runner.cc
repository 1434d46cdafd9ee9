// Runs single ops on a device, as requests in a file ask: the bridge by which suites in other
// languages (tests/onnx) try the op table.
//
// Usage: op_runner --requests=FILE.json --inputs=FILE.safetensors --outputs=FILE.safetensors
//        [--device=SELECTOR] [--plugins=DIR]
// Requests: [{"name": "case", "op": "matmul", "in": ["tensor", ...], "attrs": {...}}, ...]. Result k of
// a request becomes tensor "case/k"; a refusal becomes metadata "case": its message.
#include <fstream>
#include <iostream>
#include <nlohmann/json.hpp>

#include "core/autograd/tape.h"
#include "core/nn/safetensors.h"
#include "tests/ops/device_fixture.h"

namespace netcl {
namespace testing {
namespace {
using nlohmann::json;

Attrs::Item item_of(const json& value) {
  if (value.is_boolean()) return int64_t{value.get<bool>()};
  if (value.is_number_integer()) return value.get<int64_t>();
  if (value.is_number()) return value.get<double>();
  if (value.is_string()) return value.get<std::string>();
  return value.get<std::vector<int64_t>>();
}

void run(const json& request, const Safetensors& inputs, Safetensors* outputs) {
  DeviceFixture& f = shared_device();
  const std::string name = request.at("name");
  try {
    Tape tape(f.eager());
    std::vector<ValueId> in;
    for (const std::string tensor : request.at("in")) {
      const NamedTensor* found = inputs.find(tensor);
      NETCL_CHECK(found != nullptr, ErrorCode::kUsage, "no input tensor ", tensor);
      in.push_back(tape.watch(Tensor::from_host(f.queue(), found->desc(), found->bytes.data())));
    }
    Attrs attrs;
    const json given = request.value("attrs", json::object());
    for (const auto& [key, value] : given.items()) attrs.set(key, item_of(value));
    const std::vector<ValueId> out = tape.apply(request.at("op"), in, attrs);
    for (size_t k = 0; k < out.size(); ++k) {
      const TensorDesc& desc = tape.desc(out[k]);
      NamedTensor tensor{name + "/" + std::to_string(k), desc.dtype, desc.shape,
                         std::string(desc.size_bytes(), '\0')};
      tape.tensor(out[k]).copy_to_host(tensor.bytes.data());
      outputs->tensors.push_back(std::move(tensor));
    }
  } catch (const Error& e) {
    outputs->metadata[name] = e.message();
  }
}

std::string option(int argc, char** argv, const std::string& name) {
  const std::string prefix = "--" + name + "=";
  for (int i = 1; i < argc; ++i) {
    const std::string arg = argv[i];
    if (arg.rfind(prefix, 0) == 0) return arg.substr(prefix.size());
  }
  fail(ErrorCode::kUsage, "op_runner needs ", prefix, "FILE");
}

int main_of(int argc, char** argv) {
  set_device_args(&argc, argv);
  std::ifstream file(option(argc, argv, "requests"));
  const Safetensors inputs = read_safetensors(option(argc, argv, "inputs"));
  Safetensors outputs;
  const json requests = json::parse(file);
  for (const json& request : requests) run(request, inputs, &outputs);
  write_safetensors(option(argc, argv, "outputs"), outputs);
  close_shared_device();
  return 0;
}

}  // namespace
}  // namespace testing
}  // namespace netcl

int main(int argc, char** argv) {
  try {
    return netcl::testing::main_of(argc, argv);
  } catch (const std::exception& e) {
    std::cerr << e.what() << "\n";
    return 1;
  }
}
