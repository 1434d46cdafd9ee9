#include "apps/examples/cpp/digits.h"

#include <algorithm>
#include <filesystem>

#include "apps/netcl_app/formats/csv.h"
#include "apps/netcl_app/formats/idx.h"
#include "core/data/batches.h"

namespace netcl::examples {

namespace {

constexpr uint64_t kSeed = 1;

Samples select(const Samples& from, const std::vector<int64_t>& rows) {
  const size_t width = from.x.size() / from.y.size();
  Samples out;
  for (const int64_t row : rows) {
    const auto begin = from.x.begin() + row * static_cast<int64_t>(width);
    out.x.insert(out.x.end(), begin, begin + static_cast<int64_t>(width));
    out.y.push_back(from.y[static_cast<size_t>(row)]);
  }
  return out;
}

// Pixels as bytes become numbers from 0 to 1.
Samples scaled(const app::Samples& read, float brightest) {
  Samples out;
  out.y = read.labels;
  out.x.reserve(read.u8.size());
  for (const uint8_t pixel : read.u8) out.x.push_back(static_cast<float>(pixel) / brightest);
  return out;
}

Samples read_mnist(const std::filesystem::path& folder, const std::string& part) {
  const auto file = [&](const char* kind) {
    const std::filesystem::path packed = folder / (part + kind + ".gz");
    return (std::filesystem::exists(packed) ? packed : folder / (part + kind)).string();
  };
  return scaled(app::read_idx(file("-images-idx3-ubyte"), file("-labels-idx1-ubyte")), 255);
}

}  // namespace

Digits load_digits(const std::string& csv) {
  const Samples all = scaled(app::read_csv(csv, app::DataConfig()), 16);
  const auto n = static_cast<int64_t>(all.y.size());
  const std::vector<int64_t> order = shuffled(n, kSeed, 0);
  const auto cut = order.begin() + n * 4 / 5;
  return {select(all, {order.begin(), cut}), select(all, {cut, order.end()}), 8};
}

Digits load_mnist(const std::string& folder) {
  return {read_mnist(folder, "train"), read_mnist(folder, "t10k"), 28};
}

std::vector<Samples> batches(const Samples& samples, int64_t size, int64_t epoch) {
  BatchPlan plan(static_cast<int64_t>(samples.y.size()), size, kSeed, true);
  std::vector<Samples> out;
  for (int64_t step = 0; step < plan.steps_per_epoch(); ++step)
    out.push_back(select(samples, plan.indices(epoch, step)));
  return out;
}

}  // namespace netcl::examples
