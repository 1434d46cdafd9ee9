// Built OpenCL programs, in memory and on disk.
//
// A program is keyed by its source, options, platform, driver and device. On disk its binary lies
// behind a header with key and checksum, written by temporary file and rename; an entry that is
// damaged or that the driver refuses is rebuilt. Without a cache directory, or with one that cannot
// be written, programs are simply built. Threads: any.
#ifndef NETCL_CORE_CL_PROGRAM_CACHE_H_
#define NETCL_CORE_CL_PROGRAM_CACHE_H_

#include <atomic>
#include <filesystem>
#include <functional>
#include <mutex>
#include <string>
#include <unordered_map>
#include <vector>

#include "core/base/log.h"
#include "core/cl/device_info.h"
#include "core/cl/opencl.h"

namespace netcl {

class ProgramCache {
 public:
  // `context` has `device`, perhaps beside others. `directory` empty: memory only.
  ProgramCache(const DeviceInfo& info, cl::Context context, cl::Device device,
               std::filesystem::path directory, Logger log);

  // Errors: kDevice, with the compiler's log and the first lines of the source.
  cl::Program get(const std::string& source, const std::string& options);

  // Called before and after each compilation: a supervisor is told that the worker still lives.
  void set_progress(std::function<void()> tick) { tick_ = std::move(tick); }
  // Programs compiled, and programs taken from disk, since the start.
  size_t num_built() const { return num_built_; }
  size_t num_from_disk() const { return num_from_disk_; }

 private:
  cl::Program build(const std::string& source, const std::string& options);
  [[noreturn]] void report_failure(const cl::Program& program, const std::string& source,
                                   const std::string& options, const cl::Error& e) const;
  bool load(const std::filesystem::path& path, uint64_t key, const std::string& options,
            cl::Program* out);
  std::vector<unsigned char> binary_of(const cl::Program& program) const;
  void store(const std::filesystem::path& path, uint64_t key, const cl::Program& program);

  const DeviceInfo info_;
  cl::Context context_;
  cl::Device device_;
  std::filesystem::path directory_;
  Logger log_;
  std::function<void()> tick_ = [] {};
  std::mutex mutex_;
  std::unordered_map<std::string, cl::Program> programs_;
  bool disk_failed_ = false;
  std::atomic<size_t> num_built_{0}, num_from_disk_{0};
};

}  // namespace netcl

#endif  // NETCL_CORE_CL_PROGRAM_CACHE_H_
