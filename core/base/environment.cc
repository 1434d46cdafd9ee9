#include "core/base/environment.h"

#include <algorithm>
#include <cstdlib>

#include "core/base/text.h"

extern char** environ;

namespace netcl::environment {
namespace fs = std::filesystem;

namespace {

std::optional<std::string> variable(const char* name) {
  const char* value = std::getenv(name);
  if (value == nullptr || *value == '\0') return std::nullopt;
  return std::string(value);
}

fs::path base_dir(const char* xdg, const char* below_home) {
  if (const auto dir = variable(xdg)) return fs::path(*dir) / "netcl";
  if (const auto home = variable("HOME")) return fs::path(*home) / below_home / "netcl";
  return {};
}

}  // namespace

std::optional<std::vector<fs::path>> plugin_path() {
  const auto text = variable("NETCL_PLUGIN_PATH");
  if (!text) return std::nullopt;
  std::vector<fs::path> out;
  for (const std::string& part : split(*text, ':')) {
    if (!part.empty()) out.emplace_back(part);
  }
  return out;
}

bool safe_mode() { return variable("NETCL_SAFE_MODE").value_or("0") == "1"; }

std::string faults() { return variable("NETCL_FAULTS").value_or(""); }

fs::path user_data_dir() { return base_dir("XDG_DATA_HOME", ".local/share"); }

fs::path cache_dir() {
  if (const auto dir = variable("NETCL_CACHE_DIR")) return *dir;
  return base_dir("XDG_CACHE_HOME", ".cache");
}

std::optional<std::string> icd_vendors() { return variable("OCL_ICD_VENDORS"); }

std::vector<std::string> icd_filenames() {
  std::vector<std::string> out;
  for (const std::string& name : split(variable("OCL_ICD_FILENAMES").value_or(""), ':')) {
    if (!name.empty()) out.push_back(name);
  }
  return out;
}

void apply(const std::vector<std::string>& changes) {
  for (const std::string& change : changes) {
    const size_t equal = change.find('=');
    if (equal == std::string::npos) {
      ::unsetenv(change.c_str());
    } else {
      ::setenv(change.substr(0, equal).c_str(), change.c_str() + equal + 1, 1);
    }
  }
}

std::vector<std::string> with_changes(const std::vector<std::string>& changes) {
  const auto name_of = [](const std::string& entry) { return entry.substr(0, entry.find('=')); };
  std::vector<std::string> out;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string name = name_of(*entry);
    const bool changed = std::any_of(changes.begin(), changes.end(),
                                     [&](const std::string& c) { return name_of(c) == name; });
    if (!changed) out.emplace_back(*entry);
  }
  for (const std::string& change : changes) {
    if (change.find('=') != std::string::npos) out.push_back(change);
  }
  return out;
}

}  // namespace netcl::environment
