// netcl-app plugins verify DIR: the conformance kit. Every check that runs the plugin's code does
// so in a child process, so that a plugin that crashes or hangs is a row of the result.
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <iostream>

#include "apps/netcl_app/open_device.h"
#include "apps/netcl_app/options.h"
#include "apps/netcl_app/plugins_commands.h"
#include "apps/netcl_app/probe.h"
#include "apps/netcl_app/verify/gates.h"
#include "apps/netcl_app/verify/groups.h"
#include "apps/netcl_app/verify/run_units.h"
#include "core/base/json_doc.h"
#include "core/base/text.h"

namespace netcl::app {

namespace {

namespace fs = std::filesystem;
using verify::CheckDoc;
using verify::CheckRow;
using verify::Plan;
using verify::Report;
using verify::Setup;
using verify::Unit;

struct VerifyOptions {
  std::string directory, device, only;
  int timeout_s = 60;
  bool json = false, quiet = false, quick = false, list = false;
};

// One line that is written over, where somebody looks at it.
std::function<void(const std::string&)> progress_line(const VerifyOptions& options) {
  constexpr size_t kWidth = 78;
  if (options.quiet || options.json || ::isatty(STDERR_FILENO) == 0) return nullptr;
  return [](const std::string& doing) {
    std::string line = doing.substr(0, kWidth);
    line.resize(kWidth, ' ');
    std::cerr << "\r" << line << "\r" << std::flush;
  };
}

// The device that is tried: the one that was named, or one that matches.
std::optional<DeviceInfo> device_for(const VerifyOptions& options, const Manifest& manifest,
                                     Report& report) {
  const ProbeResult probe = probe_devices();
  if (options.device.empty()) return verify::matching_device(manifest, probe.devices(), report);
  const DeviceInfo device = select_one(options.device, probe.require_devices());
  return verify::matching_device(manifest, {device}, report);
}

bool needs_device(const Plan& plan) {
  return plan.groups || std::any_of(plan.units.begin(), plan.units.end(),
                                    [](const Unit& unit) { return unit.on_device; });
}

// Opens the plugin first: where that fails, nothing else can be said.
void run_checks(const Setup& setup, const Manifest& manifest, const Plan& plan, Report& report) {
  std::vector<Unit> opens, others;
  for (const Unit& unit : plan.units) {
    if (unit.on_device && !setup.device) continue;
    (unit.family == verify::check::kOpens ? opens : others).push_back(unit);
  }
  verify::run_units(setup, opens, report);
  if (report.has_failed(verify::check::kOpens)) return;
  verify::run_units(setup, others, report);
  if (plan.groups && setup.device) verify::run_groups(setup, manifest, plan, report);
}

Json json_of(const std::vector<CheckRow>& rows, const std::vector<std::string>& not_run,
             bool passed) {
  Json out = {{"passed", passed}, {"checks", Json::array()}, {"not_run", not_run}};
  for (const CheckRow& row : rows)
    out["checks"].push_back({{"name", row.name}, {"passed", row.passed}, {"detail", row.detail}});
  return out;
}

void print(const std::vector<CheckRow>& rows, const std::vector<std::string>& not_run) {
  size_t width = 0;
  for (const CheckRow& row : rows) width = std::max(width, row.name.size());
  for (const CheckRow& row : rows) {
    std::cout << (row.passed ? "passed  " : "FAILED  ") << row.name;
    for (const std::string& line : split(row.detail, '\n')) {
      if (line.empty()) continue;
      // What was tried stands beside the name, what is wrong below it.
      if (row.passed) {
        std::cout << std::string(width - row.name.size() + 2, ' ') << line;
      } else {
        std::cout << "\n          " << line;
      }
    }
    std::cout << "\n";
  }
  if (!not_run.empty()) std::cout << "not run: " << join(not_run, ", ") << "\n";
}

int list_checks(const VerifyOptions& options, const Plan& plan) {
  Json out = {{"checks", Json::array()}};
  size_t width = 0;
  for (const CheckDoc& c : plan.checks) width = std::max(width, c.name.size());
  for (const CheckDoc& c : plan.checks) {
    out["checks"].push_back({{"name", c.name}, {"says", c.says}});
    if (!options.json)
      std::cout << c.name << std::string(width - c.name.size() + 2, ' ') << c.says << "\n";
  }
  if (options.json) std::cout << out.dump(2) << "\n";
  return 0;
}

int run_verify(const VerifyOptions& options) {
  std::error_code ignored;
  NETCL_CHECK(fs::is_directory(options.directory, ignored), ErrorCode::kUsage,
              "DIR: ", options.directory, " is no directory; name the one that holds plugin.json");
  Report report;
  Plan plan = verify::gates_plan();
  const std::optional<Manifest> manifest = verify::pass_gates(options.directory, report);
  if (manifest) {
    plan = verify::plan_of(*manifest, options.only);
    const bool any = std::any_of(plan.checks.begin(), plan.checks.end(), [&](const CheckDoc& c) {
      return options.only.empty() || glob_match(options.only, c.name);
    });
    NETCL_CHECK(any, ErrorCode::kUsage, "--only ", options.only,
                " names no check of this plugin; --list shows them");
    if (options.list) return list_checks(options, plan);
    Setup setup;
    setup.directory = manifest->directory.string();
    if (needs_device(plan)) setup.device = device_for(options, *manifest, report);
    setup.timeout_s = options.timeout_s;
    setup.quick = options.quick;
    setup.progress = progress_line(options);
    run_checks(setup, *manifest, plan, report);
    if (setup.progress) setup.progress("");
  }
  const std::vector<CheckRow> rows = report.rows(plan);
  const std::vector<std::string> not_run = report.not_run(plan);
  const auto failures = std::count_if(rows.begin(), rows.end(), [](auto& r) { return !r.passed; });
  if (options.json) {
    std::cout << json_of(rows, not_run, failures == 0).dump(2) << "\n";
  } else if (!options.quiet || failures > 0) {
    print(rows, not_run);
  }
  if (failures == 0) {
    if (!options.quiet) std::cerr << rows.size() << " checks passed\n";
    return 0;
  }
  std::cerr << failures << " of " << rows.size() << " checks FAILED\n";
  return exit_code(ErrorCode::kPlugin);
}

}  // namespace

void add_plugins_verify(CLI::App& plugins, Run& run) {
  auto options = std::make_shared<VerifyOptions>();
  CLI::App* command = plugins.add_subcommand(
      "verify", "Check a plugin: what it promises, and what it does when things go wrong");
  command->footer(
      "Example: netcl-app plugins verify build/my-plugin\n"
      "Exit code: 0 all checks passed, 4 one has failed, 2 bad usage");
  command->add_option("DIR", options->directory, "The plugin's directory, with plugin.json")
      ->required();
  command->add_option("--device", options->device,
                      "The device to try it on (default: the first that its manifest matches)");
  command
      ->add_option("--timeout", options->timeout_s,
                   "Seconds without a sign of progress after which a check has failed")
      ->check(CLI::Range(1, 86400))
      ->capture_default_str();
  command->add_option("--only", options->only, "Checks to run: a name with * and ?");
  command->add_flag("--quick", options->quick,
                    "Only some cases of each kernel, layer and collective");
  command->add_flag("--list", options->list, "Print the checks for this plugin, and run none");
  command->add_flag("--json", options->json, "Print one JSON document on standard output");
  command->add_flag("--quiet,-q", options->quiet, "Print failures alone");
  command->callback([options, &run] { run = [options] { return run_verify(*options); }; });
}

}  // namespace netcl::app
