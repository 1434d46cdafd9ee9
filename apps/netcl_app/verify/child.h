// What runs the plugin's code: a child process, which does one unit after the other and tells the
// parent of everything it begins and finds, line by line. If it dies in between, the parent knows
// during which check and at what.
//
// Messages (JSON, one a line, on the status descriptor):
//   {"unit": 3}                                begins unit 3 of the job
//   {"at": CHECK, "doing": "planning matmul"}  what follows tells of CHECK
//   {"failed": CHECK, "detail": "..."}
//   {"ran": CHECK, "n": 5}   {"note": CHECK, "detail": "..."}
//   {"rank": 1, ...}                           of a transport's rank, see groups.h
//   {"end": 3}   {"done": true}   {"error": "...", "code": 3}
// Threads: Teller: any; the rest: one.
#ifndef NETCL_APPS_NETCL_APP_VERIFY_CHILD_H_
#define NETCL_APPS_NETCL_APP_VERIFY_CHILD_H_

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "apps/netcl_app/verify/plan.h"
#include "core/base/json_doc.h"
#include "core/cl/device.h"
#include "core/runtime/plugin_host.h"

namespace netcl::app::verify {

// The numbers of a child's descriptors.
struct ChildFds {
  static constexpr int kStatus = 3, kSegment = 5;
};

// What every child is told.
struct ChildJob {
  int64_t parent = 0;
  std::string directory;  // the plugin's
  std::optional<DeviceInfo> device;
  bool quick = false;
  std::vector<std::pair<std::string, std::string>> units;  // family, argument
  Json group;                                              // of a transport's ranks, else null
};
Json to_json(const ChildJob& job);
ChildJob child_job_from_json(const Json& json);

// The child's way to tell.
class Teller {
 public:
  void at(const std::string& check, const std::string& doing);
  void failed(const std::string& check, const std::string& detail) const;
  void ran(const std::string& check, size_t n = 1) const;
  void note(const std::string& check, const std::string& detail) const;
  void send(const Json& message) const;

  // Runs `body`; what it throws is a finding of the check at which it was thrown: an error of
  // netcl's own, or an exception that came out of the plugin (which abi.exceptions is told, too).
  template <typename Body>
  void guard(Body&& body) const {
    try {
      body();
    } catch (...) {
      found_exception();
    }
  }

 private:
  void found_exception() const;

  std::string check_ = check::kOpens, doing_ = "starting";
};

// What the units of one child share.
class ChildContext {
 public:
  explicit ChildContext(ChildJob job) : job_(std::move(job)) {}

  const ChildJob& job() const { return job_; }
  Teller& tell() { return tell_; }
  // Errors of all three: kPlugin, kDevice.
  const Manifest& manifest();
  PluginHost& plugins();
  LoadedPlugin& plugin();  // opened at the first call
  Device& device();        // the job's, opened at the first call

 private:
  ChildJob job_;
  Teller tell_;
  std::optional<Manifest> manifest_;
  std::unique_ptr<PluginHost> plugins_;
  std::unique_ptr<Device> device_;
};

// Families of units. Errors: whatever they throw is a finding.
void run_boundary_unit(ChildContext& context, const std::string& family);
void run_kernels_unit(ChildContext& context, const std::string& op);
void run_layer_unit(ChildContext& context, const std::string& type);
void run_fused_unit(ChildContext& context);
void run_ranks(ChildContext& context);

// The child's main: `job` is its one argument. Returns the process's exit code.
int child_main(const std::string& job);

}  // namespace netcl::app::verify

#endif  // NETCL_APPS_NETCL_APP_VERIFY_CHILD_H_
