#include "core/distributed/micro_shards.h"

#include <numeric>

namespace netcl {

namespace {

constexpr const char* kSlots = "slots";
constexpr const char* kTotal = "total";
constexpr const char* kNext = "next";
constexpr const char* kWeights = "weights";
constexpr const char* kMerged = "merged";

Attrs over_slots() { return {{"axes", std::vector<int64_t>{0}}}; }

Graph sum_graph(int64_t n, int64_t floats) {
  Graph graph;
  const ValueId slots = graph.external(kSlots, {DType::kF32, Shape{n, floats}});
  graph.output(kTotal, graph.call("sum", {slots}, over_slots()));
  return graph;
}

Graph merge_graph(int64_t n, int64_t floats) {
  Graph graph;
  const TensorDesc desc{DType::kF32, Shape{n, floats}};
  const ValueId next = graph.external(kNext, desc), weights = graph.external(kWeights, desc);
  graph.output(kMerged, graph.call("sum", {graph.call("mul", {next, weights})}, over_slots()));
  return graph;
}

size_t bytes_of(int64_t floats) { return static_cast<size_t>(floats) * sizeof(float); }

}  // namespace

std::vector<IndexRange> micro_shard_rows(int64_t rows, int64_t n) {
  std::vector<IndexRange> out;
  int64_t first = 0;
  for (const int64_t count : even_counts(rows, n)) {
    out.push_back({first, count});
    first += count;
  }
  return out;
}

std::vector<IndexRange> own_micro_shards(int64_t rows, const std::vector<int64_t>& of_ranks,
                                         uint32_t rank) {
  const std::vector<IndexRange> all =
      micro_shard_rows(rows, std::accumulate(of_ranks.begin(), of_ranks.end(), int64_t{0}));
  const IndexRange own = shard_slice(of_ranks, rank);
  if (own.count == 0) return {{0, 0}};
  return {all.begin() + own.first, all.begin() + own.first + own.count};
}

MicroShards::MicroShards(Replica& replica, const Group& group, const std::vector<int64_t>& of_ranks)
    : replica_(replica),
      group_(group),
      of_ranks_(of_ranks),
      n_(std::accumulate(of_ranks.begin(), of_ranks.end(), int64_t{0})),
      own_(shard_slice(of_ranks, group.rank)) {
  const StepGraphs& graphs = replica.graphs();
  const auto compile = [&](Graph graph) {
    auto out = std::make_unique<CompiledGraph>(
        std::move(graph), replica_.kernels(), replica_.shared_queue(),
        [this](const std::string& name, const TensorDesc&) { return memory(name); });
    out->prepare(0);
    return out;
  };
  slots_ = make_slots(graphs.gradients.num_floats(), group.bucket, "the micro-shards' gradients");
  sum_ = compile(sum_graph(n_, slots_.floats));
  const int64_t statistics = graphs.statistic_values.num_floats();
  if (statistics == 0) return;
  const netcl_bucket* bucket = nullptr;
  if (group.communicator != nullptr)
    bucket = &group.communicator->new_bucket(bytes_of(n_ * statistics));
  statistics_ = make_slots(statistics, bucket, "the micro-shards' statistics");
  weights_ = replica_.queue().allocate(bytes_of(n_ * statistics), "the micro-shards' weights");
  merged_ = replica_.queue().allocate(bytes_of(statistics), "the merged statistics");
  merge_ = compile(merge_graph(n_, statistics));
}

MicroShards::Slots MicroShards::make_slots(int64_t floats, const netcl_bucket* bucket,
                                           const char* what) {
  Slots out;
  out.floats = floats;
  out.bucket = bucket;
  if (bucket != nullptr) {
    out.send = cl::Buffer(static_cast<cl_mem>(bucket->send), true);
    out.recv = cl::Buffer(static_cast<cl_mem>(bucket->recv), true);
  } else {
    out.own = replica_.queue().allocate(bytes_of(n_ * floats), what);
    out.send = out.recv = out.own->buffer();
  }
  return out;
}

cl::Buffer MicroShards::memory(const std::string& name) {
  if (name == kSlots) return slots_.recv;
  if (name == kTotal) return replica_.recv();
  if (name == kNext) return statistics_.recv;
  return (name == kWeights ? weights_ : merged_)->buffer();
}

void MicroShards::begin(int64_t rows) {
  if (merge_ == nullptr || rows == weights_rows_) return;
  weights_rows_ = rows;
  write_weights(rows);
}

void MicroShards::write_weights(int64_t rows) {
  const StepGraphs& graphs = replica_.graphs();
  const std::vector<IndexRange> parts = micro_shard_rows(rows, n_);
  std::vector<float> weights(static_cast<size_t>(n_ * statistics_.floats), 0.0f);
  for (const Slot& slot : graphs.statistics) {
    const ArenaLayout::Entry& entry = graphs.statistic_values.find(slot.name);
    for (int64_t m = 0; m < n_; ++m) {
      const double share =
          static_cast<double>(parts[static_cast<size_t>(m)].count) / static_cast<double>(rows);
      const double weight = slot.merge == NETCL_MERGE_WEIGHTED_MEAN ? share : m == 0 ? 1 : 0;
      const auto begin = weights.begin() + m * statistics_.floats + entry.offset;
      std::fill_n(begin, entry.desc.shape.num_elements(), static_cast<float>(weight));
    }
  }
  with_cl_errors("writing the micro-shards' weights", [&] {
    replica_.queue().cl().enqueueWriteBuffer(weights_->buffer(), CL_TRUE, 0,
                                             weights.size() * sizeof(float), weights.data());
  });
}

void MicroShards::keep(const cl::Buffer& from, const Slots& slots, int64_t index) {
  const size_t bytes = bytes_of(slots.floats);
  with_cl_errors("keeping a micro-shard", [&] {
    replica_.queue().cl().enqueueCopyBuffer(from, slots.send, 0, static_cast<size_t>(index) * bytes,
                                            bytes);
  });
}

void MicroShards::clear(const Slots& slots, int64_t index) {
  const size_t bytes = bytes_of(slots.floats);
  with_cl_errors("clearing a micro-shard", [&] {
    replica_.queue().cl().enqueueFillBuffer(slots.send, 0.0f, static_cast<size_t>(index) * bytes,
                                            bytes);
  });
}

void MicroShards::pass(size_t index, int64_t rows, const StepRandom& random) {
  if (static_cast<int64_t>(index) >= own_.count) return;
  const int64_t slot = own_.first + static_cast<int64_t>(index);
  if (rows == 0) {
    clear(slots_, slot);
    if (merge_ != nullptr) clear(statistics_, slot);
    return;
  }
  replica_.forward_backward(rows, random);
  keep(replica_.send(), slots_, slot);
  if (merge_ != nullptr) keep(replica_.next_statistics()->buffer(), statistics_, slot);
}

Ticket MicroShards::post(const Slots& slots, const cl::Event& ready, const char* name) {
  std::vector<uint64_t> counts;
  for (const int64_t n : of_ranks_) counts.push_back(static_cast<uint64_t>(n * slots.floats));
  return group_.communicator->all_gather(
      {*slots.bucket, 0, static_cast<uint64_t>(n_ * slots.floats), DType::kF32, ready(), name},
      counts);
}

void MicroShards::add_up(const cl::Event& ready) {
  if (group_.communicator != nullptr) {
    Ticket last = post(slots_, ready, "micro-shards");
    if (merge_ != nullptr) last = post(statistics_, ready, "micro-shards' statistics");
    group_.communicator->wait(last);
  }
  sum_->run(0);
  if (merge_ == nullptr) return;
  merge_->run(0);
  replica_.put_next_statistics(merged_->buffer());
}

}  // namespace netcl
