// What an op's kernels are made of, as a hash: tuned records speak of these kernels alone.
#ifndef NETCL_CORE_RUNTIME_PLUGIN_CONTENT_H_
#define NETCL_CORE_RUNTIME_PLUGIN_CONTENT_H_

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "core/base/json_doc.h"
#include "core/ops/op.h"
#include "core/runtime/manifest.h"

namespace netcl {

struct PluginContent {
  // SHA-256 over what determines the kernels of the op: in a set with a variants.json (or what
  // data.variants names in its place) its variants there, those of its family and the sources that
  // they name, so that a change of other ops' kernels leaves it alone; in any other set all files
  // that end in .json, .cl or .h but the manifest, and the library.
  std::string kernels;
  // Of the library alone: what reads variants.json may change, too.
  std::string library;
};

// Reads each plugin's files once. Threads: one at a time.
class PluginContents {
 public:
  // Errors: kPlugin for a file that cannot be read.
  const PluginContent& of(const Manifest& manifest, const OpRow& op);

 private:
  struct Files {
    std::vector<Json> variants;  // variants.json and the files that it names; none: no such set
    std::string library, all;    // hashes; `all` where there are no variants
  };
  static Files read(const Manifest& manifest);

  std::map<std::string, Files> files_;                                  // by plugin
  std::map<std::pair<std::string, std::string>, PluginContent> known_;  // by plugin and op
};

}  // namespace netcl

#endif  // NETCL_CORE_RUNTIME_PLUGIN_CONTENT_H_
