// A rank's way to its group: buckets and collectives of one opened transport.
//
// Ownership: a Communicator owns the group and its buckets, and closes them; the plugin and the
// device outlive it. OpenCL objects pass as void*, as they do at the plugin boundary.
// Threads: abort: any; the rest: one thread at a time.
#ifndef NETCL_CORE_COLLECTIVE_COMMUNICATOR_H_
#define NETCL_CORE_COLLECTIVE_COMMUNICATOR_H_

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "core/abi/netcl_plugin.h"
#include "core/base/error.h"
#include "core/tensor/shape.h"

namespace netcl {

// Status of a call into a plugin, and the text that the plugin stored in it.
struct CallResult {
  netcl_rc rc = NETCL_OK;
  std::string text;
};

// How a Communicator reaches its transport. `call` makes a netcl_call, passes it to the function
// and returns what came of it.
struct TransportAccess {
  const netcl_transport_api* api = nullptr;
  netcl_plugin* self = nullptr;
  std::string name;  // of the plugin, for messages
  std::function<CallResult(const std::function<netcl_rc(netcl_call*)>&)> call;
  // Called at the begin of every wait for a collective: it is posted, and hardly complete.
  std::function<void()> waiting = nullptr;
};

enum class ReduceOp : uint32_t {
  kSum = NETCL_SUM,
  kMax = NETCL_MAX,
  kMin = NETCL_MIN,
  kProd = NETCL_PROD,
  kMean = NETCL_MEAN
};

// The area whose owner must act when a transport returns `rc`: kTraining for a lost or late peer,
// collectives that differ and a stopped group; kDevice for OpenCL; kPlugin for everything else.
ErrorCode transport_error_code(netcl_rc rc);

// The elements [offset, offset + count) of a bucket that a collective works on.
struct Span {
  const netcl_bucket& bucket;
  uint64_t offset = 0, count = 0;
  DType dtype = DType::kF32;
  // A cl_event of a flushed queue, after which `send` holds the data and nobody of this rank reads
  // the same part of `recv` any more; or nullptr: it is so already.
  void* ready = nullptr;
  std::string_view name = {};  // for messages
  bool overlapped = false;     // the device goes on with work that does not need the result
};

// Elements of each of `n` parts of `count`, as equal as can be: what empty `counts` mean.
std::vector<uint64_t> even_parts(uint64_t count, uint32_t n);

// A collective in flight.
struct Ticket {
  uint64_t value = 0;
};

// Told of every collective, in the rank's thread.
class CollectiveObserver {
 public:
  virtual ~CollectiveObserver() = default;
  // After it was posted; `collective.ready` is alive during the call.
  virtual void posted(Ticket ticket, const netcl_coll& collective) = 0;
  // Before and after a wait for exactly this one.
  virtual void waiting(Ticket ticket) = 0;
  virtual void waited(Ticket ticket) = 0;
};

class Communicator {
 public:
  // Asks whether the transport can serve the group. Returns "" if so, else its reason to decline.
  // Errors: as every call, when it fails otherwise.
  static std::string accepts(const TransportAccess& access, const netcl_group_spec& spec);

  // Opens the group. Collective: every rank opens. What `spec` points to (members, device, boot)
  // outlives the Communicator.
  Communicator(TransportAccess access, const netcl_group_spec& spec);
  Communicator(const Communicator&) = delete;
  Communicator& operator=(const Communicator&) = delete;
  ~Communicator();

  uint32_t rank() const { return rank_; }
  uint32_t n_ranks() const { return n_ranks_; }
  const std::string& transport() const { return access_.name; }

  // Memory for collectives, the same size on every rank, in the same order. It lives as long as
  // the Communicator. Kernels write `send` and read `recv`, which they never write unless both are
  // the same buffer.
  const netcl_bucket& new_bucket(uint64_t bytes);

  // Start a collective and return at once; collectives complete in the order in which they are
  // started. What lies where: netcl_plugin.h. `counts`: elements of each rank's part, or empty for
  // parts as equal as can be. Errors: kPlugin, kTraining, kDevice.
  Ticket all_reduce(const Span& span, ReduceOp op, double weight = 1);
  Ticket reduce_scatter(const Span& span, ReduceOp op, const std::vector<uint64_t>& counts = {},
                        double weight = 1);
  Ticket all_gather(const Span& span, const std::vector<uint64_t>& counts = {});
  Ticket broadcast(const Span& span, uint32_t root);
  Ticket scatter(const Span& span, uint32_t root, const std::vector<uint64_t>& counts = {});
  Ticket gather(const Span& span, uint32_t root, const std::vector<uint64_t>& counts = {});

  // Returns when `recv` holds the result for every command enqueued from now on.
  // Errors: kTraining naming ranks and collective.
  void wait(Ticket ticket);
  // Returns when every rank has called it.
  void barrier(std::string_view name) { wait(start_barrier(name)); }
  // The same in two parts: wait() returns when every rank has started it.
  Ticket start_barrier(std::string_view name);

  // From now on; null: nobody. With an observer wait() waits for each earlier collective in turn,
  // which changes no result, since they complete in order. It outlives the Communicator.
  void observe(CollectiveObserver* observer) { observer_ = observer; }

  // Makes every present and later wait of this rank fail.
  void abort(std::string_view reason);

 private:
  static void check(const TransportAccess& access, const char* what,
                    const std::function<netcl_rc(netcl_call*)>& body);
  Ticket post(uint32_t kind, const Span& span, uint32_t redop, uint32_t root,
              const std::vector<uint64_t>& counts, double weight);
  Ticket post(const netcl_coll& collective);
  void wait_for(Ticket ticket);

  TransportAccess access_;
  uint32_t rank_, n_ranks_;
  void* group_ = nullptr;
  CollectiveObserver* observer_ = nullptr;
  std::deque<uint64_t> in_flight_;    // tickets not waited for, while somebody observes
  uint64_t posted_ = 0, waited_ = 0;  // the last tickets
  std::vector<std::unique_ptr<netcl_bucket>> buckets_;
};

}  // namespace netcl

#endif  // NETCL_CORE_COLLECTIVE_COMMUNICATOR_H_
