// vit_tiny (Dosovitskiy et al. 2021, in the size of Touvron et al. 2021) and gpt_mini, a character
// model with the blocks of GPT-2 (Radford et al. 2019): normalisation first, GELU, a wide hidden
// layer of four times the features.
#include <cmath>

#include "plugins/layers/models/models.h"

namespace netcl {
namespace models {

namespace {

using plugin::attr_bool;
using plugin::attr_dims;
using plugin::attr_float;
using plugin::attr_int;
using plugin::attr_ints;
using plugin::attr_text;
using plugin::AttrSpec;
using plugin::Failure;
using plugin::shape_text;
using plugin::Trace;
using plugin::Value;

struct BlockSizes {
  int64_t features, heads, hidden;
  double dropout;
  bool causal;
  double deviation;           // of the weights
  double residual_deviation;  // of those that end a residual branch
};

Value linear(const Trace& t, const std::string& name, int64_t out, double deviation, Value x) {
  return t.sublayer(name, "linear",
                    {attr_int("out", out), attr_text("init", "trunc_normal"),
                     attr_float("init_scale", deviation), attr_text("bias_init", "zeros")},
                    x);
}

Value drop(const Trace& t, const std::string& name, double p, Value x) {
  return p > 0 ? t.sublayer(name, "dropout", {attr_float("p", p)}, x) : x;
}

// x + attention(norm(x)), then x + mlp(norm(x)).
Value block(const Trace& t, const std::string& name, const BlockSizes& s, Value x) {
  Value y = t.sublayer(name + ".norm1", "layer_norm", {}, x);
  y = t.sublayer(
      name + ".attn", "multihead_attention",
      {attr_int("heads", s.heads), attr_bool("causal", s.causal), attr_float("dropout", s.dropout)},
      y);
  x = t.op("add", {x, drop(t, name + ".drop1", s.dropout, y)});
  y = t.sublayer(name + ".norm2", "layer_norm", {}, x);
  y = t.sublayer(name + ".act", "gelu", {}, linear(t, name + ".fc1", s.hidden, s.deviation, y));
  y = linear(t, name + ".fc2", s.features, s.residual_deviation, y);
  return t.op("add", {x, drop(t, name + ".drop2", s.dropout, y)});
}

Value blocks(const Trace& t, const BlockSizes& sizes, int64_t depth, Value x) {
  for (int64_t i = 0; i < depth; ++i) x = block(t, "blocks." + std::to_string(i), sizes, x);
  return t.sublayer("norm", "layer_norm", {}, x);
}

BlockSizes sizes_of(const Trace& t, bool causal, double deviation, double residual_deviation) {
  const int64_t features = t.attrs().integer("features"), heads = t.attrs().integer("heads");
  if (features % heads != 0) {
    throw Failure(NETCL_E_ARG, "heads: " + std::to_string(heads) + " heads do not divide " +
                                   std::to_string(features) + " features; choose a divisor");
  }
  return {features,
          heads,
          t.attrs().integer("mlp_ratio") * features,
          t.attrs().number("dropout"),
          causal,
          deviation,
          residual_deviation};
}

void vit_tiny(const Trace& t) {
  Value x = images(t, "vit_tiny");
  const std::vector<int64_t> shape = t.shape(x);
  const int64_t side = t.attrs().integer("patch");
  if (shape[2] % side != 0 || shape[3] % side != 0) {
    throw Failure(NETCL_E_ARG, "patch: patches of " + std::to_string(side) +
                                   " pixels do not divide images " + shape_text(shape));
  }
  const BlockSizes sizes = sizes_of(t, false, 0.02, 0.02);
  const std::vector<int64_t> patch = {side}, order = {0, 2, 1};
  x = t.sublayer(
      "patch_embed", "conv2d",
      {attr_int("out", sizes.features), attr_ints("kernel", patch), attr_ints("stride", patch)}, x);
  const int64_t tokens = (shape[2] / side) * (shape[3] / side);
  x = t.op("reshape", {x}, {attr_dims("shape", {shape[0], sizes.features, tokens})});
  x = t.op("permute", {x}, {attr_ints("axes", order)});
  x = t.sublayer("cls_token", "class_token", {}, x);
  x = t.sublayer("pos_embed", "position_embedding", {}, x);
  x = blocks(t, sizes, t.attrs().integer("depth"), drop(t, "drop", sizes.dropout, x));
  x = t.sublayer("select", "select", {attr_int("axis", 1), attr_int("index", 0)}, x);
  t.output(0, linear(t, "head", t.attrs().integer("classes"), 0.02, x));
}

void gpt_mini(const Trace& t) {
  const std::vector<int64_t> shape = t.shape(t.input(0));
  if (shape.size() != 2) {
    throw Failure(NETCL_E_ARG, "gpt_mini takes sequences of tokens [B,T], was given " +
                                   shape_text(shape) + "; use data of the format text");
  }
  const int64_t depth = t.attrs().integer("depth"), vocabulary = t.attrs().integer("vocabulary");
  const BlockSizes sizes =
      sizes_of(t, true, 0.02, 0.02 / std::sqrt(2.0 * static_cast<double>(depth)));
  Value x = t.sublayer("token", "embedding",
                       {attr_int("vocabulary", vocabulary), attr_int("features", sizes.features),
                        attr_text("init", "normal"), attr_float("init_scale", 0.02)},
                       t.input(0));
  x = t.sublayer("position", "position_embedding", {}, x);
  x = blocks(t, sizes, depth, drop(t, "drop", sizes.dropout, x));
  t.output(0, linear(t, "head", vocabulary, 0.02, x));
}

}  // namespace

std::vector<plugin::LayerType> transformer_models() {
  const AttrSpec dropout = probability("dropout", "after embeddings, attention and each branch");
  const AttrSpec ratio = integer("mlp_ratio", 4, 1, 64, "hidden features as a multiple");
  return {{"vit_tiny",
           "Vision Transformer; by default the tiny one, for images of any size that the patches "
           "divide",
           {integer("classes", 1000, 1, 1 << 30, "number of outputs"),
            integer("patch", 16, 1, 1024, "side of a patch in pixels"),
            integer("features", 192, 1, 1 << 16, "of each token"),
            integer("depth", 12, 1, 1024, "number of blocks"),
            integer("heads", 3, 1, 1024, "of the attention"), ratio, dropout},
           vit_tiny},
          {"gpt_mini",
           "causal transformer over tokens; gives logits [B,T,vocabulary]",
           {{"vocabulary", NETCL_ATTR_INT, true, 0, "", 1, 1 << 30, "", "number of tokens"},
            integer("features", 128, 1, 1 << 16, "of each token"),
            integer("depth", 4, 1, 1024, "number of blocks"),
            integer("heads", 4, 1, 1024, "of the attention"),
            ratio,
            dropout},
           gpt_mini}};
}

}  // namespace models
}  // namespace netcl
