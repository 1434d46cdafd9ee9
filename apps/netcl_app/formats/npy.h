// NPY arrays and NPZ archives: any byte order, Fortran order, every numeric type. Threads: any.
#ifndef NETCL_APPS_NETCL_APP_FORMATS_NPY_H_
#define NETCL_APPS_NETCL_APP_FORMATS_NPY_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "apps/netcl_app/formats/data_config.h"
#include "apps/netcl_app/formats/samples.h"

namespace netcl::app {

enum class NpyKind { kBool, kSigned, kUnsigned, kFloat };

// An array in C order and this machine's byte order.
struct NpyArray {
  std::string path;  // for messages
  NpyKind kind = NpyKind::kFloat;
  size_t item_bytes = 4;
  std::vector<int64_t> dims;
  std::string data;

  int64_t count() const;  // product of dims
  double at(size_t index) const;
  bool whole() const { return kind != NpyKind::kFloat; }  // integers and truth values
};

// Errors: kData for what is no NPY data, is truncated or too long, or holds objects, text, records
// or complex numbers.
NpyArray parse_npy(std::string_view bytes, const std::string& path);

// Features and labels. Features: bytes stay bytes (scaled like other data); other numbers become
// f32, or i32 with config.tokens. Labels: whole numbers are classes (with another dimension:
// sequences of classes), floats and with config.regression all numbers are targets.
// Errors: kData, naming the sample for values that are negative, fractional or not finite where
// that cannot be.
Samples samples_of(const NpyArray& features, const NpyArray& labels, const DataConfig& config);
// The features alone.
Samples features_of(const NpyArray& features, const DataConfig& config);

// Files and their arrays as the configuration names them; `test`: those of the test set.
Samples read_npy(const DataConfig& config, bool test);

// An array as a NPY file: f32, C order.
std::string npy_of(const std::vector<float>& values, const Shape& shape);

}  // namespace netcl::app

#endif  // NETCL_APPS_NETCL_APP_FORMATS_NPY_H_
