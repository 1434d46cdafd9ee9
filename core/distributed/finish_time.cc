#include "core/distributed/finish_time.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace netcl {

namespace {

constexpr double kLeastPerRow = 1e-12;  // seconds: nothing is free
constexpr int kHalvings = 200;

// Rows that a rank does in `seconds`.
double rows_within(const RankCost& rank, double seconds) {
  if (!rank.takes_part) return 0;
  const double rows = (seconds - rank.line.fixed) / std::max(rank.line.per_row, kLeastPerRow);
  return std::clamp(rows, 0.0, static_cast<double>(rank.limits.max_rows));
}

double total_within(const std::vector<RankCost>& ranks, double seconds) {
  return std::accumulate(ranks.begin(), ranks.end(), 0.0, [&](double sum, const RankCost& rank) {
    return sum + rows_within(rank, seconds);
  });
}

// Fractions of rows for equal finish times.
std::vector<double> exact_rows(const std::vector<RankCost>& ranks, int64_t batch) {
  const auto wanted = static_cast<double>(batch);
  double low = 0, high = 1e-6;
  while (total_within(ranks, high) < wanted) high *= 2;
  for (int i = 0; i < kHalvings && high - low > 1e-15 * high; ++i) {
    const double middle = (low + high) / 2;
    (total_within(ranks, middle) < wanted ? low : high) = middle;
  }
  std::vector<double> out;
  for (const RankCost& rank : ranks) out.push_back(rows_within(rank, high));
  return out;
}

// Whole units of rows; what is left of the batch goes to the rank that has most. Empty where the
// limits forbid it.
std::vector<int64_t> in_units(const std::vector<RankCost>& ranks, const std::vector<double>& exact,
                              int64_t batch, int64_t unit) {
  std::vector<int64_t> rows(ranks.size());
  std::vector<double> rest(ranks.size());
  for (size_t i = 0; i < ranks.size(); ++i) {
    const double units = exact[i] / static_cast<double>(unit);
    const double whole = std::floor(units + 1e-9);
    rows[i] = static_cast<int64_t>(whole) * unit;
    rest[i] = units - whole;
  }
  const auto room = [&](size_t i, int64_t more) {
    return ranks[i].takes_part && rows[i] + more <= ranks[i].limits.max_rows;
  };
  for (int64_t left = batch - std::accumulate(rows.begin(), rows.end(), int64_t{0}); left > 0;) {
    const int64_t piece = std::min(left, unit);
    const std::vector<double>* by = &rest;
    std::vector<double> sizes(rows.begin(), rows.end());
    if (piece < unit) by = &sizes;
    size_t best = ranks.size();
    for (size_t i = 0; i < ranks.size(); ++i) {
      if (room(i, piece) && (best == ranks.size() || (*by)[i] > (*by)[best])) best = i;
    }
    if (best == ranks.size()) return {};
    rows[best] += piece;
    rest[best] -= 1;
    left -= piece;
  }
  return rows;
}

}  // namespace

double finish_seconds(const std::vector<RankCost>& ranks, const std::vector<int64_t>& rows) {
  double out = 0;
  for (size_t i = 0; i < ranks.size(); ++i)
    out = std::max(out, ranks[i].line.at(static_cast<double>(rows[i])));
  return out;
}

std::vector<int64_t> equal_finish_rows(const std::vector<RankCost>& ranks, int64_t batch) {
  int64_t most = 0, multiple = 1;
  for (const RankCost& rank : ranks) {
    if (!rank.takes_part) continue;
    most += std::min(rank.limits.max_rows, batch - std::min(most, batch));
    multiple = std::max(multiple, rank.limits.multiple);
  }
  if (most < batch) return {};
  const std::vector<double> exact = exact_rows(ranks, batch);
  const std::vector<int64_t> single = in_units(ranks, exact, batch, 1);
  const double limit = finish_seconds(ranks, single) * (1 + kMultipleCost);
  for (; multiple > 1; multiple /= 2) {
    const std::vector<int64_t> rows = in_units(ranks, exact, batch, multiple);
    if (!rows.empty() && finish_seconds(ranks, rows) <= limit) return rows;
  }
  return single;
}

}  // namespace netcl
