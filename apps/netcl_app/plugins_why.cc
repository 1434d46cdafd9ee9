// netcl-app plugins why: the kernel sets asked for one op, in order, with the reason for each
// refusal.
#include <charconv>
#include <iostream>

#include "apps/netcl_app/open_device.h"
#include "apps/netcl_app/options.h"
#include "apps/netcl_app/plugins_commands.h"
#include "apps/netcl_app/probe.h"
#include "core/base/environment.h"
#include "core/base/json_doc.h"
#include "core/base/text.h"
#include "core/cl/icd.h"
#include "core/distributed/selectors.h"
#include "core/runtime/kernel_choice.h"

namespace netcl::app {

namespace {

struct WhyOptions : CommonOptions {
  std::string op, device = "all";
  std::vector<std::string> shapes, attrs;
};

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

// One shape an input; a matmul may be given as M,K,N, and one shape stands for all inputs.
std::vector<TensorDesc> inputs_of(const OpRow& op, const WhyOptions& options) {
  std::vector<Shape> shapes;
  for (const std::string& text : options.shapes) shapes.push_back(parse_shape(text));
  NETCL_CHECK(!shapes.empty() || op.min_in == 0, ErrorCode::kUsage,
              "--shape is missing: give the shape of each input of ", op.name);
  if (op.name == "matmul" && shapes.size() == 1 && shapes[0].rank() == 3) {
    shapes = {{shapes[0][0], shapes[0][1]}, {shapes[0][1], shapes[0][2]}};
  }
  while (shapes.size() < op.min_in) shapes.push_back(shapes.back());
  std::vector<TensorDesc> out;
  for (const Shape& shape : shapes) out.push_back({DType::kF32, shape});
  if (op.name.rfind("cross_entropy", 0) == 0 && out.size() > 1)
    out[1] = {DType::kI32, Shape{out[0].shape[0]}};
  return out;
}

Attrs attrs_of(const std::vector<std::string>& assignments) {
  Attrs out;
  for (const std::string& text : assignments) {
    const size_t equal = text.find('=');
    NETCL_CHECK(equal != std::string::npos && equal > 0, ErrorCode::kUsage, "--attr ", text,
                ": expected KEY=VALUE");
    const Json value = Json::parse(text.substr(equal + 1), nullptr, false);
    const std::string key = text.substr(0, equal);
    if (value.is_number_integer()) {
      out.set(key, value.get<int64_t>());
    } else if (value.is_number()) {
      out.set(key, value.get<double>());
    } else if (value.is_array()) {
      out.set(key, value.get<std::vector<int64_t>>());
    } else {
      out.set(key, text.substr(equal + 1));
    }
  }
  return out;
}

int run_why(const WhyOptions& options) {
  const OpRow& op = find_op(options.op);
  const std::vector<TensorDesc> in = inputs_of(op, options);
  NETCL_CHECK(in.size() <= op.max_in, ErrorCode::kUsage, op.name, " has at most ", op.max_in,
              " inputs, not ", in.size());
  const Attrs attrs = complete_attrs(op, attrs_of(options.attrs));
  const std::vector<TensorDesc> out = op.infer({op, in, attrs});

  const std::vector<DeviceInfo> devices = probe_devices().devices();
  const std::vector<WorkerPlace> places = resolve_selectors(options.device, devices);
  const DeviceInfo& info = places[0].device;
  environment::apply(only_driver(info.icd));
  Device device(find_device(info), environment::cache_dir(), stderr_logger(options.quiet));
  PluginHost plugins(options.plugin_options(), devices, stderr_logger(options.quiet));
  KernelChoice choice(plugins, options.pins());
  Json result = {{"op", op.name},
                 {"device", info.selector},
                 {"chosen", nullptr},
                 {"candidates", Json::array()}};
  for (const KernelCandidate& c : choice.why(device, {op, in, out, attrs})) {
    result["candidates"].push_back({{"plugin", c.plugin},
                                    {"variant", c.variant},
                                    {"verdict", c.verdict},
                                    {"reason", c.reason}});
    if (c.verdict == "chosen") result["chosen"] = {{"plugin", c.plugin}, {"variant", c.variant}};
  }
  if (options.json) {
    std::cout << result.dump(2) << "\n";
  } else {
    std::cout << op.name << " on " << info.selector << " (" << info.name << ")\n";
    for (const Json& c : result["candidates"]) {
      std::cout << "    " << c["verdict"].get<std::string>() << "  "
                << c["plugin"].get<std::string>() << "/" << c["variant"].get<std::string>() << "  "
                << c["reason"].get<std::string>() << "\n";
    }
  }
  NETCL_CHECK(!result["chosen"].is_null(), ErrorCode::kPlugin, "no kernel set computes ", op.name,
              " on ", info.selector);
  return 0;
}

}  // namespace

void add_plugins_why(CLI::App& plugins, Run& run) {
  auto options = std::make_shared<WhyOptions>();
  CLI::App* command =
      plugins.add_subcommand("why", "Which kernels compute an op on a device, and why not others");
  command->footer("Example: netcl-app plugins why --op matmul --shape 128,784,256 --device cpu:0");
  command->add_option("--op", options->op, "Name of the op")->required();
  command
      ->add_option("--shape", options->shapes,
                   "Shape of an input, such as 128,784 (repeatable); matmul also M,K,N")
      ->expected(1)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
  command->add_option("--attr", options->attrs, "Attribute KEY=VALUE (repeatable)")
      ->expected(1)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
  command->add_option("--device", options->device, "The device (default: the first)");
  add_kernels(*command, *options);
  add_common(*command, *options);
  command->callback([options, &run] { run = [options] { return run_why(*options); }; });
}

}  // namespace netcl::app
