#include "apps/netcl_app/op_arguments.h"

#include <algorithm>
#include <charconv>

#include "apps/netcl_app/open_device.h"
#include "apps/netcl_app/probe.h"
#include "apps/netcl_app/tuned_setup.h"
#include "core/base/environment.h"
#include "core/base/json_doc.h"
#include "core/base/text.h"
#include "core/cl/icd.h"
#include "core/distributed/selectors.h"
#include "core/runtime/layer_set.h"

namespace netcl::app {

namespace {

Shape parse_shape(const std::string& text) {
  std::vector<int64_t> dims;
  for (const std::string& part : split(text, ',')) {
    int64_t value = 0;
    const auto [end, error] = std::from_chars(part.data(), part.data() + part.size(), value);
    NETCL_CHECK(error == std::errc() && end == part.data() + part.size() && value >= 0,
                ErrorCode::kUsage, "--shape ", text,
                ": expected numbers separated by commas, such as 128,784; \"", part, "\" is none");
    dims.push_back(value);
  }
  return Shape(dims);
}

std::vector<TensorDesc> inputs_of(const OpRow& op, const OpOptions& options) {
  std::vector<Shape> shapes;
  for (const std::string& text : options.shapes) shapes.push_back(parse_shape(text));
  NETCL_CHECK(!shapes.empty() || op.min_in == 0, ErrorCode::kUsage,
              "--shape is missing: give the shape of each input of ", op.name);
  if (op.name == "matmul" && shapes.size() == 1 && shapes[0].rank() == 3) {
    shapes = {{shapes[0][0], shapes[0][1]}, {shapes[0][1], shapes[0][2]}};
  }
  while (shapes.size() < op.min_in) shapes.push_back(shapes.back());
  NETCL_CHECK(shapes.size() <= op.max_in, ErrorCode::kUsage, op.name, " has at most ", op.max_in,
              " inputs, not ", shapes.size());
  std::vector<TensorDesc> out;
  for (const Shape& shape : shapes) out.push_back({DType::kF32, shape});
  if (op.name.rfind("cross_entropy", 0) == 0 && out.size() > 1)
    out[1] = {DType::kI32, Shape{out[0].shape[0]}};
  for (const OpCase& c : op.cases) {
    if (c.in.size() != out.size()) continue;
    for (size_t i = 0; i < out.size(); ++i) {
      if (c.in[i].dtype == DType::kI32) out[i].dtype = DType::kI32;
    }
    break;
  }
  const DType dtype = dtype_named(options.dtype);
  NETCL_CHECK(dtype == DType::kF32 || op.half_storage, ErrorCode::kUsage, "--dtype ", options.dtype,
              ": ", op.name, " takes f32 alone");
  for (size_t i = 0; i < out.size(); ++i) {
    const auto& f32 = op.always_f32;
    if (is_float(out[i].dtype) && std::find(f32.begin(), f32.end(), i) == f32.end())
      out[i].dtype = dtype;
  }
  return out;
}

// KEY=VALUE; a value that is no JSON is text.
std::pair<std::string, Json> assignment(const std::string& text) {
  const size_t equal = text.find('=');
  NETCL_CHECK(equal != std::string::npos && equal > 0, ErrorCode::kUsage, "--attr ", text,
              ": expected KEY=VALUE");
  Json value = Json::parse(text.substr(equal + 1), nullptr, false);
  if (value.is_discarded()) value = text.substr(equal + 1);
  return {text.substr(0, equal), std::move(value)};
}

Attrs attrs_of(const std::vector<std::string>& assignments) {
  Attrs out;
  for (const std::string& text : assignments) {
    const auto [key, value] = assignment(text);
    if (value.is_number_integer()) {
      out.set(key, value.get<int64_t>());
    } else if (value.is_number()) {
      out.set(key, value.get<double>());
    } else if (value.is_array()) {
      out.set(key, value.get<std::vector<int64_t>>());
    } else {
      out.set(key, text.substr(key.size() + 1));
    }
  }
  return out;
}

// What --attr says, as keys of a layer.
Json layer_of(const OpOptions& options) {
  Json out = {{"type", options.layer}};
  for (const std::string& text : options.attrs) {
    const auto [key, value] = assignment(text);
    out[key] = value;
  }
  return out;
}

OpArguments fused_arguments(const OpOptions& options, OpDevice& place) {
  NETCL_CHECK(!options.shapes.empty(), ErrorCode::kUsage,
              "--shape is missing: give the shape of each input of the layer, with the batch");
  std::vector<TensorDesc> in;
  for (const std::string& text : options.shapes) in.push_back({DType::kF32, parse_shape(text)});
  LayerSet layers(place.plugins());
  std::vector<std::string> names;
  for (FusedCase& c : fused_cases(layers, layer_of(options), in)) {
    names.push_back(c.row.name);
    if (c.row.name != options.op) continue;
    const auto fused = std::make_shared<const FusedCase>(std::move(c));
    return {fused->row, fused->in, fused->out, fused->attrs, fused};
  }
  fail(ErrorCode::kUsage, "--op ", options.op, ": the layer ", options.layer,
       names.empty() ? " has no op for which there may be kernels"
                     : " has no such op; it has " + join(names, ", "));
}

}  // namespace

void add_question_options(CLI::App& command, OpOptions& options) {
  command.add_option("--op", options.op, "Name of the op");
  command
      .add_option("--shape", options.shapes,
                  "Shape of an input, such as 128,784 (repeatable); matmul also M,K,N")
      ->expected(1)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
  command.add_option("--attr", options.attrs, "Attribute KEY=VALUE (repeatable)")
      ->expected(1)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
  command.add_option("--dtype", options.dtype, "Type of the op's float inputs")
      ->check(CLI::IsMember({"f32", "f16", "bf16"}))
      ->capture_default_str();
  command.add_option("--device", options.device, "The device (default: the first)");
}

void add_op_options(CLI::App& command, OpOptions& options) {
  add_question_options(command, options);
  command.get_option("--op")->required();
  command.add_option("--layer", options.layer,
                     "The layer that makes the op out of others; --shape and --attr are then the "
                     "shapes of its inputs and its keys");
  add_kernels(command, options);
  add_common(command, options);
}

OpArguments op_arguments(const OpOptions& options, OpDevice& place) {
  return options.layer.empty() ? table_op_arguments(options) : fused_arguments(options, place);
}

OpArguments table_op_arguments(const OpOptions& options) {
  NETCL_CHECK(options.op.find('.') == std::string::npos, ErrorCode::kUsage, "--op ", options.op,
              ": a layer makes this op out of others; name the layer with --layer TYPE, the shapes "
              "of its inputs with --shape and its keys with --attr");
  const OpRow& op = find_op(options.op);
  std::vector<TensorDesc> in = inputs_of(op, options);
  Attrs attrs = complete_attrs(op, attrs_of(options.attrs));
  std::vector<TensorDesc> out = op.infer({op, in, attrs});
  return {op, std::move(in), std::move(out), std::move(attrs), nullptr};
}

OpDevice::OpDevice(const OpOptions& options) {
  const Logger log = stderr_logger(options.quiet);
  const std::vector<DeviceInfo> devices = probe_devices().require_devices();
  info_ = resolve_selectors(options.device, devices)[0].device;
  environment::apply(only_driver(info_.icd));
  device_ = std::make_unique<Device>(find_device(info_), environment::cache_dir(), log);
  plugins_ = std::make_unique<PluginHost>(options.plugin_options(), devices, log);
  kernels_ = std::make_unique<KernelChoice>(*plugins_, options.pins(),
                                            tuned_options(options.tuned_files(*plugins_), log));
}

}  // namespace netcl::app
