// A little of everything that a plugin offers, called the usual way: to see how it bears a host
// that is not as usual.
// Threads: one.
#ifndef NETCL_APPS_NETCL_APP_VERIFY_EXERCISE_H_
#define NETCL_APPS_NETCL_APP_VERIFY_EXERCISE_H_

#include <functional>
#include <string>
#include <vector>

#include "apps/netcl_app/verify/child.h"

namespace netcl::app::verify {

struct Exercise {
  std::string name;  // "tracing layer swish"
  // Opens the plugin with a host of one's choice and calls it. Errors: those of the plugin; what is
  // refused by the plugin is a netcl::Error, too.
  std::function<void(const netcl_host& host)> run;
};

// Opening, and for each kind: a plan of the first ops, a trace of every layer, a group of one rank.
// Opens the plugin with the usual host to find what its layers take.
std::vector<Exercise> exercises(ChildContext& context);

}  // namespace netcl::app::verify

#endif  // NETCL_APPS_NETCL_APP_VERIFY_EXERCISE_H_
