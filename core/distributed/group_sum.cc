#include "core/distributed/group_sum.h"

namespace netcl {

GroupSum::GroupSum(Communicator& communicator, Queue& queue, uint64_t bytes)
    : communicator_(communicator),
      queue_(queue),
      bucket_(communicator.new_bucket(bytes)),
      send_(static_cast<cl_mem>(bucket_.send), true),
      recv_(static_cast<cl_mem>(bucket_.recv), true) {}

void GroupSum::reduce(uint64_t count, std::string_view name) {
  const cl::Event ready = with_cl_errors("marking the queue", [&] {
    cl::Event event;
    queue_.cl().enqueueMarkerWithWaitList(nullptr, &event);
    queue_.cl().flush();
    return event;
  });
  communicator_.wait(
      communicator_.all_reduce({bucket_, 0, count, DType::kF32, ready(), name}, ReduceOp::kSum));
}

void GroupSum::add_up(const cl::Buffer& in, const cl::Buffer& out, const TensorDesc& desc,
                      std::string_view name) {
  const size_t bytes = desc.size_bytes();
  NETCL_CHECK(desc.dtype == DType::kF32 && bytes <= bucket_.bytes, ErrorCode::kInternal,
              "a sum over the group of ", desc.str(), " does not fit into ", bucket_.bytes,
              " bytes of f32");
  if (bytes == 0) return;
  with_cl_errors("copying a sum", [&] { queue_.cl().enqueueCopyBuffer(in, send_, 0, 0, bytes); });
  reduce(bytes / sizeof(float), name);
  with_cl_errors("copying a sum", [&] { queue_.cl().enqueueCopyBuffer(recv_, out, 0, 0, bytes); });
}

std::vector<float> GroupSum::add_up(const std::vector<float>& mine, std::string_view name) {
  const size_t bytes = mine.size() * sizeof(float);
  NETCL_CHECK(bytes <= bucket_.bytes, ErrorCode::kInternal, "a sum over the group of ", bytes,
              " bytes does not fit into ", bucket_.bytes);
  std::vector<float> out(mine.size());
  if (bytes == 0) return out;
  with_cl_errors("writing a sum",
                 [&] { queue_.cl().enqueueWriteBuffer(send_, CL_TRUE, 0, bytes, mine.data()); });
  reduce(mine.size(), name);
  with_cl_errors("reading a sum",
                 [&] { queue_.cl().enqueueReadBuffer(recv_, CL_TRUE, 0, bytes, out.data()); });
  return out;
}

}  // namespace netcl
