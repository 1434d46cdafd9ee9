#include "core/runtime/tuned_store.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <fstream>
#include <utility>

#include "core/base/environment.h"
#include "core/base/error.h"
#include "core/base/text.h"
#include "core/ops/op.h"
#include "core/runtime/tuned_fit.h"

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

// What follows `begin` in the text, up to `end`; nullopt where either is missing.
std::optional<std::string_view> between(std::string_view text, std::string_view begin,
                                        std::string_view end) {
  const size_t from = text.find(begin);
  if (from == std::string_view::npos) return std::nullopt;
  text.remove_prefix(from + begin.size());
  const size_t to = text.find(end);
  if (to == std::string_view::npos) return std::nullopt;
  return text.substr(0, to);
}

// "matmul" of a whole line as tuned_line() writes it; "" of any other.
std::string op_of(std::string_view line) {
  constexpr std::string_view kBegin = "{\"op\":\"";
  if (line.substr(0, kBegin.size()) != kBegin || line.back() != '}') return "";
  const auto name = between(line, kBegin, "\"");
  return name && name->find('\\') == std::string_view::npos ? std::string(*name) : "";
}

// [[512,512],[512,64]] of such a line.
std::optional<ShapeList> quick_shapes(std::string_view line) {
  const auto text = between(line, "\"shapes\":[", ",\"attributes\":");
  if (!text || text->empty() || text->back() != ']') return std::nullopt;
  ShapeList out;
  const char* at = text->data();
  const char* const end = at + text->size() - 1;  // the outer list's bracket
  while (at != end) {
    if (*at == '[') {
      out.emplace_back();
    } else if (*at >= '0' && *at <= '9' && !out.empty()) {
      int64_t value = 0;
      const auto [stop, error] = std::from_chars(at, end, value);
      if (error != std::errc()) return std::nullopt;
      out.back().push_back(value);
      at = stop;
      continue;
    } else if (*at != ',' && *at != ']') {
      return std::nullopt;
    }
    ++at;
  }
  return out;
}

// Whether a question can be near these shapes. What never can be is read at once, so that it is
// warned about.
bool may_be_asked(const std::string& op, const std::optional<ShapeList>& shapes) {
  const OpRow* row = row_of(op);
  if (row == nullptr) return false;
  if (!shapes) return true;
  if (shapes->size() < row->min_in || shapes->size() > row->max_in) return false;
  for (const auto& dims : *shapes) {
    int64_t elements = 1;
    for (const int64_t dim : dims) {
      if (dim > 0 && elements > kMaxTunedElements / dim) return false;
      elements *= std::max<int64_t>(dim, 1);
    }
  }
  return true;
}

// Of two records with one key the later stands. A search of the user's looked at all kernel sets;
// its result stands for all of them.
std::string identity(const StoredRecord& stored) {
  const TunedRecord& r = stored.record;
  return join(
      {stored.user ? "" : r.plugin, r.question.text(), r.numerics, r.device.vendor, r.device.arch,
       r.device.name, std::to_string(r.device.compute_units), r.software.str()},
      "|");
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

ShapeList shapes_of(const TunedQuestion& question) {
  ShapeList out;
  for (const TensorDesc& desc : question.in) out.push_back(desc.shape.dims());
  return out;
}

std::optional<double> shape_distance(const ShapeList& a, const ShapeList& b) {
  if (a.size() != b.size()) return std::nullopt;
  double out = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    if (a[i].size() != b[i].size()) return std::nullopt;
    for (size_t d = 0; d < a[i].size(); ++d) {
      const int64_t x = a[i][d], y = b[i][d];
      if (x == y) continue;
      if (x <= 0 || y <= 0) return std::nullopt;
      out += std::abs(std::log2(static_cast<double>(x) / static_cast<double>(y)));
    }
  }
  return out;
}

std::string TunedStore::place(size_t file, size_t number) const {
  return str_cat(files_[file].path.string(), ":", number);
}

void TunedStore::index_file(size_t i) {
  const TunedFile& file = files_[i];
  if (file.bytes > kMaxFileBytes) {
    log_.warning(str_cat(file.path.string(), ": ", file.bytes, " bytes; a file of tuned records ",
                         "has at most ", kMaxFileBytes, ", so it is not used"));
    return;
  }
  std::ifstream in(file.path, std::ios::binary);
  texts_[i].resize(file.bytes);
  in.read(texts_[i].data(), static_cast<std::streamsize>(file.bytes));
  texts_[i].resize(static_cast<size_t>(std::max<std::streamsize>(in.gcount(), 0)));
  if (texts_[i].empty() && file.bytes > 0) {
    log_.warning(file.path.string() + ": these tuned records cannot be read");
    return;
  }
  for (const NumberedLine& line : numbered_lines(texts_[i])) {
    Line one{i, line.number, line.text, std::nullopt, false, nullptr};
    std::string op = op_of(line.text);
    if (!op.empty()) one.shapes = quick_shapes(line.text);
    if (!may_be_asked(op, one.shapes)) {  // written by hand, or damaged
      read(&one);
      op = one.record ? one.record->record.question.op : "";
    }
    if (!op.empty()) lines_[op].push_back(std::move(one));
  }
}

void TunedStore::index() {
  indexed_ = true;
  texts_.resize(files_.size());
  for (size_t i = 0; i < files_.size(); ++i) index_file(i);
}

void TunedStore::read(Line* line) {
  line->read = true;
  TunedLine read = read_tuned_line(line->text);
  const std::string& owner = files_[line->file].plugin;
  if (read.record && !owner.empty() && read.record->plugin != owner) {
    read.why = "a record of plugin " + read.record->plugin + " in the directory of " + owner;
    read.record.reset();
  }
  const std::string where = place(line->file, line->number);
  if (!read.record) {
    log_.warning(where + ": " + read.why + "; this tuned record is not used");
    return;
  }
  line->record =
      std::make_unique<StoredRecord>(StoredRecord{std::move(*read.record), where, owner.empty()});
}

std::vector<const StoredRecord*> TunedStore::near(const TunedQuestion& question) {
  if (!indexed_) index();
  std::vector<const StoredRecord*> out;
  const auto lines = lines_.find(question.op);
  if (lines == lines_.end()) return out;
  const ShapeList shapes = shapes_of(question);
  std::unordered_map<std::string, size_t> known;
  for (Line& line : lines->second) {
    if (line.shapes) {
      const auto distance = shape_distance(*line.shapes, shapes);
      if (!distance || *distance > kMaxTunedDistance) continue;
    }
    if (!line.read) read(&line);
    if (!line.record) continue;
    const auto [place, is_new] = known.try_emplace(identity(*line.record), out.size());
    if (is_new) {
      out.push_back(line.record.get());
    } else {
      out[place->second] = line.record.get();
    }
  }
  return out;
}

}  // namespace netcl
