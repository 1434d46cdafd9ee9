#include "plugins/transport/p2p/launch.h"

#include <utility>

#include "core/abi/netcl_plugin.hpp"

namespace netcl::p2p_transport {

namespace {

struct Part {
  uint64_t first, count;  // elements of the bucket
};

// The commands of one collective while they are enqueued.
class Launch {
 public:
  Launch(const std::vector<RankDevice*>& devices, const std::vector<Posting*>& postings)
      : devices_(devices),
        postings_(postings),
        size_(postings[0]->kind == NETCL_BARRIER
                  ? 1
                  : transport::reduced_element_bytes(postings[0]->dtype)) {
    for (const Posting* p : postings) {
      if (p->ready != nullptr) ready_.push_back(p->ready);
    }
  }
  Launch(const Launch&) = delete;
  Launch& operator=(const Launch&) = delete;
  ~Launch() {
    for (const std::vector<cl_event>& events : {intermediate_, done_}) {
      for (cl_event event : events) {
        if (event != nullptr) clReleaseEvent(event);
      }
    }
  }

  std::vector<cl_event> run();

 private:
  const Posting& first() const { return *postings_[0]; }
  uint32_t n_ranks() const { return static_cast<uint32_t>(postings_.size()); }
  Part all() const { return {first().offset_bytes / size_, first().count}; }
  Part part(uint32_t rank) const {
    Part out = all();
    for (uint32_t r = 0; r < rank; ++r) out.first += first().counts[r];
    out.count = first().counts[rank];
    return out;
  }
  // Reduces `part` on the rank's device to the same place of `out`.
  cl_event reduce(uint32_t rank, const Part& part, cl_mem out);
  void copy(uint32_t rank, cl_mem from, uint64_t from_element, cl_mem to, const Part& part,
            const std::vector<cl_event>& after);
  void marker(uint32_t rank);
  void all_reduce();
  cl_mem part_buffer(uint32_t rank, uint64_t bytes);
  cl_event* done() {
    done_.push_back(nullptr);
    return &done_.back();
  }

  const std::vector<RankDevice*>& devices_;
  const std::vector<Posting*>& postings_;
  const uint64_t size_;
  std::vector<cl_event> ready_, done_, intermediate_;
};

cl_event Launch::reduce(uint32_t rank, const Part& part, cl_mem out) {
  std::vector<transport::ReduceInput> inputs;
  for (const Posting* p : postings_) inputs.push_back({p->bucket->send, part.first, p->weight});
  return devices_[rank]->kernels().enqueue(devices_[rank]->queue(), first().dtype, first().redop,
                                           inputs, out, part.first, part.count, ready_);
}

void Launch::copy(uint32_t rank, cl_mem from, uint64_t from_element, cl_mem to, const Part& part,
                  const std::vector<cl_event>& after) {
  if (part.count == 0) return;
  check_cl(clEnqueueCopyBuffer(devices_[rank]->queue(), from, to, from_element * size_,
                               part.first * size_, part.count * size_,
                               static_cast<cl_uint>(after.size()),
                               after.empty() ? nullptr : after.data(), done()),
           "clEnqueueCopyBuffer");
}

void Launch::marker(uint32_t rank) {
  check_cl(clEnqueueMarkerWithWaitList(devices_[rank]->queue(), static_cast<cl_uint>(ready_.size()),
                                       ready_.empty() ? nullptr : ready_.data(), done()),
           "clEnqueueMarkerWithWaitList");
}

cl_mem Launch::part_buffer(uint32_t rank, uint64_t bytes) {
  Bucket& bucket = *postings_[rank]->bucket;
  if (bucket.part_bytes < bytes) {
    if (bucket.part != nullptr) clReleaseMemObject(bucket.part);
    bucket.part = nullptr;
    cl_int code = CL_SUCCESS;
    bucket.part =
        clCreateBuffer(devices_[rank]->context(), CL_MEM_READ_WRITE, bytes, nullptr, &code);
    check_cl(code, "clCreateBuffer of a reduced part");
    bucket.part_bytes = bytes;
  }
  return bucket.part;
}

void Launch::all_reduce() {
  if (n_ranks() <= 2) {
    for (uint32_t r = 0; r < n_ranks(); ++r) {
      done_.push_back(reduce(r, all(), postings_[r]->bucket->recv));
    }
    return;
  }
  // A part's buffer holds it at its place in the bucket, so that one kernel text serves both ways.
  std::vector<cl_mem> parts;
  for (uint32_t r = 0; r < n_ranks(); ++r) {
    const Part mine = part(r);
    parts.push_back(nullptr);
    if (mine.count == 0) continue;
    parts.back() = part_buffer(r, (mine.first + mine.count) * size_);
    intermediate_.push_back(reduce(r, mine, parts.back()));
    check_cl(clFlush(devices_[r]->queue()), "clFlush");
  }
  for (uint32_t r = 0; r < n_ranks(); ++r) {
    for (uint32_t q = 0; q < n_ranks(); ++q) {
      copy(r, parts[q], part(q).first, postings_[r]->bucket->recv, part(q), intermediate_);
    }
  }
}

std::vector<cl_event> Launch::run() {
  const uint32_t kind = first().kind;
  if (kind == NETCL_BARRIER || first().count == 0) {
    for (uint32_t r = 0; r < n_ranks(); ++r) marker(r);
  } else if (kind == NETCL_ALL_REDUCE) {
    all_reduce();
  } else {
    for (uint32_t r = 0; r < n_ranks(); ++r) {
      const cl_mem recv = postings_[r]->bucket->recv;
      const cl_mem root = postings_[first().root]->bucket->send;
      if (kind == NETCL_REDUCE_SCATTER && part(r).count > 0) {
        done_.push_back(reduce(r, part(r), recv));
      }
      if (kind == NETCL_BROADCAST) copy(r, root, all().first, recv, all(), ready_);
      if (kind == NETCL_SCATTER) copy(r, root, part(r).first, recv, part(r), ready_);
      if (kind == NETCL_ALL_GATHER || (kind == NETCL_GATHER && r == first().root)) {
        for (uint32_t q = 0; q < n_ranks(); ++q) {
          copy(r, postings_[q]->bucket->send, part(q).first, recv, part(q), ready_);
        }
      }
    }
  }
  for (RankDevice* device : devices_) check_cl(clFlush(device->queue()), "clFlush");
  return std::exchange(done_, {});
}

}  // namespace

std::vector<cl_event> launch_collective(const std::vector<RankDevice*>& devices,
                                        const std::vector<Posting*>& postings) {
  return Launch(devices, postings).run();
}

}  // namespace netcl::p2p_transport
