#include "plugins/layers/norm/row_norms.h"

#include <string>

namespace netcl {
namespace norm {

namespace {

using plugin::attr_float;
using plugin::attr_int;
using plugin::AttrSpec;
using plugin::Failure;
using plugin::Trace;
using plugin::Value;

// x with weight and bias of this shape, as far as the layer's keys ask for them.
std::vector<Value> operands(const Trace& t, const std::vector<int64_t>& shape, bool with_bias) {
  std::vector<Value> out = {t.input(0)};
  if (!t.attrs().boolean("affine")) return out;
  out.push_back(t.parameter("weight", shape, NETCL_INIT_ONES));
  if (with_bias && t.attrs().boolean("bias")) {
    out.push_back(t.parameter("bias", shape, NETCL_INIT_ZEROS));
  }
  return out;
}

void last_dims(const Trace& t, const char* op, bool with_bias) {
  const std::vector<int64_t> shape = t.shape(t.input(0));
  const int64_t dims = t.attrs().integer("dims");
  if (dims >= static_cast<int64_t>(shape.size())) {
    throw Failure(NETCL_E_ARG, "dims is " + std::to_string(dims) + ", the input has " +
                                   std::to_string(shape.size()) +
                                   " dimensions and the first is the batch; lower dims");
  }
  const std::vector<int64_t> normalised(shape.end() - dims, shape.end());
  t.output(0, t.op(op, operands(t, normalised, with_bias),
                   {attr_int("dims", dims), attr_float("eps", t.attrs().number("eps"))}));
}

void group_norm(const Trace& t) {
  const std::vector<int64_t> shape = t.shape(t.input(0));
  const int64_t groups = t.attrs().integer("groups");
  if (shape.size() < 2 || shape[1] < 1 || shape[1] % groups != 0) {
    throw Failure(NETCL_E_ARG, "expected an input [B,C,...] whose channels divide into " +
                                   std::to_string(groups) + " groups" +
                                   (shape.size() < 2 ? "" : ", C is " + std::to_string(shape[1])));
  }
  t.output(0, t.op("group_norm", operands(t, {shape[1]}, true),
                   {attr_int("groups", groups), attr_float("eps", t.attrs().number("eps"))}));
}

}  // namespace

std::vector<plugin::LayerType> row_norm_types() {
  const AttrSpec eps = {"eps", NETCL_ATTR_FLOAT,       false, 1e-5, "", 1e-30, 1,
                        "",    "added to the variance"};
  const AttrSpec affine = {"affine", NETCL_ATTR_BOOL, false, 1, "", 0, 0, "", "trained weight"};
  const AttrSpec bias = {
      "bias", NETCL_ATTR_BOOL, false, 1, "", 0, 0, "", "trained bias beside the weight"};
  const AttrSpec dims = {"dims",
                         NETCL_ATTR_INT,
                         false,
                         1,
                         "",
                         1,
                         7,
                         "",
                         "last dimensions that are normalised together"};
  const AttrSpec groups = {"groups", NETCL_ATTR_INT,      true, 0, "", 1, 1 << 20,
                           "",       "groups of channels"};
  return {{"layer_norm",
           "the last dimensions have mean 0 and deviation 1",
           {dims, eps, affine, bias},
           [](const Trace& t) { last_dims(t, "layer_norm", true); }},
          {"rms_norm",
           "the last dimensions have a mean square of 1",
           {dims, eps, affine},
           [](const Trace& t) { last_dims(t, "rms_norm", false); }},
          {"group_norm",
           "groups of channels have mean 0 and deviation 1",
           {groups, eps, affine, bias},
           group_norm}};
}

}  // namespace norm
}  // namespace netcl
