#include "core/cl/program_cache.h"

#include <algorithm>
#include <cstring>
#include <sstream>

#include "core/base/file.h"

namespace netcl {
namespace fs = std::filesystem;

namespace {

struct EntryHeader {
  char magic[8];
  uint64_t key, checksum, size_bytes;
};
constexpr int kBuildAttempts = 2;
constexpr char kMagic[8] = {'n', 'e', 't', 'c', 'l', 'p', 'r', '1'};

constexpr size_t kShownLines = 12, kShownColumns = 120;

// How the text begins, for messages: an expression in a macro can be pages.
std::string beginning(const std::string& text) {
  std::istringstream in(text);
  std::string out, line;
  for (size_t i = 0; i < kShownLines && std::getline(in, line); ++i) {
    if (line.size() > kShownColumns) line = line.substr(0, kShownColumns) + " ...";
    out += line + '\n';
  }
  return out;
}

}  // namespace

ProgramCache::ProgramCache(const DeviceInfo& info, cl::Context context, cl::Device device,
                           fs::path directory, Logger log)
    : info_(info),
      context_(std::move(context)),
      device_(std::move(device)),
      directory_(std::move(directory)),
      log_(std::move(log)) {}

cl::Program ProgramCache::get(const std::string& source, const std::string& options) {
  const std::lock_guard<std::mutex> lock(mutex_);
  const std::string memory_key = options + '\n' + source;
  const auto found = programs_.find(memory_key);
  if (found != programs_.end()) return found->second;

  const uint64_t key = hash_bytes(memory_key, hash_bytes(info_.platform + '|' + info_.driver + '|' +
                                                         info_.opencl + '|' + info_.name));
  const fs::path path =
      directory_.empty() ? fs::path() : directory_ / ("program-" + hex(key) + ".bin");
  cl::Program program;
  if (!path.empty() && load(path, key, options, &program)) {
    ++num_from_disk_;
  } else {
    program = build(source, options);
    ++num_built_;
    if (!path.empty()) store(path, key, program);
  }
  programs_.emplace(memory_key, program);
  return program;
}

cl::Program ProgramCache::build(const std::string& source, const std::string& options) {
  // Some drivers fail without a reason while another process fills the cache that they share; the
  // second attempt finds it filled. An error in the source comes again.
  for (int attempt = 1;; ++attempt) {
    tick_();
    cl::Program program(context_, source);
    try {
      program.build({device_}, options.c_str());
      tick_();
      return program;
    } catch (const cl::Error& e) {
      if (attempt < kBuildAttempts) continue;
      report_failure(program, source, options, e);
    }
  }
}

void ProgramCache::report_failure(const cl::Program& program, const std::string& source,
                                  const std::string& options, const cl::Error& e) const {
  std::string text;
  program.getBuildInfo(device_, CL_PROGRAM_BUILD_LOG, &text);
  fail(ErrorCode::kDevice, "building a kernel on ", info_.name, " failed with ",
       cl_error_name(e.err()), "\ncompiler: ", text, "\noptions: ", options, "\nsource:\n",
       beginning(source));
}

bool ProgramCache::load(const fs::path& path, uint64_t key, const std::string& options,
                        cl::Program* out) {
  std::error_code ignored;
  if (!fs::exists(path, ignored)) return false;
  try {
    const std::string bytes = read_file(path, ErrorCode::kDevice);
    EntryHeader header;
    if (bytes.size() < sizeof(header)) return false;
    std::memcpy(&header, bytes.data(), sizeof(header));
    const std::string_view binary = std::string_view(bytes).substr(sizeof(header));
    if (std::memcmp(header.magic, kMagic, sizeof(kMagic)) != 0 || header.key != key ||
        header.size_bytes != binary.size() || header.checksum != hash_bytes(binary)) {
      log_.warning("program cache: ", path.string(), " is damaged and will be rebuilt");
      return false;
    }
    cl::Program program(
        context_, {device_},
        cl::Program::Binaries{std::vector<unsigned char>(binary.begin(), binary.end())});
    program.build({device_}, options.c_str());
    *out = program;
    return true;
  } catch (const cl::Error& e) {
    log_.debug("program cache: the driver refuses ", path.string(), ": ", cl_error_name(e.err()));
  } catch (const Error& e) {
    log_.debug("program cache: ", e.message());
  }
  return false;
}

// Of this device; empty for a program that was not built for it. A program belongs to all devices
// of its context.
std::vector<unsigned char> ProgramCache::binary_of(const cl::Program& program) const {
  const std::vector<cl::Device> devices = program.getInfo<CL_PROGRAM_DEVICES>();
  const std::vector<std::vector<unsigned char>> binaries = program.getInfo<CL_PROGRAM_BINARIES>();
  for (size_t i = 0; i < std::min(devices.size(), binaries.size()); ++i) {
    if (devices[i]() == device_()) return binaries[i];
  }
  return {};
}

void ProgramCache::store(const fs::path& path, uint64_t key, const cl::Program& program) {
  if (disk_failed_) return;
  try {
    const std::vector<unsigned char> bytes_of_device = binary_of(program);
    if (bytes_of_device.empty()) return;
    // PoCL packs the files of a folder that other processes fill, too: what two looks do not find
    // alike was being written, and would end the process that loads it.
    if (binary_of(program) != bytes_of_device) return;
    const std::string_view binary(reinterpret_cast<const char*>(bytes_of_device.data()),
                                  bytes_of_device.size());
    EntryHeader header{};
    std::memcpy(header.magic, kMagic, sizeof(kMagic));
    header.key = key;
    header.checksum = hash_bytes(binary);
    header.size_bytes = binary.size();
    std::string bytes(reinterpret_cast<const char*>(&header), sizeof(header));
    bytes += binary;
    fs::create_directories(directory_);
    write_file_atomic(path, bytes, ErrorCode::kDevice);
  } catch (const std::exception& e) {
    disk_failed_ = true;
    log_.warning("program cache: built programs are not kept on disk: ", e.what());
  }
}

}  // namespace netcl
