// netcl-app: parses the command line, runs the command, and turns errors into a message and an exit
// code. With --json an error is a JSON document, too.
#include <signal.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <iostream>
#include <string>
#include <vector>

#include "apps/netcl_app/commands.h"
#include "apps/netcl_app/probe.h"
#include "apps/netcl_app/transport_probe.h"
#include "apps/netcl_app/tune/child.h"
#include "apps/netcl_app/tune/messages.h"
#include "apps/netcl_app/verify/child.h"
#include "apps/netcl_app/worker.h"
#include "core/base/crash_note.h"
#include "core/base/error.h"
#include "core/base/json_doc.h"
#include "core/base/text.h"

namespace {

constexpr int kInterruptedCode = 130;

int report(const netcl::Error& error, bool json) {
  if (json) {
    std::cout
        << netcl::Json{{"error", error.message()}, {"code", netcl::exit_code(error.code())}}.dump(2)
        << "\n";
  }
  std::cerr << "error: " << error.message() << "\n";
  return netcl::exit_code(error.code());
}

// CLI11 says of an unknown command only that one is required.
void check_command(const CLI::App& app, const std::string& name) {
  if (name.empty() || name[0] == '-') return;
  std::vector<std::string> names;
  for (const CLI::App* command : app.get_subcommands([](const CLI::App*) { return true; })) {
    names.push_back(command->get_name());
  }
  if (std::find(names.begin(), names.end(), name) != names.end()) return;
  netcl::fail(netcl::ErrorCode::kUsage, "there is no command \"", name, "\"",
              netcl::suggest(name, names));
}

// Signal handlers: only what is safe in one.
void interrupted(int) { ::_exit(kInterruptedCode); }
void interrupted_with_document(int) {
  constexpr char kDocument[] =
      "{\n  \"stopped\": \"interrupted\",\n  \"error\": \"interrupted before the first step\",\n"
      "  \"code\": 130\n}\n";
  const ssize_t ignored = ::write(STDOUT_FILENO, kDocument, sizeof(kDocument) - 1);
  (void)ignored;
  ::_exit(kInterruptedCode);
}

}  // namespace

int main(int argc, char** argv) {
  std::signal(SIGXFSZ, SIG_IGN);  // a file that may not grow is a full disk; workers inherit it
  const std::string first = argc > 1 ? argv[1] : "";
  if (first == "worker") return netcl::app::worker_main();
  if (first == "probe-child") return netcl::app::probe_child(3);
  if (first == netcl::app::kTuneChild && argc > 2)
    return netcl::app::tune_child_main(std::atoi(argv[2]));
  if (first == "verify-child" && argc == 3) return netcl::app::verify::child_main(argv[2]);

  CLI::App app("netcl: trains neural networks on every OpenCL device of a workstation at once",
               "netcl-app");
  app.set_version_flag("--version", "netcl-app 0.1.0");
  app.require_subcommand(1);
  netcl::app::Run run;
  netcl::app::add_devices_command(app, run);
  netcl::app::add_plugins_command(app, run);
  netcl::app::add_train_command(app, run);
  netcl::app::add_eval_command(app, run);
  netcl::app::add_predict_command(app, run);
  netcl::app::add_generate_command(app, run);
  netcl::app::add_bench_command(app, run);
  netcl::app::add_tune_command(app, run);
  netcl::app::add_probe_transports_command(app, run);
  const bool json =
      std::any_of(argv + 1, argv + argc, [](const char* a) { return std::string(a) == "--json"; });
  netcl::watch_crashes({-1, netcl::exit_code(netcl::ErrorCode::kTraining), json});
  // Before workers run there is nothing to save; from then on the supervisor takes these signals.
  for (const int number : {SIGINT, SIGTERM})
    std::signal(number, json ? interrupted_with_document : interrupted);
  try {
    check_command(app, first);
    app.parse(argc, argv);
    const int code = run();
    std::cout.flush();
    NETCL_CHECK(std::cout.good(), netcl::ErrorCode::kCheckpoint,
                "standard output cannot be written (is the disk full, or the pipe closed?)");
    return code;
  } catch (const CLI::ParseError& e) {
    if (e.get_exit_code() == 0) return app.exit(e);  // --help, --version
    return report(netcl::Error(netcl::ErrorCode::kUsage,
                               std::string(e.what()) + "; run with --help for usage"),
                  json);
  } catch (const netcl::Error& e) {
    return report(e, json);
  } catch (const std::exception& e) {
    return report(
        netcl::Error(netcl::ErrorCode::kInternal, std::string("internal error: ") + e.what()),
        json);
  }
}
