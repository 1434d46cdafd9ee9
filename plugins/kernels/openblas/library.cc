#include "plugins/kernels/openblas/library.h"

#include <dlfcn.h>

#include <algorithm>
#include <cstdlib>
#include <mutex>

#include "core/abi/netcl_plugin.hpp"

namespace netcl::openblas {

namespace {

using plugin::Decline;

// Of the C interface to BLAS.
constexpr int kRowMajor = 101, kNotTransposed = 111, kTransposed = 112;

class Symbols {
 public:
  explicit Symbols(const char* file) : file_(file), handle_(dlopen(file, RTLD_NOW | RTLD_LOCAL)) {
    if (handle_ != nullptr) return;
    const char* why = dlerror();
    throw Decline(std::string("the library OpenBLAS cannot be opened (") +
                  (why != nullptr ? why : file) +
                  "); install it (Debian: libopenblas0-pthread), or name its folder in "
                  "LD_LIBRARY_PATH");
  }
  template <typename Function>
  void find(const char* name, Function* out) const {
    *out = reinterpret_cast<Function>(dlsym(handle_, name));
    if (*out == nullptr)
      throw Decline(file_ + " has no function " + name + "; OpenBLAS 0.3 with its C interface has");
  }

 private:
  const std::string file_;
  void* const handle_;
};

// The number behind `key` in "OpenBLAS 0.3.21 DYNAMIC_ARCH MAX_THREADS=64", or 0.
int number_after(const std::string& config, const std::string& key) {
  const size_t at = config.find(key);
  return at == std::string::npos ? 0 : std::atoi(config.c_str() + at + key.size());
}

}  // namespace

Library::Library(const char* file) {
  const Symbols symbols(file);
  char* (*get_config)() = nullptr;
  char* (*get_core)() = nullptr;
  int (*get_parallel)() = nullptr;
  symbols.find("openblas_get_config", &get_config);
  symbols.find("openblas_get_corename", &get_core);
  symbols.find("openblas_get_parallel", &get_parallel);
  symbols.find("openblas_get_num_threads", &get_threads_);
  symbols.find("openblas_set_num_threads", &set_threads_);
  symbols.find("cblas_sgemm", &sgemm_);
  const std::string config = get_config();
  if (config.find("USE64BITINT") != std::string::npos)
    throw Decline(std::string(file) + " takes integers of 64 bits (" + config +
                  "); install the one of 32 bits (Debian: libopenblas0-pthread)");
  const size_t begin = std::min(config.find(' '), config.size() - 1) + 1;
  name_ = config.substr(begin, config.find(' ', begin) - begin) + "-" + get_core();
  // Without threads it may or may not have locks around its memory, and does not say.
  if (get_parallel() != 0) max_callers_ = std::max(1, number_after(config, "MAX_THREADS="));
}

void Library::multiply(const Matrices& of) const {
  // One that was made with OpenMP keeps the number of each calling thread apart.
  thread_local bool told = false;
  if (!told || get_threads_() != 1) set_threads_(1);
  told = true;
  static std::mutex alone;
  std::unique_lock<std::mutex> lock(alone, std::defer_lock);
  if (max_callers_ == 1) lock.lock();
  const auto form = [](bool transposed) { return transposed ? kTransposed : kNotTransposed; };
  const auto number = [](int64_t n) { return static_cast<int>(n); };
  sgemm_(kRowMajor, form(of.a_transposed), form(of.b_transposed), number(of.m), number(of.n),
         number(of.k), 1.0f, of.a, number(of.a_row), of.b, number(of.b_row), 0.0f, of.y,
         number(of.y_row));
}

}  // namespace netcl::openblas
