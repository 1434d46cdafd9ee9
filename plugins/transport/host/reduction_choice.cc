// Whether the ranks' devices reduce what they exchange, or the processors do. See group.h.
#include <sys/mman.h>

#include <algorithm>
#include <cstdio>

#include "plugins/transport/host/group.h"
#include "plugins/transport/host/run.h"

namespace netcl::host_transport {

using plugin::Failure;
using plugin::Host;

namespace {

// Chunks of an exchange: large copies run faster, small ones overlap sooner. On two cards at once,
// both ways, copies of 256 KiB, 1 MiB and 4 MiB reached 21, 33 and 38 GB/s.
constexpr uint64_t kLeastExchange = 512 * 1024, kMostExchange = 4 * 1024 * 1024;
constexpr uint64_t kExchangedChunks = 8;

constexpr uint64_t kTrialBytes = 8 * 1024 * 1024;
constexpr int kTrialRounds = 8;  // the first is not timed, of the others the fastest counts

// Any bits: sums of denormals, infinities and NaNs among them.
std::vector<uint32_t> any_words(uint32_t rank) {
  std::vector<uint32_t> out(kTrialBytes / 4);
  uint64_t state = rank + 1;
  for (uint32_t& word : out) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    word = static_cast<uint32_t>(state >> 32);
  }
  return out;
}

}  // namespace

uint64_t HostGroup::exchange_chunk_bytes(uint64_t bytes) const {
  if (chunk_given_) return chunk_bytes_;
  const uint64_t part = (bytes / kExchangedChunks + 63) / 64 * 64;
  return std::clamp(part, kLeastExchange, kMostExchange);
}

std::string HostGroup::choose_reduction(const Host& host, const Options& options) {
  const bool wanted =
      options.on_devices.value_or(n_ranks_ == 2 && !is_cpu_ && way_ == Way::kRegistered);
  uint32_t mine = 0;
  std::string why;
  if (wanted && way_ != Way::kZeroCopy && n_ranks_ > 1 && n_ranks_ <= transport::kMaxReducedRanks) {
    try {
      device_reducer_ = std::make_unique<DeviceReducer>(
          cl_, options.kernels.empty() ? host.plugin_dir() : options.kernels, rank_, n_ranks_,
          chunk_given_ ? chunk_bytes_ : kMostExchange, kCopiesAhead);
      for (const uint32_t op : {NETCL_SUM, NETCL_MEAN}) {
        if (device_reducer_->can_reduce(NETCL_F32, op)) mine |= 1u << op;
      }
    } catch (const Failure& e) {
      why = std::string("no reduction on devices: ") + e.what();
    }
  }
  std::vector<uint32_t> all(n_ranks_);
  plugin::check(host.table()->boot_exchange(host.call(), boot_, &mine, sizeof(mine), all.data()),
                "boot_exchange");
  device_redops_ = mine;
  for (const uint32_t theirs : all) device_redops_ &= theirs;
  if (device_redops_ == 0) {
    device_reducer_.reset();
    return why;
  }
  if (options.on_devices) return "the devices reduce";
  const uint32_t redops = device_redops_;
  const Trial trial = try_reductions(host);
  std::vector<Trial> trials(n_ranks_);
  plugin::check(
      host.table()->boot_exchange(host.call(), boot_, &trial, sizeof(trial), trials.data()),
      "boot_exchange");
  Trial group{0, 0, 1};
  for (const Trial& t : trials) {
    group.device_ns = std::max(group.device_ns, t.device_ns);
    group.processors_ns = std::max(group.processors_ns, t.processors_ns);
    group.equal &= t.equal;
  }
  const bool keep = group.equal != 0 && group.device_ns < group.processors_ns;
  device_redops_ = keep ? redops : 0;
  if (!keep) device_reducer_.reset();
  char text[160];
  std::snprintf(text, sizeof(text), "8 MiB take %.0f us on the devices%s, %.0f on processors: %s",
                static_cast<double>(group.device_ns) * 1e-3,
                group.equal != 0 ? "" : " (with other bits)",
                static_cast<double>(group.processors_ns) * 1e-3,
                keep ? "the devices reduce" : "the processors reduce");
  return text;
}

void HostGroup::run_here(const Host& host, const netcl_coll& c) {
  Collective collective(c, n_ranks_);
  collective.sequence = next_sequence_++;
  Run run(*this, collective, &host);
  run();
  chunks_done_ += run.chunks();
  completed_ = collective.sequence;
}

HostGroup::Trial HostGroup::try_reductions(const Host& host) {
  void* memory = nullptr;
  const uint64_t shared_bytes = Bucket::shared_bytes(kTrialBytes, n_ranks_);
  plugin::check(host.table()->boot_shared(host.call(), boot_, shared_bytes, &memory),
                "boot_shared");
  auto bucket = std::make_unique<Bucket>(cl_, kTrialBytes, rank_, n_ranks_, way_, true, memory);
  netcl_bucket handle{};
  handle.handle = bucket.get();
  netcl_coll c{};
  c.size = sizeof(c);
  c.kind = NETCL_ALL_REDUCE;
  c.dtype = NETCL_F32;
  c.redop = NETCL_SUM;
  c.count = kTrialBytes / 4;
  c.bucket = &handle;
  netcl_coll together{};
  together.kind = NETCL_BARRIER;
  const std::vector<uint32_t> data = any_words(rank_);
  std::vector<uint32_t> results[2];
  uint64_t best[2] = {};
  const uint32_t redops = device_redops_;
  for (int round = 0; round < 2 * kTrialRounds; ++round) {
    const int on_devices = round % 2;
    device_redops_ = on_devices != 0 ? redops : 0;
    check_cl(clEnqueueWriteBuffer(cl_.out, bucket->send(), CL_TRUE, 0, kTrialBytes, data.data(), 0,
                                  nullptr, nullptr),
             "clEnqueueWriteBuffer");
    run_here(host, together);
    const uint64_t start = now_ns();
    run_here(host, c);
    const uint64_t ns = now_ns() - start;
    if (round / 2 == 1 || (round / 2 > 1 && ns < best[on_devices])) best[on_devices] = ns;
    results[on_devices].resize(data.size());
    check_cl(clEnqueueReadBuffer(cl_.queue, bucket->recv(), CL_TRUE, 0, kTrialBytes,
                                 results[on_devices].data(), 0, nullptr, nullptr),
             "clEnqueueReadBuffer");
  }
  // The peers read this rank's slot no more: all have placed everything.
  device_redops_ = redops;
  bucket.reset();
  madvise(memory, shared_bytes, MADV_REMOVE);
  return {best[1], best[0], results[0] == results[1] ? 1u : 0u};
}

}  // namespace netcl::host_transport
