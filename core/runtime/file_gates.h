// The gates that a plugin's files must pass before the library is opened. Each throws Refused with
// the gate's code; only read_manifest catches it.
#ifndef NETCL_CORE_RUNTIME_FILE_GATES_H_
#define NETCL_CORE_RUNTIME_FILE_GATES_H_

#include <filesystem>
#include <string>

#include "core/base/error.h"
#include "core/runtime/manifest.h"

namespace netcl {

struct Refused {
  Refusal refusal;
};

template <typename... Args>
[[noreturn]] void refuse(const char* code, const Args&... args) {
  throw Refused{{code, str_cat(args...)}};
}

// The real path of a file that must exist in the directory or below; `code` if it does not.
std::filesystem::path file_inside(const std::filesystem::path& directory,
                                  const std::string& relative, const char* code);

// NPL-03: a whole shared object for this machine.
void check_shared_object(const std::filesystem::path& library);

// NPL-06: the file's SHA-256, in lower-case hexadecimal digits.
void check_hash(const std::filesystem::path& file, const std::string& wanted);

// NPL-07: neither the directory nor anything below it is writable by every user.
void check_permissions(const std::filesystem::path& directory);

}  // namespace netcl

#endif  // NETCL_CORE_RUNTIME_FILE_GATES_H_
