#include "apps/netcl_app/verify/child.h"

#include <sys/resource.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <exception>

#include "apps/netcl_app/open_device.h"
#include "core/base/environment.h"
#include "core/base/error.h"
#include "core/distributed/process.h"
#include "core/runtime/host_call.h"

namespace netcl::app::verify {

namespace {

constexpr rlim_t kMostFileBytes = rlim_t{256} << 20;  // a plugin that prints without end

// What is thrown at this moment, in words.
std::string current_exception_text() {
  try {
    throw;
  } catch (const std::exception& e) {
    return e.what();
  } catch (...) {
    return "something that is no std::exception";
  }
}

// An exception in a thread or a noexcept function of the plugin ends here.
[[noreturn]] void terminated() {
  const std::string what =
      std::current_exception() ? current_exception_text() : "terminate() was called";
  try {
    Teller().failed(check::kExceptions,
                    "an exception ended the process, out of a thread or a function that may not "
                    "throw: " +
                        what);
  } catch (const Error&) {  // the parent is gone
  }
  std::abort();
}

void limit_damage() {
  const rlimit no_core{0, 0}, files{kMostFileBytes, kMostFileBytes};
  ::setrlimit(RLIMIT_CORE, &no_core);
  ::setrlimit(RLIMIT_FSIZE, &files);
  std::set_terminate(&terminated);
}

void run_unit(ChildContext& context, const std::string& family, const std::string& argument) {
  if (family == "kernels") return run_kernels_unit(context, argument);
  if (family == "layer") return run_layer_unit(context, argument);
  if (family == "fused") return run_fused_unit(context);
  run_boundary_unit(context, family);
}

void run_job(ChildContext& context) {
  const Teller& tell = context.tell();
  if (!context.job().group.is_null()) run_ranks(context);
  const auto& units = context.job().units;
  for (size_t i = 0; i < units.size(); ++i) {
    const auto& [family, argument] = units[i];
    tell.send({{"unit", i}});
    tell.guard([&context, &f = family, &a = argument] { run_unit(context, f, a); });
    std::fflush(nullptr);  // what the plugin has printed belongs to this unit
    tell.send({{"end", i}});
  }
}

}  // namespace

Json to_json(const ChildJob& job) {
  Json out = {{"parent", job.parent}, {"directory", job.directory}, {"quick", job.quick},
              {"device", nullptr},    {"units", job.units},         {"group", job.group}};
  if (job.device) out["device"] = netcl::to_json(*job.device);
  return out;
}

ChildJob child_job_from_json(const Json& json) {
  ChildJob out;
  out.parent = json.at("parent").get<int64_t>();
  out.directory = json.at("directory").get<std::string>();
  out.quick = json.at("quick").get<bool>();
  out.units = json.at("units").get<std::vector<std::pair<std::string, std::string>>>();
  out.group = json.at("group");
  if (!json.at("device").is_null()) out.device = device_info_from_json(json.at("device"));
  return out;
}

void Teller::send(const Json& message) const {
  write_line(ChildFds::kStatus, message.dump(-1, ' ', false, Json::error_handler_t::replace));
}

void Teller::at(const std::string& check, const std::string& doing) {
  check_ = check;
  doing_ = doing;
  send({{"at", check}, {"doing", doing}});
}

void Teller::failed(const std::string& check, const std::string& detail) const {
  send({{"failed", check}, {"detail", detail}});
}

void Teller::ran(const std::string& check, size_t n) const { send({{"ran", check}, {"n", n}}); }

void Teller::note(const std::string& check, const std::string& detail) const {
  send({{"note", check}, {"detail", detail}});
}

void Teller::found_exception() const {
  try {
    throw;
  } catch (const Error& e) {
    failed(check_, doing_ + ": " + e.message());
  } catch (...) {
    const std::string text = doing_ + ": an exception left the plugin: " + current_exception_text();
    failed(check_, text);
    if (check_ != check::kExceptions) failed(check::kExceptions, text);
  }
}

const Manifest& ChildContext::manifest() {
  if (!manifest_) {
    ManifestResult result = read_manifest(job_.directory);
    NETCL_CHECK(!result.refusal, ErrorCode::kPlugin, result.refusal->code, ": ",
                result.refusal->detail);
    manifest_ = std::move(result.manifest);
  }
  return *manifest_;
}

PluginHost& ChildContext::plugins() {
  if (plugins_ == nullptr) {
    PluginOptions options;
    options.paths = {job_.directory};
    std::vector<DeviceInfo> devices;
    if (job_.device) devices.push_back(*job_.device);
    plugins_ = std::make_unique<PluginHost>(options, devices, Logger());
  }
  return *plugins_;
}

LoadedPlugin& ChildContext::plugin() { return plugins().load(manifest().id); }

Device& ChildContext::device() {
  if (device_ == nullptr) {
    NETCL_CHECK(job_.device.has_value(), ErrorCode::kInternal, "the check was given no device");
    device_ =
        std::make_unique<Device>(find_device(*job_.device), environment::cache_dir(), Logger());
  }
  return *device_;
}

int child_main(const std::string& job) {
  try {
    ChildContext context(child_job_from_json(Json::parse(job)));
    die_with_parent(static_cast<pid_t>(context.job().parent));
    limit_damage();
    run_job(context);
    context.tell().send({{"done", true}});
    return 0;
  } catch (const Error& e) {
    Teller().send({{"error", e.message()}, {"code", exit_code(e.code())}});
    return exit_code(e.code());
  } catch (const std::exception& e) {
    Teller().send({{"error", e.what()}, {"code", exit_code(ErrorCode::kInternal)}});
    return exit_code(ErrorCode::kInternal);
  }
}

}  // namespace netcl::app::verify
