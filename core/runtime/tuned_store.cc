#include "core/runtime/tuned_store.h"

#include <algorithm>
#include <fstream>

#include "core/base/environment.h"
#include "core/base/error.h"
#include "core/base/text.h"

namespace netcl {
namespace fs = std::filesystem;

namespace {

constexpr uint64_t kMaxFileBytes = uint64_t{64} << 20;

// Files of `directory` whose names match, sorted.
std::vector<fs::path> matching(const fs::path& directory, const std::string& pattern) {
  std::vector<fs::path> out;
  std::error_code error;
  for (fs::directory_iterator it(directory, error), end; !error && it != end; it.increment(error)) {
    std::error_code ignored;
    if (glob_match(pattern, it->path().filename().string()) && it->is_regular_file(ignored))
      out.push_back(it->path());
  }
  std::sort(out.begin(), out.end());
  return out;
}

void add_files(const fs::path& directory, const std::string& pattern, const std::string& plugin,
               std::vector<TunedFile>* out) {
  for (const fs::path& path : matching(directory, pattern)) {
    std::error_code error;
    const uint64_t bytes = fs::file_size(path, error);
    const bool known = std::any_of(out->begin(), out->end(),
                                   [&](const TunedFile& file) { return file.path == path; });
    if (!error && !known) out->push_back({path, bytes, plugin});
  }
}

// "matmul" of a line that begins as tuned_line() writes it; "" of any other.
std::string op_of(std::string_view line) {
  constexpr std::string_view kBegin = "{\"op\":\"";
  if (line.substr(0, kBegin.size()) != kBegin) return "";
  line.remove_prefix(kBegin.size());
  const size_t end = line.find('"');
  if (end == std::string_view::npos) return "";
  const std::string_view name = line.substr(0, end);
  return name.find('\\') == std::string_view::npos ? std::string(name) : "";
}

}  // namespace

fs::path user_tuned_dir() {
  const fs::path data = environment::user_data_dir();
  return data.empty() ? data : data / "tuned";
}

std::vector<TunedFile> find_tuned_files(const PluginHost& plugins) {
  std::vector<TunedFile> out;
  if (environment::safe_mode()) return out;
  if (const fs::path user = user_tuned_dir(); !user.empty()) add_files(user, "*.jsonl", "", &out);
  for (const Manifest* manifest : plugins.manifests("kernels")) {
    for (TunedFile& file : tuned_files_of(*manifest)) out.push_back(std::move(file));
  }
  return out;
}

std::vector<TunedFile> tuned_files_of(const Manifest& manifest) {
  std::vector<TunedFile> out;
  for (const std::string& glob : manifest.tuned) {
    const fs::path pattern(glob);
    add_files(manifest.directory / pattern.parent_path(), pattern.filename().string(), manifest.id,
              &out);
  }
  return out;
}

std::vector<NumberedLine> numbered_lines(std::string_view text) {
  std::vector<NumberedLine> out;
  size_t number = 0;
  while (!text.empty()) {
    const size_t end = text.find('\n');
    std::string_view line = text.substr(0, end);
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
    ++number;
    while (!line.empty() && (line.back() == '\r' || line.back() == ' ')) line.remove_suffix(1);
    if (!line.empty()) out.push_back({number, line});
  }
  return out;
}

TunedStore::TunedStore(std::vector<TunedFile> files, Logger log)
    : files_(std::move(files)), log_(std::move(log)) {}

std::string TunedStore::place(const Line& line) const {
  return str_cat(files_[line.file].path.string(), ":", line.number);
}

void TunedStore::index() {
  indexed_ = true;
  texts_.resize(files_.size());
  for (size_t i = 0; i < files_.size(); ++i) {
    const TunedFile& file = files_[i];
    if (file.bytes > kMaxFileBytes) {
      log_.warning(str_cat(file.path.string(), ": ", file.bytes,
                           " bytes; a file of tuned records "
                           "has at most ",
                           kMaxFileBytes, ", so it is not used"));
      continue;
    }
    std::ifstream in(file.path, std::ios::binary);
    texts_[i].resize(file.bytes);
    in.read(texts_[i].data(), static_cast<std::streamsize>(file.bytes));
    texts_[i].resize(static_cast<size_t>(std::max<std::streamsize>(in.gcount(), 0)));
    if (!in && texts_[i].empty() && file.bytes > 0) {
      log_.warning(file.path.string() + ": these tuned records cannot be read");
      continue;
    }
    for (const NumberedLine& line : numbered_lines(texts_[i])) {
      std::string op = op_of(line.text);
      if (op.empty()) {  // written by hand, or damaged
        const TunedLine read = read_tuned_line(line.text);
        if (read.record) op = read.record->question.op;
        if (!read.record)
          log_.warning(str_cat(place({i, line.number, {}}), ": ", read.why,
                               "; this tuned record is not used"));
      }
      if (!op.empty()) lines_[op].push_back({i, line.number, line.text});
    }
  }
}

void TunedStore::add(const Line& line, std::vector<StoredRecord>* out,
                     std::unordered_map<std::string, size_t>* known) {
  TunedLine read = read_tuned_line(line.text);
  const std::string& owner = files_[line.file].plugin;
  if (read.record && !owner.empty() && read.record->plugin != owner) {
    read.why = "a record of plugin " + read.record->plugin + " in the directory of " + owner;
    read.record.reset();
  }
  if (!read.record) {
    log_.warning(place(line) + ": " + read.why + "; this tuned record is not used");
    return;
  }
  TunedRecord& r = *read.record;
  const std::string key =
      join({r.question.text(), r.numerics, r.device.vendor, r.device.arch, r.device.name,
            std::to_string(r.device.compute_units), r.software.str()},
           "|");
  StoredRecord stored{std::move(r), place(line), owner.empty()};
  // A search of the user's looked at all kernel sets; its result stands for all of them.
  const std::string user_key = "user|" + key;
  const std::string own_key = owner.empty() ? user_key : owner + "|" + key;
  const auto found = known->find(own_key);
  if (found != known->end()) {
    (*out)[found->second] = std::move(stored);
    return;
  }
  (*known)[own_key] = out->size();
  out->push_back(std::move(stored));
}

const std::vector<StoredRecord>& TunedStore::of(const std::string& op) {
  const auto found = records_.find(op);
  if (found != records_.end()) return found->second;
  if (!indexed_) index();
  std::vector<StoredRecord>& out = records_[op];
  const auto lines = lines_.find(op);
  if (lines == lines_.end()) return out;
  std::unordered_map<std::string, size_t> known;
  for (const Line& line : lines->second) add(line, &out, &known);
  return out;
}

}  // namespace netcl
