// The threads that share out one device's work: as many as it has compute units, with the caller.
//
// They sleep between pieces of work: a thread of the OpenCL driver wants the same core right after
// the product. Two commands of one device that run at the same time (queues side by side) share the
// threads: the second has its own alone, and takes the place of one of the crew's.
#ifndef NETCL_PLUGINS_KERNELS_OPENBLAS_CREW_H_
#define NETCL_PLUGINS_KERNELS_OPENBLAS_CREW_H_

#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

namespace netcl::openblas {

class Crew {
 public:
  // `threads`: with the one that calls run(), at least 1.
  explicit Crew(int threads) : num_helpers_(static_cast<size_t>(threads > 1 ? threads - 1 : 0)) {}
  Crew(const Crew&) = delete;
  Crew& operator=(const Crew&) = delete;
  // Threads: none of the crew's.
  ~Crew();

  // Starts the threads, which inherit the caller's cores: not for a thread of the driver, which may
  // be bound to one. Again: nothing.
  void start();
  // Calls piece(0) ... piece(pieces - 1), each once, by whoever is free, and returns when all have
  // returned. They do not throw. Threads: any.
  void run(size_t pieces, const std::function<void(size_t)>& piece);

 private:
  struct Work {
    const std::function<void(size_t)>& piece;
    const size_t pieces;
    std::atomic<size_t> next{0};
    size_t inside = 0;  // helpers that are at it
  };
  void help(size_t number);

  const size_t num_helpers_;
  std::once_flag started_;
  std::vector<std::thread> helpers_;
  std::atomic<size_t> alone_{0};  // callers that found the crew busy
  std::mutex mutex_;              // for what follows
  std::condition_variable wake_, left_;
  Work* work_ = nullptr;
  uint64_t works_ = 0;
  bool ended_ = false;
};

}  // namespace netcl::openblas

#endif  // NETCL_PLUGINS_KERNELS_OPENBLAS_CREW_H_
