#include "plugins/layers/conv/pool.h"

#include <functional>
#include <string>

#include "plugins/layers/conv/geometry.h"

namespace netcl {
namespace conv {
namespace {

using plugin::attr_int;
using plugin::attr_ints;
using plugin::AttrSpec;
using plugin::Trace;
using plugin::Value;

Value recorded(const Trace& t, const std::string& op, Value x,
               const std::vector<netcl_attr>& attrs) {
  // Of a maximum the second output is its place, for the gradient.
  return t.ops(op, {x}, attrs, op.find("max_pool") != std::string::npos ? 2 : 1)[0];
}

// A window of `spatial` dimensions; in one dimension, images of height 1.
void pool(const Trace& t, const std::string& kind, size_t spatial) {
  image_shape(t, spatial);
  Dims kernel = integers_of(t, "kernel", spatial, 1, {});
  if (kernel.empty()) throw plugin::Failure(NETCL_E_ARG, "kernel: expected a size, found []");
  Dims stride = integers_of(t, "stride", spatial, 1, kernel);
  Dims padding = integers_of(t, "padding", spatial, 0, Dims(spatial, 0));
  Value x = t.input(0);
  if (spatial == 1) {
    kernel.insert(kernel.begin(), 1);
    stride.insert(stride.begin(), 1);
    padding.insert(padding.begin(), 0);
    x = with_height(t, x);
  }
  std::vector<netcl_attr> attrs = {attr_ints("kernel", kernel), attr_ints("stride", stride),
                                   attr_ints("padding", padding),
                                   attr_int("ceil_mode", t.attrs().boolean("ceil_mode"))};
  if (kind == "avg")
    attrs.push_back(attr_int("count_include_pad", t.attrs().boolean("count_include_pad")));
  const Value y = recorded(t, kind + "_pool2d", x, attrs);
  t.output(0, spatial == 1 ? without_height(t, y) : y);
}

void adaptive(const Trace& t, const std::string& op) {
  image_shape(t, 2);
  const Dims output = integers_of(t, "output", 2, 1, {});
  if (output.empty()) throw plugin::Failure(NETCL_E_ARG, "output: expected a size, found []");
  t.output(0, recorded(t, op, t.input(0), {attr_ints("output", output)}));
}

void global_average(const Trace& t) {
  image_shape(t, 2);
  const Dims axes = {2, 3};
  t.output(0, t.op("mean", {t.input(0)}, {attr_ints("axes", axes), attr_int("keep", 0)}));
}

}  // namespace

std::vector<plugin::LayerType> pool_layers() {
  std::vector<plugin::LayerType> out;
  const AttrSpec ceil_mode = {"ceil_mode",
                              NETCL_ATTR_BOOL,
                              false,
                              0,
                              "",
                              0,
                              0,
                              "",
                              "keep a last window that hangs over the end"};
  const AttrSpec count_pad = {"count_include_pad",      NETCL_ATTR_BOOL, false, 1, "", 0, 0, "",
                              "padding counts as zeros"};
  const std::vector<AttrSpec> window = {list("kernel", true, "size of the window"),
                                        list("stride", false, "distance of windows; the kernel's"),
                                        list("padding", false, "padding on every side; 0"),
                                        ceil_mode};
  for (const std::string kind : {"max", "avg"}) {
    const bool average = kind == "avg";
    std::vector<AttrSpec> attrs = window;
    if (average) attrs.push_back(count_pad);
    for (const size_t spatial : {size_t{1}, size_t{2}}) {
      out.push_back({kind + "_pool" + std::to_string(spatial) + "d",
                     average ? "mean of every window" : "maximum of every window", attrs,
                     [kind, spatial](const Trace& t) { pool(t, kind, spatial); }});
    }
    const std::string op = "adaptive_" + kind + "_pool2d";
    out.push_back(
        {op,
         std::string(average ? "mean" : "maximum") + " of windows that divide the image evenly",
         {list("output", true, "height and width of the result")},
         [op](const Trace& t) { adaptive(t, op); }});
  }
  out.push_back(
      {"global_avg_pool", "mean of every channel: [N,C,H,W] to [N,C]", {}, global_average});
  return out;
}

}  // namespace conv
}  // namespace netcl
