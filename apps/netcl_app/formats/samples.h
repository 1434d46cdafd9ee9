// What a format reader returns, before it becomes a Dataset in shared memory.
#ifndef NETCL_APPS_NETCL_APP_FORMATS_SAMPLES_H_
#define NETCL_APPS_NETCL_APP_FORMATS_SAMPLES_H_

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "core/data/dataset.h"

namespace netcl::app {

struct Samples {
  std::string path;  // of the features, for messages
  Shape sample_shape;
  DType dtype = DType::kF32;
  std::vector<float> f32;    // the features when dtype is kF32
  std::vector<uint8_t> u8;   // the features when dtype is kU8
  std::vector<int32_t> i32;  // the tokens when dtype is kI32
  std::vector<int32_t> labels;
  std::vector<float> targets;            // instead of labels
  Shape label_shape;                     // of one label or target
  std::vector<std::string> class_names;  // empty when the labels are numbers without names
  std::vector<int64_t> lines;            // csv: the line of each sample; empty otherwise

  int64_t count() const {
    return static_cast<int64_t>(std::max(labels.size(), targets.size())) /
           label_shape.num_elements();
  }
};

}  // namespace netcl::app

#endif  // NETCL_APPS_NETCL_APP_FORMATS_SAMPLES_H_
