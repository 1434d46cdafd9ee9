// The tuned records of a process: found in files, indexed by op and shapes, and read when a
// question comes near them, so that ten thousand others cost little. A damaged line is warned about
// and left out; the other lines count. Threads: one at a time.
#ifndef NETCL_CORE_RUNTIME_TUNED_STORE_H_
#define NETCL_CORE_RUNTIME_TUNED_STORE_H_

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "core/base/log.h"
#include "core/runtime/plugin_host.h"
#include "core/runtime/tuned_options.h"
#include "core/runtime/tuned_record.h"

namespace netcl {

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

// Records further away than this tell nothing: a factor of 16 in one dimension, or of 2 in four.
inline constexpr double kMaxTunedDistance = 4;

// Sum of |log2| of the quotients of all inputs' dimensions; nullopt where ranks differ, or one size
// is zero and the other is not.
using ShapeList = std::vector<std::vector<int64_t>>;
std::optional<double> shape_distance(const ShapeList& a, const ShapeList& b);
ShapeList shapes_of(const TunedQuestion& question);

class TunedStore {
 public:
  TunedStore(std::vector<TunedFile> files, Logger log);

  // Records of the question's op whose shapes are not too far from its own; they live as long as
  // the store. Of two records for one question on one device with one software the later line
  // stands, the user's before a plugin's. A plugin's files speak of that plugin alone.
  std::vector<const StoredRecord*> near(const TunedQuestion& question);
  bool empty() const { return files_.empty(); }

 private:
  struct Line {
    size_t file, number;
    std::string_view text;
    std::optional<ShapeList> shapes;  // where they can be seen without reading the whole line
    bool read = false;
    std::unique_ptr<const StoredRecord> record;  // null: not read, or damaged
  };
  void index();
  void index_file(size_t file);
  void read(Line* line);
  std::string place(size_t file, size_t number) const;

  const std::vector<TunedFile> files_;
  Logger log_;
  bool indexed_ = false;
  std::vector<std::string> texts_;                            // of the files
  std::unordered_map<std::string, std::vector<Line>> lines_;  // by op
};

}  // namespace netcl

#endif  // NETCL_CORE_RUNTIME_TUNED_STORE_H_
