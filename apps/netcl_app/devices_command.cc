// netcl-app devices: what there is, under which name, and which kernel sets serve it.
#include <iostream>

#include "apps/netcl_app/commands.h"
#include "apps/netcl_app/options.h"
#include "apps/netcl_app/probe.h"
#include "core/base/json_doc.h"
#include "core/base/text.h"
#include "core/runtime/manifest.h"

namespace netcl::app {

namespace {

// Ids of the kernel sets that have something for the device.
std::vector<std::string> kernel_sets(const PluginHost& plugins, const DeviceInfo& device) {
  std::vector<std::string> out;
  for (const Manifest* manifest : plugins.manifests("kernels")) {
    for (const Provision& provision : manifest->provides) {
      if (refuses_device(provision, device)) continue;
      out.push_back(manifest->id);
      break;
    }
  }
  return out;
}

int run_devices(const CommonOptions& options) {
  const ProbeResult probe = probe_devices();
  const std::vector<DeviceInfo> devices = probe.require_devices();
  const PluginHost plugins(options.plugin_options(), devices, stderr_logger(options.quiet));
  Json rows = Json::array();
  for (const DeviceInfo& d : devices) {
    rows.push_back({{"selector", d.selector},
                    {"name", d.name},
                    {"platform", d.platform},
                    {"vendor", d.vendor},
                    {"type", d.type},
                    {"compute_units", d.compute_units},
                    {"memory_bytes", d.memory_bytes},
                    {"max_alloc_bytes", d.max_alloc_bytes},
                    {"opencl", d.opencl},
                    {"driver", d.driver},
                    {"kernel_sets", kernel_sets(plugins, d)},
                    {"also", d.platform_selector()},
                    {"arch", d.arch}});
  }
  const std::string errors = probe.errors();
  if (!errors.empty()) stderr_logger(options.quiet).warning(errors);
  if (options.json) {
    std::cout << Json{{"devices", rows}}.dump(2) << "\n";
    return 0;
  }
  for (const Json& row : rows) {
    std::cout << row["selector"].get<std::string>() << "  " << row["name"].get<std::string>()
              << "\n"
              << "    " << row["type"].get<std::string>() << " of vendor "
              << row["vendor"].get<std::string>() << ", " << row["compute_units"]
              << " compute units, " << row["memory_bytes"].get<int64_t>() / (1 << 20)
              << " MiB; also called " << row["also"].get<std::string>() << "\n"
              << "    " << row["opencl"].get<std::string>() << ", driver "
              << row["driver"].get<std::string>()
              << ", kernel sets: " << join(row["kernel_sets"].get<std::vector<std::string>>(), ", ")
              << "\n";
  }
  return 0;
}

}  // namespace

void add_devices_command(CLI::App& app, Run& run) {
  auto options = std::make_shared<CommonOptions>();
  CLI::App* command =
      app.add_subcommand("devices", "List the OpenCL devices and the kernel sets that serve them");
  command->footer("Example: netcl-app devices --json");
  add_common(*command, *options);
  command->callback([options, &run] { run = [options] { return run_devices(*options); }; });
}

}  // namespace netcl::app
