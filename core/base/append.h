// Appending lines to files that several processes write.
#ifndef NETCL_CORE_BASE_APPEND_H_
#define NETCL_CORE_BASE_APPEND_H_

#include <filesystem>
#include <string_view>

#include "core/base/error.h"

namespace netcl {

// Appends the line and '\n' in one write and syncs, making the file and its directory where they
// are missing. Lines of several processes never mix; after a line that was cut off, the new one
// begins a line of its own, and so an empty line may come between those of processes that write at
// the same time. A write that fails half-way is taken back. Errors: `code`, with the
// path and the system's reason.
void append_line(const std::filesystem::path& path, std::string_view line, ErrorCode code);

}  // namespace netcl

#endif  // NETCL_CORE_BASE_APPEND_H_
