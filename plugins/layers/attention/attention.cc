// Layers for sequences: embedding, position_embedding, multihead_attention, class_token, select and
// permute. Sequences are [B,T,D]; the batch comes first throughout.
#include <cmath>
#include <string>
#include <vector>

#include "core/abi/netcl_initialisers.hpp"
#include "core/abi/netcl_plugin.hpp"

namespace {

using netcl::plugin::attr_dims;
using netcl::plugin::attr_float;
using netcl::plugin::attr_int;
using netcl::plugin::attr_ints;
using netcl::plugin::AttrSpec;
using netcl::plugin::Failure;
using netcl::plugin::shape_text;
using netcl::plugin::Trace;
using netcl::plugin::Value;

using Ints = std::vector<int64_t>;

// Deviation of learned tokens and positions (Radford et al., 2019; Dosovitskiy et al., 2021).
constexpr double kTokenDeviation = 0.02;

// The input as [B,T,D]. Errors: NETCL_E_ARG.
Ints sequence_shape(const Trace& t) {
  const Ints shape = t.shape(t.input(0));
  if (shape.size() != 3 || shape[1] < 0 || shape[2] < 1) {
    throw Failure(NETCL_E_ARG, "expected sequences [B,T,D], found " + shape_text(shape) +
                                   "; embed tokens or reshape first");
  }
  return shape;
}

void embedding(const Trace& t) {
  const Value tokens = t.input(0);
  if (t.desc(tokens).dtype != NETCL_I32) {
    throw Failure(NETCL_E_ARG, "expected i32 tokens, found numbers " + shape_text(t.shape(tokens)) +
                                   " of another type; give the data set integers");
  }
  const int64_t vocabulary = t.attrs().integer("vocabulary");
  const int64_t features = t.attrs().integer("features");
  const Value weight =
      declare(t, "weight", {vocabulary, features},
              initial_weight(t.attrs(), static_cast<double>(vocabulary),
                             static_cast<double>(features), netcl::plugin::normal_with(1)));
  t.output(0, t.op("embedding", {tokens, weight}));
}

void position_embedding(const Trace& t) {
  const Ints shape = sequence_shape(t);
  const int64_t given = t.attrs().integer("length");
  const int64_t length = given > 0 ? given : shape[1];
  if (shape[1] > length) {
    throw Failure(NETCL_E_ARG, "the sequences " + shape_text(shape) +
                                   " are longer than the table of " + std::to_string(length) +
                                   " positions; raise \"length\" or cut the sequences");
  }
  Value table = t.parameter("weight", {length, shape[2]}, NETCL_INIT_NORMAL, 0, kTokenDeviation);
  if (shape[1] < length) {
    const Ints axes = {0}, start = {0}, stop = {shape[1]};
    table = t.op("slice", {table},
                 {attr_ints("axes", axes), attr_ints("start", start), attr_ints("stop", stop)});
  }
  t.output(0, t.op("add", {t.input(0), table}));
}

Value cut(const Trace& t, Value x, int64_t axis, int64_t begin, int64_t end) {
  const Ints axes = {axis}, start = {begin}, stop = {end};
  return t.op("slice", {x},
              {attr_ints("axes", axes), attr_ints("start", start), attr_ints("stop", stop)});
}

// What multihead_attention knows while it traces itself: [B,T,E] with E = heads * features.
struct Heads {
  Ints shape;
  int64_t heads, features;
};

// Part `part` (0: queries, 1: keys, 2: values) of the joint projection [B,T,3,H,E/H], as
// [B,H,T,E/H].
Value part_of(const Trace& t, const Heads& h, Value joint, int64_t part) {
  const Ints order = {0, 3, 1, 2, 4}, shape = {h.shape[0], h.heads, h.shape[1], h.features};
  const Value y = t.op("permute", {cut(t, joint, 2, part, part + 1)}, {attr_ints("axes", order)});
  return t.op("reshape", {y}, {attr_dims("shape", shape)});
}

// Queries, keys and values, by one product.
std::vector<Value> projected(const Trace& t, const Heads& h, Value weight, const Value* bias) {
  std::vector<Value> operands = {t.input(0), weight};
  if (bias != nullptr) operands.push_back(*bias);
  const Ints split = {h.shape[0], h.shape[1], 3, h.heads, h.features};
  const Value joint = t.op("reshape", {t.op("matmul", operands, {attr_int("transpose_b", 1)})},
                           {attr_dims("shape", split)});
  return {part_of(t, h, joint, 0), part_of(t, h, joint, 1), part_of(t, h, joint, 2)};
}

// Vaswani et al., Attention is all you need, 2017. Slots and initial values are PyTorch's.
void multihead_attention(const Trace& t) {
  const Ints shape = sequence_shape(t);
  const int64_t e = shape[2], heads = t.attrs().integer("heads");
  if (e % heads != 0) {
    throw Failure(NETCL_E_ARG, std::to_string(heads) + " heads do not divide the " +
                                   std::to_string(e) + " features of " + shape_text(shape) +
                                   "; choose a number of heads that does");
  }
  const Heads h{shape, heads, e / heads};
  const bool biased = t.attrs().boolean("bias");
  const double xavier = std::sqrt(6.0 / static_cast<double>(4 * e));
  const double out_bound = 1.0 / std::sqrt(static_cast<double>(e));
  const Value weight =
      t.parameter("in_proj_weight", {3 * e, e}, NETCL_INIT_UNIFORM, -xavier, xavier);
  Value bias{};
  if (biased) bias = t.parameter("in_proj_bias", {3 * e}, NETCL_INIT_ZEROS);
  const std::vector<Value> qkv = projected(t, h, weight, biased ? &bias : nullptr);
  Value y = t.ops("scaled_dot_product_attention", qkv,
                  {attr_int("causal", t.attrs().boolean("causal") ? 1 : 0)}, 2)[0];
  const Ints order = {0, 2, 1, 3};
  y = t.op("permute", {y}, {attr_ints("axes", order)});
  y = t.op("reshape", {y}, {attr_dims("shape", shape)});
  const double p = t.attrs().number("dropout");
  if (t.training() && p > 0) {
    const auto [state, stream] = t.random_stream();
    y = t.op("dropout", {y, state}, {attr_float("p", p), attr_int("stream", stream)});
  }
  std::vector<Value> operands = {
      y, t.parameter("out_proj.weight", {e, e}, NETCL_INIT_UNIFORM, -out_bound, out_bound)};
  if (biased) operands.push_back(t.parameter("out_proj.bias", {e}, NETCL_INIT_ZEROS));
  t.output(0, t.op("matmul", operands, {attr_int("transpose_b", 1)}));
}

// Dosovitskiy et al., An image is worth 16x16 words, 2021.
void class_token(const Trace& t) {
  const Ints shape = sequence_shape(t);
  const Value token =
      t.parameter("class_token", {1, 1, shape[2]}, NETCL_INIT_NORMAL, 0, kTokenDeviation);
  const Ints one_each = {shape[0], 1, shape[2]};
  const Value tokens = t.op("broadcast_to", {token}, {attr_dims("shape", one_each)});
  t.output(0, t.op("concat", {tokens, t.input(0)}, {attr_int("axis", 1)}));
}

void select(const Trace& t) {
  const Ints shape = t.shape(t.input(0));
  const int64_t axis = netcl::plugin::sample_axis(shape, t.attrs().integer("axis"));
  const int64_t n = shape[static_cast<size_t>(axis)], place = t.attrs().integer("index");
  const int64_t index = place < 0 ? place + n : place;
  if (index < 0 || index >= n) {
    throw Failure(NETCL_E_ARG, "index " + std::to_string(place) + " lies outside of axis " +
                                   std::to_string(axis) + " of " + shape_text(shape));
  }
  Ints rest = shape;
  rest.erase(rest.begin() + axis);
  t.output(
      0, t.op("reshape", {cut(t, t.input(0), axis, index, index + 1)}, {attr_dims("shape", rest)}));
}

void permute(const Trace& t) {
  const Ints shape = t.shape(t.input(0)), axes = t.attrs().integers("axes");
  if (axes.size() != shape.size() || axes[0] != 0) {
    throw Failure(NETCL_E_ARG, "axes must name every axis of " + shape_text(shape) +
                                   " once and begin with 0, the batch");
  }
  t.output(0, t.op("permute", {t.input(0)}, {attr_ints("axes", axes)}));
}

AttrSpec integer(const char* key, double min, double max, const char* doc) {
  return {key, NETCL_ATTR_INT, true, 0, "", min, max, "", doc};
}

constexpr double kLarge = 1 << 30;

class Attention : public netcl::plugin::LayerFamily {
 public:
  explicit Attention(const netcl_host* host) : LayerFamily(host) {
    const AttrSpec length = {"length",
                             NETCL_ATTR_INT,
                             false,
                             0,
                             "",
                             0,
                             kLarge,
                             "",
                             "positions of the table; 0: as many as the input has"};
    const AttrSpec causal = {"causal",
                             NETCL_ATTR_BOOL,
                             false,
                             0,
                             "",
                             0,
                             0,
                             "",
                             "a place sees itself and those before it"};
    const AttrSpec bias = {"bias", NETCL_ATTR_BOOL, false, 1, "", 0, 0, "", "add trained biases"};
    const AttrSpec dropout = {"dropout",
                              NETCL_ATTR_FLOAT,
                              false,
                              0,
                              "",
                              0,
                              0.999999,
                              "",
                              "probability of dropping an element of the heads' results"};
    const AttrSpec axis = {"axis", NETCL_ATTR_INT, false, 1, "", -8, 7, "", "axis that goes away"};
    const AttrSpec index = {"index",
                            NETCL_ATTR_INT,
                            false,
                            0,
                            "",
                            -kLarge,
                            kLarge,
                            "",
                            "place along the axis; negative: from the end"};
    const AttrSpec axes = {"axes",
                           NETCL_ATTR_INTS,
                           true,
                           0,
                           "",
                           0,
                           0,
                           "",
                           "the input's axes in the order of the output"};
    std::vector<AttrSpec> embedding_attrs = netcl::plugin::initialiser_attrs();
    embedding_attrs.pop_back();  // it has no bias
    embedding_attrs.insert(embedding_attrs.begin(),
                           {integer("vocabulary", 1, kLarge, "number of tokens"),
                            integer("features", 1, kLarge, "length of a row")});
    add({"embedding", "a trained row for every token", embedding_attrs, embedding});
    add({"position_embedding",
         "x plus a trained row for every place",
         {length},
         position_embedding});
    add({"multihead_attention",
         "self-attention: every place gathers from the others, in several heads",
         {integer("heads", 1, kLarge, "number of heads"), causal, dropout, bias},
         multihead_attention});
    add({"class_token", "a trained token before the sequence", {}, class_token});
    add({"select", "one place along an axis", {axis, index}, select});
    add({"permute", "axes in another order", {axes}, permute});
  }
  std::string_view id() const override { return "attention"; }
  std::string_view version() const override { return "1.0.0"; }
};

}  // namespace

NETCL_PLUGIN(Attention)
