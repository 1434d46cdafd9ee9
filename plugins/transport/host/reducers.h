// Threads that reduce pieces of a collective while the thread that runs it moves data.
//
// Pieces are numbered in the order in which their data comes; a thread takes the next number, waits
// for its data and reduces it. No lock: a counter hands the numbers out.
// Threads: start and finish: the one that runs the collective.
#ifndef NETCL_PLUGINS_TRANSPORT_HOST_REDUCERS_H_
#define NETCL_PLUGINS_TRANSPORT_HOST_REDUCERS_H_

#include <atomic>
#include <cstdint>
#include <thread>
#include <vector>

namespace netcl::host_transport {

class Reducers {
 public:
  class Work {
   public:
    virtual ~Work() = default;
    virtual uint64_t pieces() const = 0;
    // Waits until the piece may be reduced; false: nobody will need it any more.
    virtual bool wait_for(uint64_t piece) = 0;
    virtual void reduce(uint64_t piece) = 0;
  };

  explicit Reducers(uint32_t n_threads);
  Reducers(const Reducers&) = delete;
  Reducers& operator=(const Reducers&) = delete;
  ~Reducers();

  uint32_t size() const { return static_cast<uint32_t>(threads_.size()); }
  // `work` stays valid until finish().
  void start(Work* work);
  // Waits until no thread is in the work.
  void finish();

 private:
  void loop();

  Work* work_ = nullptr;            // published by `round_`
  std::atomic<uint32_t> round_{0};  // changes with every start; what idle threads sleep on
  std::atomic<uint32_t> busy_{0};   // threads that have not finished the round
  std::atomic<uint64_t> next_{0};   // piece to be taken
  std::atomic<bool> closing_{false};
  std::vector<std::thread> threads_;
};

}  // namespace netcl::host_transport

#endif  // NETCL_PLUGINS_TRANSPORT_HOST_REDUCERS_H_
