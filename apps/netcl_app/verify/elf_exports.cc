#include "apps/netcl_app/verify/elf_exports.h"

#include <elf.h>

#include <algorithm>
#include <cstring>
#include <iterator>

#include "core/base/error.h"

namespace netcl::app::verify {

namespace {

// Reads structures out of the file, and finds in it what the loader finds in memory.
class ElfFile {
 public:
  explicit ElfFile(std::string_view bytes) : bytes_(bytes), header_(at<Elf64_Ehdr>(0)) {
    for (size_t i = 0; i < header_.e_phnum; ++i)
      segments_.push_back(at<Elf64_Phdr>(header_.e_phoff + i * sizeof(Elf64_Phdr)));
  }

  template <typename T>
  T at(uint64_t offset) const {
    NETCL_CHECK(offset <= bytes_.size() && bytes_.size() - offset >= sizeof(T), ErrorCode::kPlugin,
                "the library's symbol table points out of the file");
    T out{};
    std::memcpy(&out, bytes_.data() + offset, sizeof(T));
    return out;
  }

  std::string text(uint64_t offset) const {
    NETCL_CHECK(offset < bytes_.size(), ErrorCode::kPlugin,
                "the library's symbol names lie out of the file");
    return std::string(bytes_.substr(offset, bytes_.find('\0', offset) - offset));
  }

  // Where in the file the byte at an address of the loaded library comes from.
  uint64_t offset_of(uint64_t address) const {
    for (const Elf64_Phdr& s : segments_) {
      if (s.p_type == PT_LOAD && address >= s.p_vaddr && address - s.p_vaddr < s.p_filesz)
        return s.p_offset + (address - s.p_vaddr);
    }
    fail(ErrorCode::kPlugin, "the library's dynamic table points out of its segments");
  }

  // The value of an entry of the dynamic table, or 0.
  uint64_t dynamic(Elf64_Sxword tag) const {
    for (const Elf64_Phdr& s : segments_) {
      if (s.p_type != PT_DYNAMIC) continue;
      for (uint64_t i = 0; i + sizeof(Elf64_Dyn) <= s.p_filesz; i += sizeof(Elf64_Dyn)) {
        const auto entry = at<Elf64_Dyn>(s.p_offset + i);
        if (entry.d_tag == tag) return entry.d_un.d_val;
        if (entry.d_tag == DT_NULL) break;
      }
    }
    return 0;
  }

 private:
  std::string_view bytes_;
  Elf64_Ehdr header_;
  std::vector<Elf64_Phdr> segments_;
};

// Symbols of a GNU hash table: the end of the chain that begins last.
uint64_t count_by_gnu_hash(const ElfFile& file, uint64_t table) {
  const auto n_buckets = file.at<uint32_t>(table), first = file.at<uint32_t>(table + 4);
  const uint64_t buckets = table + 16 + uint64_t{file.at<uint32_t>(table + 8)} * 8;
  uint64_t last = 0;
  for (uint64_t i = 0; i < n_buckets; ++i)
    last = std::max<uint64_t>(last, file.at<uint32_t>(buckets + i * 4));
  if (last < first) return first;  // nothing is exported
  const uint64_t chains = buckets + uint64_t{n_buckets} * 4;
  while ((file.at<uint32_t>(chains + (last - first) * 4) & 1) == 0) ++last;
  return last + 1;
}

uint64_t count_symbols(const ElfFile& file) {
  if (const uint64_t hash = file.dynamic(DT_HASH))
    return file.at<uint32_t>(file.offset_of(hash) + 4);
  const uint64_t hash = file.dynamic(DT_GNU_HASH);
  NETCL_CHECK(hash != 0, ErrorCode::kPlugin, "the library has no table of dynamic symbols");
  return count_by_gnu_hash(file, file.offset_of(hash));
}

bool is_export(const Elf64_Sym& symbol) {
  const unsigned binding = ELF64_ST_BIND(symbol.st_info);
  const unsigned visibility = ELF64_ST_VISIBILITY(symbol.st_other);
  return symbol.st_shndx != SHN_UNDEF &&
         (binding == STB_GLOBAL || binding == STB_WEAK || binding == STB_GNU_UNIQUE) &&
         (visibility == STV_DEFAULT || visibility == STV_PROTECTED);
}

// The linker makes these for every library that does not say what it exports.
bool is_of_the_linker(const std::string& name) {
  static const char* const names[] = {"__bss_start", "_edata", "_end", "_init", "_fini"};
  return std::any_of(std::begin(names), std::end(names), [&](const char* n) { return name == n; });
}

}  // namespace

std::vector<std::string> elf_exports(std::string_view bytes) {
  const ElfFile file(bytes);
  const uint64_t symbols = file.dynamic(DT_SYMTAB), names = file.dynamic(DT_STRTAB);
  NETCL_CHECK(symbols != 0 && names != 0, ErrorCode::kPlugin,
              "the library has no table of dynamic symbols");
  const uint64_t table = file.offset_of(symbols), texts = file.offset_of(names);
  const uint64_t n = count_symbols(file);
  std::vector<std::string> out;
  for (uint64_t i = 1; i < n; ++i) {
    const auto symbol = file.at<Elf64_Sym>(table + i * sizeof(Elf64_Sym));
    if (!is_export(symbol)) continue;
    std::string name = file.text(texts + symbol.st_name);
    if (!is_of_the_linker(name)) out.push_back(std::move(name));
  }
  std::sort(out.begin(), out.end());
  return out;
}

}  // namespace netcl::app::verify
