// mlp; lenet5 (LeCun, Bottou, Bengio, Haffner 1998, with ReLU and max pooling); ResNets (He, Zhang,
// Ren, Sun 2015, with the stride in the 3x3 convolution of a bottleneck).
#include "plugins/layers/models/models.h"

namespace netcl {
namespace models {

namespace {

using plugin::attr_bool;
using plugin::attr_float;
using plugin::attr_int;
using plugin::attr_ints;
using plugin::attr_text;
using plugin::AttrSpec;
using plugin::Failure;
using plugin::Trace;
using plugin::Value;

void mlp(const Trace& t) {
  Value x = t.sublayer("flatten", "flatten", {}, t.input(0));
  const std::string activation(t.attrs().text("activation"));
  const double p = t.attrs().number("dropout");
  int64_t i = 0;
  for (const int64_t width : t.attrs().integers("hidden")) {
    const std::string number = std::to_string(i++);
    x = t.sublayer("fc" + number, "linear", {attr_int("out", width)}, x);
    x = t.sublayer("act" + number, activation, {}, x);
    if (p > 0) x = t.sublayer("drop" + number, "dropout", {attr_float("p", p)}, x);
  }
  t.output(0, t.sublayer("head", "linear", {attr_int("out", t.attrs().integer("classes"))}, x));
}

void lenet5(const Trace& t) {
  Value x = images(t, "lenet5");
  const std::vector<int64_t> shape = t.shape(x), kernel = {5}, two = {2};
  // Images of 28 x 28 are padded to the 32 x 32 of the paper.
  const std::vector<int64_t> padding = {shape[2] < 32 || shape[3] < 32 ? 2 : 0};
  const auto relu = [&t](const char* name, Value v) { return t.sublayer(name, "relu", {}, v); };
  const auto pool = [&](const char* name, Value v) {
    return t.sublayer(name, "max_pool2d", {attr_ints("kernel", two), attr_ints("stride", two)}, v);
  };
  x = t.sublayer("conv1", "conv2d",
                 {attr_int("out", 6), attr_ints("kernel", kernel), attr_ints("padding", padding)},
                 x);
  x = pool("pool1", relu("act1", x));
  x = t.sublayer("conv2", "conv2d", {attr_int("out", 16), attr_ints("kernel", kernel)}, x);
  x = t.sublayer("flatten", "flatten", {}, pool("pool2", relu("act2", x)));
  x = relu("act3", t.sublayer("fc1", "linear", {attr_int("out", 120)}, x));
  x = relu("act4", t.sublayer("fc2", "linear", {attr_int("out", 84)}, x));
  t.output(0, t.sublayer("fc3", "linear", {attr_int("out", t.attrs().integer("classes"))}, x));
}

class ResNet {
 public:
  ResNet(const Trace& t, std::vector<int64_t> blocks, bool bottleneck)
      : t_(t), blocks_(std::move(blocks)), bottleneck_(bottleneck) {}

  void trace() const {
    Value x = images(t_, "a ResNet");
    const int64_t width = t_.attrs().integer("width");
    if (t_.attrs().text("stem") == "cifar") {
      x = relu("act1", norm("bn1", conv("conv1", width, 3, 1, x)));
    } else {
      x = relu("act1", norm("bn1", conv("conv1", width, 7, 2, x)));
      const std::vector<int64_t> kernel = {3}, stride = {2}, padding = {1};
      x = t_.sublayer(
          "maxpool", "max_pool2d",
          {attr_ints("kernel", kernel), attr_ints("stride", stride), attr_ints("padding", padding)},
          x);
    }
    for (size_t stage = 0; stage < blocks_.size(); ++stage) {
      for (int64_t i = 0; i < blocks_[stage]; ++i) {
        const std::string name = "layer" + std::to_string(stage + 1) + "." + std::to_string(i);
        x = block(name, width << stage, stage > 0 && i == 0 ? 2 : 1, x);
      }
    }
    x = t_.sublayer("avgpool", "global_avg_pool", {}, x);
    t_.output(0, t_.sublayer("fc", "linear", {attr_int("out", t_.attrs().integer("classes"))}, x));
  }

 private:
  Value conv(const std::string& name, int64_t out, int64_t size, int64_t step, Value x) const {
    const std::vector<int64_t> kernel = {size}, stride = {step}, padding = {size / 2};
    return t_.sublayer(name, "conv2d",
                       {attr_int("out", out), attr_ints("kernel", kernel),
                        attr_ints("stride", stride), attr_ints("padding", padding),
                        attr_bool("bias", false), attr_text("init", "kaiming_normal_fan_out")},
                       x);
  }
  Value norm(const std::string& name, Value x) const {
    return t_.sublayer(name, "batch_norm",
                       {attr_bool("sync", t_.attrs().boolean("sync_batch_norm"))}, x);
  }
  Value relu(const std::string& name, Value x) const { return t_.sublayer(name, "relu", {}, x); }

  Value block(const std::string& name, int64_t width, int64_t stride, Value x) const {
    const int64_t out = bottleneck_ ? 4 * width : width;
    Value y;
    if (bottleneck_) {
      y = relu(name + ".act1", norm(name + ".bn1", conv(name + ".conv1", width, 1, 1, x)));
      y = relu(name + ".act2", norm(name + ".bn2", conv(name + ".conv2", width, 3, stride, y)));
      y = norm(name + ".bn3", conv(name + ".conv3", out, 1, 1, y));
    } else {
      y = relu(name + ".act1", norm(name + ".bn1", conv(name + ".conv1", width, 3, stride, x)));
      y = norm(name + ".bn2", conv(name + ".conv2", width, 3, 1, y));
    }
    Value shortcut = x;
    if (stride != 1 || t_.shape(x)[1] != out) {
      shortcut = norm(name + ".downsample.1", conv(name + ".downsample.0", out, 1, stride, x));
    }
    return relu(name + ".act", t_.op("add", {y, shortcut}));
  }

  const Trace& t_;
  const std::vector<int64_t> blocks_;
  const bool bottleneck_;
};

plugin::LayerType resnet(const char* name, const char* doc, std::vector<int64_t> blocks,
                         bool bottleneck) {
  return {name,
          doc,
          {integer("classes", 1000, 1, 1 << 30, "number of outputs"),
           integer("width", 64, 1, 1 << 16, "channels of the first stage; later ones double them"),
           {"stem", NETCL_ATTR_STR, false, 0, "imagenet", 0, 0, "imagenet|cifar",
            "imagenet: 7x7 convolution of stride 2 and max pooling; cifar: one 3x3 convolution"},
           {"sync_batch_norm", NETCL_ATTR_BOOL, false, 0, "", 0, 0, "",
            "batch statistics over all devices"}},
          [blocks, bottleneck](const Trace& t) { ResNet(t, blocks, bottleneck).trace(); }};
}

}  // namespace

std::vector<plugin::LayerType> convolutional_models() {
  const AttrSpec classes = integer("classes", 10, 1, 1 << 30, "number of outputs");
  return {{"mlp",
           "linear layers with an activation between them",
           {{"hidden", NETCL_ATTR_INTS, true, 0, "", 0, 0, "", "widths of the hidden layers"},
            classes,
            {"activation", NETCL_ATTR_STR, false, 0, "relu", 0, 0, "relu|gelu|tanh|sigmoid|silu",
             "between the layers"},
            probability("dropout", "after each activation")},
           mlp},
          {"lenet5",
           "LeNet-5 with ReLU and max pooling, for images of 28 to 32 pixels",
           {classes},
           lenet5},
          resnet("resnet18", "ResNet with 18 layers", {2, 2, 2, 2}, false),
          resnet("resnet34", "ResNet with 34 layers", {3, 4, 6, 3}, false),
          resnet("resnet50", "ResNet with 50 layers, bottleneck blocks", {3, 4, 6, 3}, true)};
}

}  // namespace models
}  // namespace netcl
