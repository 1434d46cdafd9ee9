// Which tuned records a choice of kernels uses, and who checks them.
#ifndef NETCL_CORE_RUNTIME_TUNED_OPTIONS_H_
#define NETCL_CORE_RUNTIME_TUNED_OPTIONS_H_

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "core/base/log.h"

namespace netcl {

class RecordCheck;

// A file of records. Only its first `bytes` count: what is appended later does not, so that all
// workers of a run, whenever they start, see the same records.
struct TunedFile {
  std::filesystem::path path;
  uint64_t bytes = 0;
  std::string plugin;  // whose directory holds it; "": the user's own
};

struct TunedOptions {
  std::vector<TunedFile> files;        // none: no records
  std::filesystem::path verdicts;      // the file of tuned_verdicts.h; empty: none
  std::shared_ptr<RecordCheck> check;  // null: only what has passed a check before is used
  Logger log;
};

}  // namespace netcl

#endif  // NETCL_CORE_RUNTIME_TUNED_OPTIONS_H_
