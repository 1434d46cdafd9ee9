// What convolution and pooling layers share: inputs checked for their rank, and
// keys that hold one integer or a list. Threads: any (pure functions).
#ifndef NETCL_PLUGINS_LAYERS_CONV_GEOMETRY_H_
#define NETCL_PLUGINS_LAYERS_CONV_GEOMETRY_H_

#include <string>
#include <vector>

#include "core/abi/netcl_plugin.hpp"

namespace netcl {
namespace conv {

using Dims = std::vector<int64_t>;

// The shape of input 0, which must be [N,C] and `spatial` dimensions of fixed size.
inline Dims image_shape(const plugin::Trace& t, size_t spatial) {
  const Dims shape = t.shape(t.input(0));
  const char* const form = spatial == 2 ? "[N,C,H,W]" : "[N,C,L]";
  if (shape.size() == spatial + 1) {  // samples without a channel
    Dims sample(shape.begin() + 1, shape.end());
    sample.insert(sample.begin(), 1);
    throw plugin::Failure(NETCL_E_ARG, std::string("expected an input ") + form + ", found " +
                                           plugin::shape_text(shape) +
                                           " without a channel; put {\"type\": \"reshape\", "
                                           "\"shape\": " +
                                           plugin::shape_text(sample) + "} before this layer");
  }
  if (shape.size() != spatial + 2) {
    throw plugin::Failure(NETCL_E_ARG, std::string("expected an input ") + form + ", found " +
                                           plugin::shape_text(shape) +
                                           "; a reshape layer can change it");
  }
  for (size_t i = 1; i < shape.size(); ++i) {
    if (shape[i] < 1) {
      throw plugin::Failure(NETCL_E_ARG, "of " + plugin::shape_text(shape) +
                                             " only the first dimension may depend on the batch");
    }
  }
  return shape;
}

// The key's `count` integers: given one by one, as one that stands for all, or absent.
inline Dims integers_of(const plugin::Trace& t, const char* key, size_t count, int64_t low,
                        const Dims& absent) {
  Dims list = t.attrs().integers(key);
  if (list.empty()) return absent;
  if (list.size() == 1) list.resize(count, list[0]);
  if (list.size() != count) {
    throw plugin::Failure(
        NETCL_E_ARG, std::string(key) + ": expected " +
                         (count == 1 ? "one integer" : "one integer or two, for height and width") +
                         ", found " + plugin::shape_text(list));
  }
  for (const int64_t value : list) {
    if (value < low) {
      throw plugin::Failure(NETCL_E_ARG, std::string(key) + ": expected at least " +
                                             std::to_string(low) + ", found " +
                                             std::to_string(value));
    }
  }
  return list;
}

// x [N,C,L] as [N,C,1,L].
inline plugin::Value with_height(const plugin::Trace& t, plugin::Value x) {
  Dims shape = t.shape(x);
  shape.insert(shape.begin() + 2, 1);
  return t.op("reshape", {x}, {plugin::attr_dims("shape", shape)});
}

// x [N,C,1,L] as [N,C,L].
inline plugin::Value without_height(const plugin::Trace& t, plugin::Value x) {
  Dims shape = t.shape(x);
  shape.erase(shape.begin() + 2);
  return t.op("reshape", {x}, {plugin::attr_dims("shape", shape)});
}

inline plugin::AttrSpec list(const char* key, bool required, const char* doc) {
  return {key, NETCL_ATTR_INTS, required, 0, "", 0, 0, "", doc};
}

}  // namespace conv
}  // namespace netcl

#endif  // NETCL_PLUGINS_LAYERS_CONV_GEOMETRY_H_
