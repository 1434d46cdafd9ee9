// Whole-file reading and crash-safe writing.
#ifndef NETCL_CORE_BASE_FILE_H_
#define NETCL_CORE_BASE_FILE_H_

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>

#include "core/base/error.h"

namespace netcl {

// Returns the file's bytes. Errors: `code`, with the path and the system's reason.
std::string read_file(const std::filesystem::path& path, ErrorCode code);

// Replaces `path` with `bytes`: writes a temporary file beside it, fsyncs, renames and fsyncs the
// directory, so a crash or a full disk leaves the old content. Errors: `code`.
void write_file_atomic(const std::filesystem::path& path, std::string_view bytes, ErrorCode code);

// The temporary file of a write by the calling thread: no other thread or process has the same.
std::filesystem::path temporary_file(const std::filesystem::path& path);

// Removes what write_file_atomic of a process that was killed has left in the directory. The
// process must have ended. Errors: none; a file that cannot be removed stays.
void remove_temporary_files(const std::filesystem::path& directory, int64_t pid);

// FNV-1a, 64 bits: a content key for caches, not a signature.
uint64_t hash_bytes(std::string_view bytes, uint64_t seed = 0xcbf29ce484222325ull);

// 16 lower-case hexadecimal digits.
std::string hex(uint64_t value);

}  // namespace netcl

#endif  // NETCL_CORE_BASE_FILE_H_
