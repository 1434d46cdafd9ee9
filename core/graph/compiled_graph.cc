#include "core/graph/compiled_graph.h"

#include <algorithm>

namespace netcl {

CompiledGraph::CompiledGraph(Graph graph, KernelProvider& kernels, std::shared_ptr<Queue> queue,
                             Memory memory, AllReduce all_reduce)
    : graph_(std::move(graph)),
      kernels_(kernels),
      queue_(std::move(queue)),
      memory_(std::move(memory)),
      all_reduce_(std::move(all_reduce)) {}

void CompiledGraph::copy_sum(const Reduction& reduction) const {
  const size_t bytes = reduction.desc.size_bytes();
  if (bytes == 0) return;
  with_cl_errors("copying a sum", [&] {
    queue_->cl().enqueueCopyBuffer(reduction.in, reduction.out, 0, 0, bytes);
  });
}

std::vector<TensorDesc> CompiledGraph::descs(const std::vector<ValueId>& values,
                                             int64_t batch) const {
  std::vector<TensorDesc> out;
  for (const ValueId v : values) {
    const TensorDesc& desc = graph_.desc(v);
    out.push_back({desc.dtype, desc.shape.with_batch(batch)});
  }
  return out;
}

void CompiledGraph::prepare(int64_t batch) {
  if (instances_.count(batch) == 0) instances_[batch] = make_instance(batch);
}

void CompiledGraph::run(int64_t batch, bool grouped) {
  prepare(batch);
  const Instance& instance = *instances_.at(batch);
  size_t next = 0;
  const auto launch_until = [&](size_t end) {
    for (; next < end; ++next) instance.executables[next].enqueue(queue_->cl());
  };
  for (const Reduction& reduction : instance.reductions) {
    launch_until(reduction.before);
    if (grouped && all_reduce_) {
      all_reduce_(reduction.in, reduction.out, reduction.desc);
    } else {
      copy_sum(reduction);
    }
  }
  launch_until(instance.executables.size());
  queue_->enqueued(instance.num_launches);
}

std::unique_ptr<CompiledGraph::Instance> CompiledGraph::make_instance(int64_t batch) {
  auto instance = std::make_unique<Instance>();
  std::map<ValueId, cl::Buffer> place;  // of roots
  for (const auto* places : {&graph_.externals(), &graph_.outputs()}) {
    for (const Graph::Place& p : *places) {
      place[graph_.root(p.value)] = memory_(p.name, descs({p.value}, batch)[0]);
    }
  }

  // Choose a kernel for every node and find how long each temporary lives.
  const std::vector<Node>& nodes = graph_.nodes();
  std::vector<std::vector<size_t>> scratch(nodes.size());  // indices into lifetimes
  std::map<ValueId, size_t> temporary;                     // root -> index into lifetimes
  std::vector<Lifetime> lifetimes;
  const auto touch = [&](ValueId v, size_t node) {
    const ValueId root = graph_.root(v);
    if (place.count(root) > 0) return;
    const auto [it, added] = temporary.emplace(root, lifetimes.size());
    if (added) lifetimes.push_back({descs({root}, batch)[0].size_bytes(), node, node});
    lifetimes[it->second].last = node;
  };
  for (size_t i = 0; i < nodes.size(); ++i) {
    const Node& node = nodes[i];
    if (node.op->view) continue;
    for (const ValueId v : node.in) touch(v, i);
    for (const ValueId v : node.out) touch(v, i);
    if (node.op->collective) continue;
    const std::vector<TensorDesc> in = descs(node.in, batch), out = descs(node.out, batch);
    const Attrs attrs = node.attrs.with_batch(batch);
    const auto recipe = kernels_.recipe(queue_->device(), {*node.op, in, out, attrs});
    instance->executables.emplace_back(queue_->device(), *recipe);
    instance->num_launches += instance->executables.back().num_launches();
    for (const uint64_t bytes : recipe->scratch_bytes) {
      scratch[i].push_back(lifetimes.size());
      lifetimes.push_back({bytes, i, i});
    }
  }

  const MemoryPlan plan = plan_memory(lifetimes);
  instance->workspace = take_workspace(plan);
  size_t sum = 0;
  for (const Lifetime& l : lifetimes) sum += l.size_bytes;
  workspace_bytes_ = std::max(workspace_bytes_, plan.total_bytes());
  temporaries_bytes_ = std::max(temporaries_bytes_, sum);

  const auto at = [&](size_t index) { return instance->workspace[plan.slot[index]]->buffer(); };
  for (const auto& [root, index] : temporary) place[root] = at(index);
  size_t next = 0;
  for (size_t i = 0; i < nodes.size(); ++i) {
    if (nodes[i].op->view) continue;
    std::vector<cl::Buffer> in, out, extra;
    for (const ValueId v : nodes[i].in) in.push_back(place.at(graph_.root(v)));
    for (const ValueId v : nodes[i].out) out.push_back(place.at(graph_.root(v)));
    if (nodes[i].op->collective) {
      instance->reductions.push_back({next, in[0], out[0], descs(nodes[i].in, batch)[0]});
      continue;
    }
    for (const size_t index : scratch[i]) extra.push_back(at(index));
    instance->executables[next++].bind(in, out, extra);
  }
  return instance;
}

std::vector<std::shared_ptr<Storage>> CompiledGraph::take_workspace(const MemoryPlan& plan) {
  std::vector<std::shared_ptr<Storage>> out;
  for (size_t i = 0; i < plan.slot_bytes.size(); ++i) {
    if (i == workspace_.size()) workspace_.emplace_back();
    if (workspace_[i] == nullptr || workspace_[i]->size_bytes() < plan.slot_bytes[i]) {
      workspace_[i] = queue_->allocate(plan.slot_bytes[i], "the temporaries of a step");
    }
    out.push_back(workspace_[i]);
  }
  return out;
}

}  // namespace netcl
