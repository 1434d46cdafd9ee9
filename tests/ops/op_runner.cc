// Runs single ops on a device, as requests in a file ask: the bridge by which suites in other
// languages (tests/onnx) try the op table.
//
// Usage: op_runner --requests=FILE.json --inputs=FILE.safetensors --outputs=FILE.safetensors
//        [--device=SELECTOR] [--plugins=DIR]
// Requests: [{"name": "case", "op": "matmul", "in": ["tensor", ...], "attrs": {...}}, ...], run in
// order. Result k of a request becomes tensor "case/k", which later requests may take as an input;
// a refusal becomes metadata "case": its message. An attribute "shape" is a shape, any other list
// one of integers.
#include <fstream>
#include <iostream>
#include <map>
#include <nlohmann/json.hpp>

#include "core/autograd/tape.h"
#include "core/nn/safetensors.h"
#include "tests/ops/device_fixture.h"

namespace netcl {
namespace testing {
namespace {
using nlohmann::json;

Attrs::Item item_of(const std::string& key, const json& value) {
  if (value.is_boolean()) return int64_t{value.get<bool>()};
  if (value.is_number_integer()) return value.get<int64_t>();
  if (value.is_number()) return value.get<double>();
  if (value.is_string()) return value.get<std::string>();
  auto list = value.get<std::vector<int64_t>>();
  if (key == "shape") return Shape(std::move(list));
  return list;
}

// Runs requests one after the other and keeps their results on the device.
class Runner {
 public:
  explicit Runner(const Safetensors& inputs) : inputs_(inputs) {}

  void run(const json& request) {
    const std::string name = request.at("name");
    try {
      Tape tape(shared_device().eager());
      std::vector<ValueId> in;
      for (const json& tensor : request.at("in")) in.push_back(tape.watch(value(tensor)));
      Attrs attrs;
      const json given = request.value("attrs", json::object());
      for (const auto& [key, item] : given.items()) attrs.set(key, item_of(key, item));
      const std::vector<ValueId> out = tape.apply(request.at("op"), in, attrs);
      for (size_t k = 0; k < out.size(); ++k) keep(name + "/" + std::to_string(k), tape, out[k]);
    } catch (const Error& e) {
      outputs_.metadata[name] = e.message();
    }
  }
  const Safetensors& outputs() const { return outputs_; }

 private:
  // An earlier result, or an input, which is copied to the device when it is first named.
  const Tensor& value(const std::string& name) {
    const auto known = values_.find(name);
    if (known != values_.end()) return known->second;
    const NamedTensor* found = inputs_.find(name);
    NETCL_CHECK(found != nullptr, ErrorCode::kUsage, "no input or earlier result ", name);
    const Tensor tensor =
        Tensor::from_host(shared_device().queue(), found->desc(), found->bytes.data());
    return values_.emplace(name, tensor).first->second;
  }

  void keep(const std::string& name, const Tape& tape, ValueId id) {
    const TensorDesc& desc = tape.desc(id);
    NamedTensor host{name, desc.dtype, desc.shape, std::string(desc.size_bytes(), '\0')};
    tape.tensor(id).copy_to_host(host.bytes.data());
    outputs_.tensors.push_back(std::move(host));
    values_.emplace(name, tape.tensor(id));
  }

  const Safetensors& inputs_;
  Safetensors outputs_;
  std::map<std::string, Tensor> values_;
};

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
  shared_device();  // fails here rather than in every request
  std::ifstream file(option(argc, argv, "requests"));
  const Safetensors inputs = read_safetensors(option(argc, argv, "inputs"));
  const json requests = json::parse(file);
  {
    Runner runner(inputs);
    for (const json& request : requests) runner.run(request);
    write_safetensors(option(argc, argv, "outputs"), runner.outputs());
  }
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
