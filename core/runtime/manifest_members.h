// Reading the members of a manifest. Each throws Refused, with NPL-01 and the place.
#ifndef NETCL_CORE_RUNTIME_MANIFEST_MEMBERS_H_
#define NETCL_CORE_RUNTIME_MANIFEST_MEMBERS_H_

#include <cstddef>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "core/runtime/manifest.h"

namespace netcl {

const nlohmann::ordered_json& member(const nlohmann::ordered_json& json, const char* key,
                                     const std::filesystem::path& path);
// Text that is not empty.
std::string text_member(const nlohmann::ordered_json& json, const char* key,
                        const std::filesystem::path& path);
std::vector<std::string> text_list(const nlohmann::ordered_json& value, const std::string& key,
                                   const std::filesystem::path& path);

// Element `index` of "provides". Names that this netcl does not know are warnings: they may be
// those of a newer one, and what they name is never asked for.
Provision read_provision(const nlohmann::ordered_json& json, size_t index,
                         const std::filesystem::path& path, std::vector<std::string>* warnings);

}  // namespace netcl

#endif  // NETCL_CORE_RUNTIME_MANIFEST_MEMBERS_H_
