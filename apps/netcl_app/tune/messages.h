// What the tuner and its child say to each other: a line of JSON for each request and each answer.
//
//   {"do": "open", "device", "plugins", "only": [id]}   -> {"ok"}
//   {"do": "question", "question"}   -> {"default": {"plugin", "variant"}, "kernel_sets",
//                     "check",
//                     "spaces": [{"plugin", "variant", "tunables": [{"name", "values",
//                     "default"}]}]}
//   {"do": "try", "plugin", "variant", "against": {"plugin", "variant"} or null, "samples",
//    "patient"}
//       -> {"us": [...], "against_us": [...]}, or {"declined": why}, {"wrong": why}
// A request that fails is answered with {"error"}.
#ifndef NETCL_APPS_NETCL_APP_TUNE_MESSAGES_H_
#define NETCL_APPS_NETCL_APP_TUNE_MESSAGES_H_

#include <vector>

#include "apps/netcl_app/tune/search.h"
#include "core/base/json_doc.h"
#include "core/runtime/plugin_host.h"

namespace netcl::app {

struct TuneFds {
  static constexpr int kRequests = 0, kAnswers = 3;
};

// The child's name among netcl-app's commands.
inline constexpr const char* kTuneChild = "tune-child";

Json to_json(const PluginOptions& options);
PluginOptions plugin_options_from_json(const Json& json);
Json to_json(const std::vector<VariantSpace>& spaces);
std::vector<VariantSpace> spaces_from_json(const Json& json);

}  // namespace netcl::app

#endif  // NETCL_APPS_NETCL_APP_TUNE_MESSAGES_H_
