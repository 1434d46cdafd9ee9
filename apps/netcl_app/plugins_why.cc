// netcl-app plugins why: the kernel sets asked for one op, in order, with the reason for each
// refusal.
#include <iostream>

#include "apps/netcl_app/op_arguments.h"
#include "apps/netcl_app/plugins_commands.h"
#include "core/base/json_doc.h"
#include "core/runtime/kernel_choice.h"

namespace netcl::app {

namespace {

int run_why(const OpOptions& options) {
  OpDevice place(options);
  const OpArguments question = op_arguments(options, place);
  const OpRow& op = question.op;
  const DeviceInfo& info = place.info();
  Json result = {{"op", op.name},
                 {"device", info.selector},
                 {"chosen", nullptr},
                 {"candidates", Json::array()}};
  for (const KernelCandidate& c :
       place.kernels().why(place.device(), {op, question.in, question.out, question.attrs})) {
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
    if (result["chosen"].is_null())
      std::cout << "    chosen  " << KernelPin::kTrace << "  the ops that the layer recorded\n";
    for (const Json& c : result["candidates"]) {
      std::cout << "    " << c["verdict"].get<std::string>() << "  "
                << c["plugin"].get<std::string>() << "/" << c["variant"].get<std::string>() << "  "
                << c["reason"].get<std::string>() << "\n";
    }
  }
  NETCL_CHECK(!result["chosen"].is_null() || question.fused, ErrorCode::kPlugin,
              "no kernel set computes ", op.name, " on ", info.selector);
  return 0;
}

}  // namespace

void add_plugins_why(CLI::App& plugins, Run& run) {
  auto options = std::make_shared<OpOptions>();
  CLI::App* command =
      plugins.add_subcommand("why", "Which kernels compute an op on a device, and why not others");
  command->footer("Example: netcl-app plugins why --op matmul --shape 128,784,256 --device cpu:0");
  add_op_options(*command, *options);
  command->callback([options, &run] { run = [options] { return run_why(*options); }; });
}

}  // namespace netcl::app
