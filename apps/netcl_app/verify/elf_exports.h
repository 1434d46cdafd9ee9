// The symbols that a shared object offers to others, read from the file: nothing of it is loaded.
// Threads: any.
#ifndef NETCL_APPS_NETCL_APP_VERIFY_ELF_EXPORTS_H_
#define NETCL_APPS_NETCL_APP_VERIFY_ELF_EXPORTS_H_

#include <string>
#include <string_view>
#include <vector>

namespace netcl::app::verify {

// Names of the defined, visible symbols of the dynamic symbol table, but for those that the linker
// makes by itself, sorted; `bytes` is the whole
// file, for x86-64. Errors: kPlugin for a file that is damaged or has no such table.
std::vector<std::string> elf_exports(std::string_view bytes);

}  // namespace netcl::app::verify

#endif  // NETCL_APPS_NETCL_APP_VERIFY_ELF_EXPORTS_H_
