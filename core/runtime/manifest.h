// A plugin's manifest: what it claims to be, read and checked before any of its code runs.
#ifndef NETCL_CORE_RUNTIME_MANIFEST_H_
#define NETCL_CORE_RUNTIME_MANIFEST_H_

#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "core/cl/device_info.h"

namespace netcl {

// A refusal with its stable code ("NPL-03") and the words: what, where, which numbers, what to do.
struct Refusal {
  std::string code, detail;
};

// One thing that a plugin offers. Exactly one of op, family, layer and transport is set.
struct Provision {
  std::string op, family, layer, transport;
  std::vector<std::string> dtypes;            // empty: all
  std::vector<nlohmann::ordered_json> match;  // devices: any object that matches; empty: all
  std::vector<nlohmann::ordered_json> never;  // devices that are refused all the same
  int priority = 0;
  bool yields = false;       // of kernels: asked after every set that does not
  bool one_context = false;  // of a transport: its ranks share a process and an OpenCL context
};

struct Manifest {
  std::filesystem::path directory;  // real path
  std::filesystem::path library;    // absolute
  std::string id, version, name, license;
  std::vector<std::string> kinds;  // "kernels", "layer", "transport"
  uint32_t abi_major = 0, abi_minor = 0;
  std::vector<Provision> provides;
  std::string variants = "variants.json";  // data.variants: of a kernel set that is pure data
  std::vector<std::string> tuned;          // data.tuned: globs of files of tuned records
  std::vector<std::string> warnings;  // unknown keys, ops and types, with the nearest known name

  bool has_kind(const std::string& kind) const;
};

// Reads DIR/plugin.json and passes the gates that need no device: schema, library inside the
// directory, machine type, ABI, permissions. Never throws: an unreadable plugin is a result.
struct ManifestResult {
  std::optional<Manifest> manifest;  // set as soon as the id is known, even if refused
  std::optional<Refusal> refusal;
};
ManifestResult read_manifest(const std::filesystem::path& directory);
// The same of a manifest that is to be written into the directory: all gates but those of the
// library and the hashes, which need not be there yet.
ManifestResult check_manifest(const std::filesystem::path& directory, const std::string& text);

// What is wrong with an object of `match` or `never` whatever the device is, or "".
std::string rule_problem(const nlohmann::ordered_json& rule);

// Why a device does not match an object of `match` (the first failing member), or nullopt.
// Members are AND: vendor platform name arch type driver (globs; text or a list of texts),
// extensions (all of them), cl (least version), min_local_mem_bytes, min_compute_units.
std::optional<std::string> mismatch(const nlohmann::ordered_json& rule, const DeviceInfo& device);

// Why none of the provision's rules takes the device, or nullopt if one does. *specificity: number
// of members of the matching rule.
std::optional<std::string> refuses_device(const Provision& provision, const DeviceInfo& device,
                                          int* specificity = nullptr);

}  // namespace netcl

#endif  // NETCL_CORE_RUNTIME_MANIFEST_H_
