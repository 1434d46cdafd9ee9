// Data for the example programs: handwritten digits as samples in memory.
#ifndef NETCL_APPS_EXAMPLES_CPP_DIGITS_H_
#define NETCL_APPS_EXAMPLES_CPP_DIGITS_H_

#include <cstdint>
#include <string>
#include <vector>

namespace netcl::examples {

struct Samples {
  std::vector<float> x;    // one sample behind the other, 0 to 1
  std::vector<int32_t> y;  // a class a sample
};

struct Digits {
  Samples train, test;
  int64_t side = 8;  // an image has side x side pixels
};

// The 8x8 digits that come with netcl (share/netcl/examples/data/digits.csv.gz): four of five
// samples are for training. Errors: netcl::Error with code kData.
Digits load_digits(const std::string& csv);
// MNIST: train-images-idx3-ubyte.gz and so on in a folder (also without .gz).
Digits load_mnist(const std::string& folder);

// The samples in an order that depends on the epoch, in batches of `size`; the last may be smaller.
std::vector<Samples> batches(const Samples& samples, int64_t size, int64_t epoch);

}  // namespace netcl::examples

#endif  // NETCL_APPS_EXAMPLES_CPP_DIGITS_H_
