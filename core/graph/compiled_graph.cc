#include "core/graph/compiled_graph.h"

#include <algorithm>

#include "core/base/error.h"
#include "core/graph/lower.h"
#include "core/graph/size_limits.h"

namespace netcl {

namespace {

std::vector<TensorDesc> concrete(const Graph& graph, const std::vector<ValueId>& values,
                                 int64_t batch) {
  std::vector<TensorDesc> out;
  for (const ValueId v : values) {
    const TensorDesc& desc = graph.desc(v);
    out.push_back({desc.dtype, desc.shape.with_batch(batch)});
  }
  return out;
}

PlannedNode planned(const Node& node, const std::vector<TensorDesc>& in,
                    const std::vector<TensorDesc>& out, const Attrs& attrs,
                    const Executable* executable) {
  PlannedNode row;
  row.text = node.op->name + "(";
  for (size_t i = 0; i < in.size(); ++i) row.text += (i > 0 ? ", " : "") + in[i].str();
  row.text += ")";
  if (!attrs.items().empty()) row.text += " " + attrs.str();
  row.text += " ->";
  for (const TensorDesc& desc : out) row.text += " " + desc.str();
  for (const auto* descs : {&in, &out}) {
    for (const TensorDesc& desc : *descs) row.bytes += desc.size_bytes();
  }
  if (executable == nullptr) return row;
  const Recipe& recipe = executable->recipe();
  row.kernel = recipe.plugin + "/" + recipe.variant;
  row.launches = executable->num_launches();
  for (const RecipeLaunch& launch : recipe.launches) {
    if (!launch.empty()) row.entries.push_back(launch.entry);
  }
  return row;
}

// The last node that reads or writes each value, by root.
std::map<ValueId, size_t> last_uses(const Graph& graph) {
  std::map<ValueId, size_t> out;
  for (size_t i = 0; i < graph.nodes().size(); ++i) {
    const Node& node = graph.nodes()[i];
    if (node.op->view) continue;
    for (const auto* values : {&node.in, &node.out}) {
      for (const ValueId v : *values) out[graph.root(v)] = i;
    }
  }
  return out;
}

// Whether the result may take the memory of an input that is needed no more (kernels/README.md).
bool may_overwrite(const Graph& graph, const Node& node, int64_t batch) {
  if (node.op->family != "chain") return false;
  Attrs facts;
  const Attrs attrs = node.attrs.with_batch(batch);
  node.op->facts({*node.op, concrete(graph, node.in, batch), attrs}, facts);
  return facts.text("mode") == "dense";
}

// How many nodes it takes until the output holds its value.
size_t nodes_until(const Graph& graph, const Graph::Place& output) {
  const ValueId root = graph.root(output.value);
  const std::vector<Node>& nodes = graph.nodes();
  for (size_t i = nodes.size(); i-- > 0;) {
    if (nodes[i].op->view) continue;
    for (const ValueId v : nodes[i].out) {
      if (graph.root(v) == root) return i + 1;
    }
  }
  fail(ErrorCode::kInternal, "nothing writes the output ", output.name);
}

}  // namespace

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
  with_cl_errors("copying a sum",
                 [&] { queue_->cl().enqueueCopyBuffer(reduction.in, reduction.out, 0, 0, bytes); });
}

void CompiledGraph::prepare(int64_t batch) {
  if (instances_.count(batch) == 0) instances_[batch] = make_instance(batch);
}

void CompiledGraph::launch(const Executable& executable) const {
  if (Trace* trace = queue_->recording()) {
    executable.enqueue(queue_->cl(), *trace);
  } else {
    executable.enqueue(queue_->cl());
  }
}

void CompiledGraph::set_marks(const std::vector<std::vector<std::string>>& outputs) {
  marks_.clear();
  for (size_t index = 0; index < outputs.size(); ++index) {
    Mark mark{index, outputs[index]};
    for (const std::string& output : mark.outputs) {
      const auto& places = graph_.outputs();
      const auto place = std::find_if(places.begin(), places.end(),
                                      [&](const Graph::Place& p) { return p.name == output; });
      NETCL_CHECK(place != places.end(), ErrorCode::kInternal, "a mark at ", output,
                  ", which is no output of the graph");
      mark.place = std::max(mark.place, nodes_until(graph_, *place));
    }
    for (size_t i = 0; i < mark.place; ++i)
      mark.reductions += graph_.nodes()[i].op->collective ? 1 : 0;
    marks_.push_back(std::move(mark));
  }
  std::stable_sort(marks_.begin(), marks_.end(),
                   [](const Mark& a, const Mark& b) { return a.place < b.place; });
}

void CompiledGraph::run(int64_t batch, bool grouped, const Reached& reached) {
  prepare(batch);
  const Instance& instance = *instances_.at(batch);
  size_t next = 0, reduced = 0;
  const auto launch_until = [&](size_t end) {
    for (; next < end; ++next) launch(instance.executables[next]);
  };
  const auto run_until = [&](size_t executables, size_t reductions) {
    for (; reduced < reductions; ++reduced) {
      const Reduction& reduction = instance.reductions[reduced];
      launch_until(reduction.before);
      if (grouped && all_reduce_) {
        all_reduce_(reduction.in, reduction.out, reduction.desc);
      } else {
        copy_sum(reduction);
      }
    }
    launch_until(executables);
  };
  if (reached) {
    for (const Mark& mark : marks_) {
      size_t executables = 0;
      for (const std::string& output : mark.outputs)
        executables = std::max(executables, instance.written.at(output));
      run_until(executables, mark.reductions);
      reached(mark.index);
    }
  }
  run_until(instance.executables.size(), instance.reductions.size());
  queue_->enqueued(instance.num_launches);
}

// No tensor may be larger than what the device allocates in one piece.
void CompiledGraph::check_sizes(const Graph& graph, int64_t batch) const {
  const auto check = [&](ValueId v) {
    const TensorDesc desc = concrete(graph, {v}, batch)[0];
    if (fits(queue_->device().info(), desc)) return;
    require_size(queue_->device().info(), desc, str_cat(graph.describe(v), ", ", desc.str(), ","),
                 graph.desc(v).shape.symbolic() ? kSmallerBatch : kSmallerModel);
  };
  for (const Graph::Place& place : graph.externals()) check(place.value);
  for (const Node& node : graph.nodes()) {
    for (const ValueId v : node.out) check(v);
  }
}

std::unique_ptr<CompiledGraph::Instance> CompiledGraph::make_instance(int64_t batch) {
  if (!has_fused(graph_)) return make_instance(graph_, batch);
  const Graph chosen = lower(graph_, [&](const Node& node) {
    const std::vector<TensorDesc> in = concrete(graph_, node.in, batch),
                                  out = concrete(graph_, node.out, batch);
    const Attrs attrs = node.attrs.with_batch(batch);
    return kernels_.fused_recipe(queue_->device(), {*node.op, in, out, attrs}) != nullptr;
  });
  return make_instance(chosen, batch);
}

std::unique_ptr<CompiledGraph::Instance> CompiledGraph::make_instance(const Graph& graph,
                                                                      int64_t batch) {
  check_sizes(graph, batch);
  auto instance = std::make_unique<Instance>();
  std::map<ValueId, cl::Buffer> place;  // of roots
  for (const auto* places : {&graph.externals(), &graph.outputs()}) {
    for (const Graph::Place& p : *places) {
      place[graph.root(p.value)] = memory_(p.name, concrete(graph, {p.value}, batch)[0]);
    }
  }

  // Choose a kernel for every node and find how long each temporary lives.
  const std::vector<Node>& nodes = graph.nodes();
  std::vector<std::vector<size_t>> scratch(nodes.size());  // indices into lifetimes
  std::map<ValueId, size_t> temporary;                     // root -> index into lifetimes
  std::vector<Lifetime> lifetimes;
  const std::map<ValueId, size_t> last_use = last_uses(graph);
  size_t unshared = 0;
  const auto touch = [&](ValueId v, size_t node) {
    const ValueId root = graph.root(v);
    if (place.count(root) > 0) return;
    const auto [it, added] = temporary.emplace(root, lifetimes.size());
    if (added) {
      lifetimes.push_back({concrete(graph, {root}, batch)[0].size_bytes(), node, node});
      unshared += lifetimes.back().size_bytes;
    }
    lifetimes[it->second].last = node;
  };
  for (size_t i = 0; i < nodes.size(); ++i) {
    const Node& node = nodes[i];
    if (node.op->view) continue;
    for (const ValueId v : node.in) touch(v, i);
    if (may_overwrite(graph, node, batch) && place.count(graph.root(node.out[0])) == 0) {
      const size_t bytes = concrete(graph, node.out, batch)[0].size_bytes();
      for (const ValueId v : node.in) {
        const auto in = temporary.find(graph.root(v));
        if (in == temporary.end() || last_use.at(graph.root(v)) != i ||
            graph.desc(v).dtype != graph.desc(node.out[0]).dtype ||
            lifetimes[in->second].size_bytes != bytes)
          continue;
        temporary[graph.root(node.out[0])] = in->second;
        unshared += bytes;
        break;
      }
    }
    for (const ValueId v : node.out) touch(v, i);
    const std::vector<TensorDesc> in = concrete(graph, node.in, batch),
                                  out = concrete(graph, node.out, batch);
    const Attrs attrs = node.attrs.with_batch(batch);
    if (node.op->collective) {
      instance->plan.push_back(planned(node, in, out, attrs, nullptr));
      continue;
    }
    const KernelQuestion question{*node.op, in, out, attrs};
    const auto recipe = node.fused ? kernels_.fused_recipe(queue_->device(), question)
                                   : kernels_.recipe(queue_->device(), question);
    instance->executables.emplace_back(queue_->device(), *recipe);
    instance->num_launches += instance->executables.back().num_launches();
    instance->plan.push_back(planned(node, in, out, attrs, &instance->executables.back()));
    for (const uint64_t bytes : recipe->scratch_bytes) {
      require_bytes(queue_->device().info(), static_cast<double>(bytes),
                    str_cat("the scratch memory of ", node.op->name, ", which makes ",
                            graph.describe(node.out[0]), ","),
                    kSmallerBatch);
      scratch[i].push_back(lifetimes.size());
      lifetimes.push_back({bytes, i, i});
      unshared += bytes;
    }
  }

  const MemoryPlan plan = plan_memory(lifetimes);
  check_workspace(graph, plan, batch);
  instance->workspace = take_workspace(plan);
  workspace_bytes_ = std::max(workspace_bytes_, plan.total_bytes());
  temporaries_bytes_ = std::max(temporaries_bytes_, unshared);

  const auto at = [&](size_t index) { return instance->workspace[plan.slot[index]]->buffer(); };
  for (const auto& [root, index] : temporary) place[root] = at(index);
  size_t next = 0;
  std::map<ValueId, size_t> written;  // by root
  for (size_t i = 0; i < nodes.size(); ++i) {
    if (nodes[i].op->view) continue;
    std::vector<cl::Buffer> in, out, extra;
    for (const ValueId v : nodes[i].in) in.push_back(place.at(graph.root(v)));
    for (const ValueId v : nodes[i].out) out.push_back(place.at(graph.root(v)));
    if (nodes[i].op->collective) {
      instance->reductions.push_back({next, in[0], out[0], concrete(graph, nodes[i].in, batch)[0]});
    } else {
      for (const size_t index : scratch[i]) extra.push_back(at(index));
      instance->executables[next++].bind(in, out, extra);
    }
    for (const ValueId v : nodes[i].out) written[graph.root(v)] = next;
  }
  for (const Graph::Place& p : graph.outputs())
    instance->written[p.name] = written.at(graph.root(p.value));
  return instance;
}

// All together must fit as well: drivers allocate late, and then fail without saying for whom.
void CompiledGraph::check_workspace(const Graph& graph, const MemoryPlan& plan,
                                    int64_t batch) const {
  const DeviceInfo& device = queue_->device().info();
  double more = 0;
  for (size_t i = 0; i < plan.slot_bytes.size(); ++i) {
    const bool have = i < workspace_.size() && workspace_[i] != nullptr &&
                      workspace_[i]->size_bytes() >= plan.slot_bytes[i];
    if (!have) more += static_cast<double>(plan.slot_bytes[i]);
  }
  const double held = static_cast<double>(queue_->pool_bytes());
  if (held + more <= static_cast<double>(device.memory_bytes)) return;
  std::string largest = "none";
  size_t most = 0;
  for (const Node& node : graph.nodes()) {
    for (const ValueId v : node.out) {
      const TensorDesc desc = concrete(graph, {v}, batch)[0];
      if (desc.size_bytes() <= most) continue;
      most = desc.size_bytes();
      largest = graph.describe(v) + ", " + desc.str();
    }
  }
  fail(ErrorCode::kDevice, "the temporaries of a step with ", batch, " samples need ",
       bytes_text(more), " beside the ", bytes_text(held), " in use; ", device.selector, " (",
       device.name, ") has ", bytes_text(static_cast<double>(device.memory_bytes)),
       " of memory. The largest is ", largest, ". To fit, ", kSmallerBatch,
       "; \"recompute\": true on layers keeps fewer of them");
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
