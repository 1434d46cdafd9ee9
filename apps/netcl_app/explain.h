// The plan of a training step: what a worker says of it, and how it is shown.
#ifndef NETCL_APPS_NETCL_APP_EXPLAIN_H_
#define NETCL_APPS_NETCL_APP_EXPLAIN_H_

#include <string>

#include "core/base/json_doc.h"
#include "core/distributed/replica.h"

namespace netcl::app {

// The prepared step of a replica for a pass of `rows` samples.
Json plan_json(const Replica& replica, int64_t rows);

// Plans of all devices, each with its "device": the JSON document, and text for people.
Json explain_document(const Json& plans);
std::string explain_text(const Json& plans);

}  // namespace netcl::app

#endif  // NETCL_APPS_NETCL_APP_EXPLAIN_H_
