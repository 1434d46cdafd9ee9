#include "core/runtime/file_gates.h"

#include <elf.h>
#include <sys/stat.h>

#include <algorithm>
#include <cstring>

#include "core/base/file.h"
#include "core/base/sha256.h"

namespace netcl {
namespace fs = std::filesystem;

namespace {

// Every segment must lie in the file: the loader would crash on one that was cut off.
void check_segments(const fs::path& library, const std::string& bytes, const Elf64_Ehdr& header) {
  for (size_t i = 0; i < header.e_phnum; ++i) {
    Elf64_Phdr segment{};
    const uint64_t at = header.e_phoff + i * sizeof(segment);
    bool whole = at >= header.e_phoff && at <= bytes.size() && bytes.size() - at >= sizeof(segment);
    if (whole) {
      std::memcpy(&segment, bytes.data() + at, sizeof(segment));
      whole = segment.p_type != PT_LOAD || (segment.p_offset <= bytes.size() &&
                                            bytes.size() - segment.p_offset >= segment.p_filesz);
    }
    if (!whole)
      refuse("NPL-03", library.string(), " is cut off: it has ", bytes.size(),
             " bytes, its segments need more; copy it again");
  }
}

}  // namespace

void check_shared_object(const fs::path& library) {
  std::string bytes;
  try {
    bytes = read_file(library, ErrorCode::kPlugin);
  } catch (const Error& e) {
    refuse("NPL-03", e.message());
  }
  const std::string head = bytes.substr(0, sizeof(Elf64_Ehdr));
  Elf64_Ehdr header{};
  if (head.size() < sizeof(header) || std::memcmp(head.data(), ELFMAG, SELFMAG) != 0) {
    refuse("NPL-03", library.string(), " is not a shared object (no ELF header)");
  }
  std::memcpy(&header, head.data(), sizeof(header));
  if (header.e_ident[EI_CLASS] != ELFCLASS64 || header.e_machine != EM_X86_64) {
    refuse("NPL-03", library.string(), " was built for another machine (ELF machine ",
           header.e_machine, "); expected x86-64 (", EM_X86_64, ")");
  }
  if (header.e_type != ET_DYN)
    refuse("NPL-03", library.string(), " is not a shared object (ELF type ", header.e_type, ")");
  check_segments(library, bytes, header);
}

fs::path file_inside(const fs::path& directory, const std::string& relative, const char* code) {
  std::error_code error;
  const fs::path real = fs::canonical(directory / relative, error);
  if (error) refuse(code, (directory / relative).string(), " is missing: ", error.message());
  const auto [end, ignored] =
      std::mismatch(directory.begin(), directory.end(), real.begin(), real.end());
  if (end != directory.end() || fs::path(relative).is_absolute()) {
    refuse(code, relative, " lies outside the plugin's directory ", directory.string());
  }
  // Of a pipe nobody would read the end.
  if (!fs::is_regular_file(real, error)) refuse(code, real.string(), " is no regular file");
  return real;
}

void check_hash(const fs::path& file, const std::string& wanted) {
  std::string found;
  try {
    found = sha256_hex(read_file(file, ErrorCode::kPlugin));
  } catch (const Error& e) {
    refuse("NPL-06", e.message());
  }
  if (found != wanted) {
    refuse("NPL-06", file.string(), ": its SHA-256 is ", found, ", the manifest says ", wanted,
           "; the file was changed or cut off: install the plugin again");
  }
}

namespace {

void check_not_open(const fs::path& path) {
  struct stat info {};
  if (::stat(path.c_str(), &info) != 0) return;  // through links
  if ((info.st_mode & S_IWOTH) != 0) {
    refuse("NPL-07", path.string(),
           " can be written by every user of this machine; run: chmod o-w ", path.string());
  }
}

}  // namespace

void check_permissions(const fs::path& directory) {
  check_not_open(directory);
  std::error_code error;
  // Where this user may not look nothing is read either.
  const auto options = fs::directory_options::skip_permission_denied;
  for (fs::recursive_directory_iterator it(directory, options, error), end; !error && it != end;
       it.increment(error))
    check_not_open(it->path());
}

}  // namespace netcl
