// What a kernel set's kernels are made of, as a hash: tuned records speak of these kernels alone.
#ifndef NETCL_CORE_RUNTIME_PLUGIN_CONTENT_H_
#define NETCL_CORE_RUNTIME_PLUGIN_CONTENT_H_

#include <string>

#include "core/runtime/manifest.h"

namespace netcl {

// SHA-256 over names and bytes of what determines the kernels: in a set with a variants.json all
// files that end in .json, .cl or .h but the manifest; in any other set those and the library.
// Errors: kPlugin for a file that cannot be read. Threads: any.
std::string kernels_content(const Manifest& manifest);

// Of the library alone: what reads variants.json may change, too.
std::string library_content(const Manifest& manifest);

}  // namespace netcl

#endif  // NETCL_CORE_RUNTIME_PLUGIN_CONTENT_H_
