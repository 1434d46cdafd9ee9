// Which candidates a search tries, and in which order. A small space is tried whole; of a large one
// a sample, then the neighbours of the best, until none is better. The same answers give the same
// order.
// Threads: one.
#ifndef NETCL_APPS_NETCL_APP_TUNE_SEARCH_H_
#define NETCL_APPS_NETCL_APP_TUNE_SEARCH_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "core/runtime/kernel_set.h"

namespace netcl::app {

// A variant of a kernel set with its knobs.
struct VariantSpace {
  std::string plugin, variant;
  std::vector<Tunable> tunables;
};

struct Candidate {
  std::string plugin, variant;  // with settings: "vec(ROWS=24)"
  std::vector<size_t> place;    // in the space: the variant, then each knob's value
};

class Search {
 public:
  static constexpr size_t kWhole = 64;    // spaces up to here are tried whole
  static constexpr size_t kSample = 32;   // of larger ones
  static constexpr size_t kAtMost = 512;  // candidates, whatever the neighbours say

  explicit Search(std::vector<VariantSpace> spaces, uint64_t seed = 20240229);

  size_t size() const { return size_; }  // of the space
  bool whole() const { return size_ <= kWhole; }

  // The next candidate: first every variant with its defaults. nullopt: there is none left.
  std::optional<Candidate> next();
  // The candidate is the best so far.
  void best(const Candidate& candidate);

 private:
  using Place = std::vector<size_t>;
  Candidate candidate(const Place& place) const;
  std::optional<Candidate> take(const Place& place);  // nullopt if it was tried
  Place numbered(size_t number) const;
  std::optional<Candidate> next_in_order();
  std::optional<Candidate> next_at_random();
  std::optional<Candidate> next_neighbour();

  std::vector<VariantSpace> spaces_;
  std::vector<size_t> sizes_;  // of each variant's space
  size_t size_ = 0;
  std::set<Place> tried_;
  size_t begun_ = 0, in_order_ = 0, sampled_ = 0;
  std::optional<Place> best_;
  std::mt19937_64 random_;
};

}  // namespace netcl::app

#endif  // NETCL_APPS_NETCL_APP_TUNE_SEARCH_H_
