// Which checks there are for a plugin, and the units of work that they are made of.
//
// A check is a row of the result, with a name that stays. A unit is what one child process does at
// a time; it may tell of several checks (running the kernels of an op: right results, nothing
// written out of bounds, inputs unchanged), and a check may be made of many units.
#ifndef NETCL_APPS_NETCL_APP_VERIFY_PLAN_H_
#define NETCL_APPS_NETCL_APP_VERIFY_PLAN_H_

#include <string>
#include <vector>

#include "core/runtime/manifest.h"

namespace netcl::app::verify {

struct CheckDoc {
  std::string name;       // "kernels.results"
  std::string says;       // what it means that it passes
  std::string counted;    // what is counted while it runs: "runs"; or ""
  bool optional = false;  // there may be nothing to try
};

struct Unit {
  std::string family;    // which function runs it: "kernels"
  std::string argument;  // of that function: an op, a layer type
  std::vector<std::string> checks;
  bool fresh = false;  // in a process of its own
  bool on_device = false;
};

struct Plan {
  std::vector<CheckDoc> checks;  // in the order in which they are printed
  std::vector<Unit> units;       // for child processes, in the order in which they run
  bool groups = false;           // the transport's checks, which start a process a rank
};

// Names of checks that several files speak of.
namespace check {
constexpr const char* kManifest = "manifest";
constexpr const char* kFiles = "files";
constexpr const char* kExports = "exports";
constexpr const char* kDevice = "device";
constexpr const char* kOpens = "opens";
constexpr const char* kOpensAgain = "opens.again";
constexpr const char* kTables = "tables";
constexpr const char* kQuiet = "quiet";
constexpr const char* kSizes = "abi.sizes";
constexpr const char* kHostFails = "abi.host_fails";
constexpr const char* kExceptions = "abi.exceptions";
constexpr const char* kCloseTwice = "close.twice";
constexpr const char* kOffers = "kernels.offers";
constexpr const char* kPlans = "kernels.plans";
constexpr const char* kUnknownVariant = "kernels.unknown_variant";
constexpr const char* kResults = "kernels.results";
constexpr const char* kBounds = "kernels.bounds";
constexpr const char* kInputs = "kernels.inputs";
constexpr const char* kAccept = "transport.accept";
constexpr const char* kMatrix = "transport.matrix";
constexpr const char* kOrder = "transport.order";
constexpr const char* kMismatch = "transport.mismatch";
constexpr const char* kPeer = "transport.peer";
constexpr const char* kStall = "transport.stall";
constexpr const char* kAbort = "transport.abort";
// "layer.TYPE.shapes": the check `part` of a layer type.
std::string layer(const std::string& type, const std::string& part);
}  // namespace check

// The checks that need no code of the plugin: what is left if its manifest is refused.
Plan gates_plan();

// Everything for the plugin. `only`: a glob on the names of checks, "" for all; the gates and
// opening are always in it, because all else stands on them.
Plan plan_of(const Manifest& manifest, const std::string& only);

}  // namespace netcl::app::verify

#endif  // NETCL_APPS_NETCL_APP_VERIFY_PLAN_H_
