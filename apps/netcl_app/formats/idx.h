// IDX, the format of MNIST: a magic number, the dimensions, then big-endian values. Threads: any.
#ifndef NETCL_APPS_NETCL_APP_FORMATS_IDX_H_
#define NETCL_APPS_NETCL_APP_FORMATS_IDX_H_

#include <string>
#include <string_view>

#include "apps/netcl_app/formats/samples.h"

namespace netcl::app {

// Parses features and labels from the (unpacked) bytes of two IDX files. Bytes stay bytes; signed
// and wider values become floats. The first dimension counts the samples, the others are the shape
// of one. Labels: one dimension of whole numbers.
// Errors: kData, naming the file: no IDX magic, a truncated file, bytes after the end, unequal
// counts, a negative label.
Samples parse_idx(std::string_view features, const std::string& features_path,
                  std::string_view labels, const std::string& labels_path);

// The same for files, unpacked if they are gzip data.
Samples read_idx(const std::string& features_path, const std::string& labels_path);

// The features alone, without labels.
Samples read_idx_features(const std::string& path);

}  // namespace netcl::app

#endif  // NETCL_APPS_NETCL_APP_FORMATS_IDX_H_
