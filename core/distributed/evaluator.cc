#include "core/distributed/evaluator.h"

#include <algorithm>
#include <numeric>

namespace netcl {

Evaluator::Evaluator(Replica& replica, Group group, int64_t pass_rows, Hooks hooks)
    : replica_(replica), group_(group), pass_rows_(pass_rows), hooks_(std::move(hooks)) {
  eval_sums_ = std::make_unique<PinnedBuffer>(
      replica_.queue().device(), replica_.queue().cl(),
      static_cast<size_t>(replica_.graphs().eval_sums.num_floats()) * sizeof(float), "sums");
}

// Adds in rank order, so that every rank gets the same bits.
std::vector<double> Evaluator::add_values(const std::vector<double>& mine) {
  const size_t width = mine.size(), ranks = group_.n_ranks;
  std::vector<double> all(width * ranks);
  if (width * sizeof(double) <= kExchangeBytes) {
    group_.bootstrap->exchange(mine.data(), width * sizeof(double), all.data());
  } else {
    if (shared_sums_ == nullptr) {
      shared_sums_ = static_cast<double*>(
          group_.bootstrap->shared_memory(static_cast<uint64_t>(all.size() * sizeof(double))));
    }
    std::copy(mine.begin(), mine.end(), shared_sums_ + group_.rank * width);
    std::vector<uint8_t> marks(ranks);
    const uint8_t mark = 1;
    group_.bootstrap->exchange(&mark, 1, marks.data());  // all have written
    std::copy(shared_sums_, shared_sums_ + all.size(), all.begin());
    group_.bootstrap->exchange(&mark, 1, marks.data());  // all have read
  }
  std::vector<double> out(width, 0.0);
  for (size_t r = 0; r < ranks; ++r) {
    for (size_t i = 0; i < width; ++i) out[i] += all[r * width + i];
  }
  return out;
}

std::optional<Sums> Evaluator::add_over_ranks(const Sums& mine, bool stopped) {
  if (group_.bootstrap == nullptr) return stopped ? std::nullopt : std::make_optional(mine);
  std::vector<double> values = {stopped ? 1.0 : 0.0};
  for (const auto& [name, value] : mine.values) values.push_back(value);
  for (const auto& [name, matrix] : mine.matrices)
    values.insert(values.end(), matrix.begin(), matrix.end());
  values = add_values(values);
  if (values[0] != 0) return std::nullopt;
  Sums out = mine;
  auto next = values.begin() + 1;
  for (auto& [name, value] : out.values) value = *next++;
  for (auto& [name, matrix] : out.matrices) {
    for (double& value : matrix) value = *next++;
  }
  return out;
}

Sums Evaluator::empty_sums() const {
  Sums out;
  for (const ArenaLayout::Entry& entry : replica_.graphs().eval_sums.entries()) {
    const auto size = static_cast<size_t>(entry.desc.shape.num_elements());
    if (entry.desc.shape.rank() == 0) out.values[entry.name] = 0;
    if (entry.desc.shape.rank() > 0) out.matrices[entry.name].assign(size, 0.0);
  }
  return out;
}

// One pass; true if it is the last one because a stop was requested.
bool Evaluator::evaluate_rows(const Dataset& data, IndexRange rows, const BatchSlot& memory,
                              Sums& total) {
  if (hooks_.pass) hooks_.pass(evaluations_ == 0);
  std::vector<int64_t> indices(static_cast<size_t>(rows.count));
  std::iota(indices.begin(), indices.end(), rows.first);
  fill_batch(data, indices.data(), indices.size(), memory.x, memory.labels);
  replica_.stage(memory.x, memory.labels, rows.count);
  replica_.evaluate(rows.count);
  const cl::Event read = replica_.read_eval_sums(static_cast<float*>(eval_sums_->data()));
  with_cl_errors("waiting for an evaluation", [&] { read.wait(); });
  total.add(replica_.graphs().eval_sums, static_cast<float*>(eval_sums_->data()));
  return hooks_.stop_requested && hooks_.stop_requested();
}

std::optional<Sums> Evaluator::run(const Dataset& data, IndexRange mine, const BatchSlot& memory) {
  Sums total = empty_sums();
  bool stopped = false;
  for (int64_t done = 0; done < mine.count && !stopped;) {
    const int64_t rows = std::min(pass_rows_, mine.count - done);
    stopped = evaluate_rows(data, {mine.first + done, rows}, memory, total);
    done += rows;
  }
  ++evaluations_;
  return add_over_ranks(total, stopped);
}

std::optional<Sums> Evaluator::run_in_order(const Dataset& data,
                                            const std::vector<int64_t>& weights,
                                            const BatchSlot& memory) {
  const int64_t samples = data.num_samples(), n_blocks = (samples + pass_rows_ - 1) / pass_rows_;
  const IndexRange mine =
      shard_slice(shard_counts(n_blocks, {weights.begin(), weights.end()}), group_.rank);
  std::vector<Sums> blocks;
  bool stopped = false;
  for (int64_t b = mine.first; b < mine.first + mine.count && !stopped; ++b) {
    blocks.push_back(empty_sums());
    const int64_t first = b * pass_rows_;
    stopped =
        evaluate_rows(data, {first, std::min(pass_rows_, samples - first)}, memory, blocks.back());
  }
  ++evaluations_;
  // Rank by rank: the sum of all blocks before, to which one rank adds its own.
  std::optional<Sums> total = empty_sums();
  for (uint32_t r = 0; r < group_.n_ranks && total; ++r) {
    Sums running = r == group_.rank ? *total : empty_sums();
    for (size_t b = 0; r == group_.rank && b < blocks.size(); ++b) running.add(blocks[b]);
    total = add_over_ranks(running, stopped);
  }
  return total;
}

}  // namespace netcl
