// The tuned records of a process: found in files, indexed by op, read when an op is first asked
// about. A damaged line is warned about and left out; the other lines count.
// Threads: one at a time.
#ifndef NETCL_CORE_RUNTIME_TUNED_STORE_H_
#define NETCL_CORE_RUNTIME_TUNED_STORE_H_

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "core/base/log.h"
#include "core/runtime/plugin_host.h"
#include "core/runtime/tuned_record.h"

namespace netcl {

// A file of records. Only its first `bytes` count: what is appended later does not, so that all
// workers of a run, whenever they start, see the same records.
struct TunedFile {
  std::filesystem::path path;
  uint64_t bytes = 0;
  std::string plugin;  // whose directory holds it; "": the user's own
};

// The user's files ($XDG_DATA_HOME/netcl/tuned/*.jsonl, by name), then those that the manifests'
// data.tuned name. In safe mode none.
std::vector<TunedFile> find_tuned_files(const PluginHost& plugins);
// Those of one plugin.
std::vector<TunedFile> tuned_files_of(const Manifest& manifest);
// The directory of the user's records; empty without a home.
std::filesystem::path user_tuned_dir();

struct StoredRecord {
  TunedRecord record;
  std::string place;  // "FILE:LINE"
  bool user = false;
};

struct NumberedLine {
  size_t number;
  std::string_view text;
};
// The lines of a text that are not blank, counted from 1.
std::vector<NumberedLine> numbered_lines(std::string_view text);

class TunedStore {
 public:
  TunedStore(std::vector<TunedFile> files, Logger log);

  // Of two records for one question on one device with one software the later line stands, the
  // user's before a plugin's. A plugin's files speak of that plugin alone.
  const std::vector<StoredRecord>& of(const std::string& op);
  bool empty() const { return files_.empty(); }

 private:
  struct Line {
    size_t file, number;
    std::string_view text;
  };
  void index();
  void add(const Line& line, std::vector<StoredRecord>* out,
           std::unordered_map<std::string, size_t>* known);
  std::string place(const Line& line) const;

  const std::vector<TunedFile> files_;
  Logger log_;
  bool indexed_ = false;
  std::vector<std::string> texts_;  // of the files
  std::unordered_map<std::string, std::vector<Line>> lines_;
  std::map<std::string, std::vector<StoredRecord>> records_;
};

}  // namespace netcl

#endif  // NETCL_CORE_RUNTIME_TUNED_STORE_H_
