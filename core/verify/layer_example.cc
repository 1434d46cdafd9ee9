#include "core/verify/layer_example.h"

#include <algorithm>
#include <filesystem>
#include <functional>

#include "core/abi/netcl_plugin.h"
#include "core/base/error.h"
#include "core/base/json_doc.h"

namespace netcl {
using nlohmann::ordered_json;

namespace {

// The exclusive bound of tokens: below what keys without a default are tried with.
constexpr int64_t kTokens = 2;

const std::vector<TensorDesc>& usual_inputs() {
  static const std::vector<TensorDesc> inputs = {
      {DType::kF32, Shape{6}},         {DType::kF32, Shape{5, 6}},
      {DType::kF32, Shape{4, 6, 7}},   {DType::kF32, Shape{3, 8, 8}},
      {DType::kI32, Shape{5}},         {DType::kF32, Shape{8, 8}},
      {DType::kF32, Shape{1, 28, 28}}, {DType::kF32, Shape{3, 32, 32}},
      {DType::kF32, Shape{784}}};
  return inputs;
}

double within(const LayerAttr& attr, double value) {
  return attr.min == 0 && attr.max == 0 ? value : std::clamp(value, attr.min, attr.max);
}

// A value for a key, or null where the kind takes none.
ordered_json value_for(const LayerAttr& attr, int64_t small) {
  switch (attr.kind) {
    case NETCL_ATTR_INT:
      return static_cast<int64_t>(within(attr, static_cast<double>(small)));
    case NETCL_ATTR_FLOAT:
      return within(attr, 0.5);
    case NETCL_ATTR_BOOL:
      return true;
    case NETCL_ATTR_STR:
      return attr.choices.empty() ? ordered_json("a") : ordered_json(attr.choices.front());
    default:
      return nullptr;
  }
}

// Layers that keep shapes, to put into a layer of layers.
std::vector<ordered_json> inner_layers(LayerProvider& layers) {
  std::vector<ordered_json> out;
  for (const char* name : {"tanh", "sigmoid", "dropout"}) {
    try {
      layers.find(name);
      out.push_back({{"type", name}});
      break;
    } catch (const Error&) {
      continue;  // not installed
    }
  }
  return out;
}

// Lists of integers: shapes, axes, permutations.
const std::vector<std::vector<int64_t>>& usual_lists() {
  static const std::vector<std::vector<int64_t>> lists = {{2}, {2, 3}, {0, 1}, {0, 2, 1}, {1}};
  return lists;
}

// Keys with which a layer is tried: what has no default is given one, and lists of layers an entry.
std::vector<ordered_json> usual_configs(const LayerType& type, LayerProvider& layers) {
  std::vector<ordered_json> out;
  for (const int64_t small : {4, 2, 3, 1, 8}) {
    for (const std::vector<int64_t>& list : usual_lists()) {
      ordered_json config = {{"type", type.name()}};
      for (const LayerAttr& attr : type.attrs()) {
        if (attr.kind == NETCL_ATTR_LAYERS) {
          config[attr.key] = inner_layers(layers);
        } else if (attr.required || !attr.def) {
          config[attr.key] =
              attr.kind == NETCL_ATTR_INTS ? ordered_json(list) : value_for(attr, small);
        }
      }
      if (std::find(out.begin(), out.end(), config) == out.end()) out.push_back(config);
    }
  }
  return out;
}

// Other values of one key than what the example has.
std::vector<ordered_json> other_values(const LayerAttr& attr, const ordered_json& config) {
  std::vector<ordered_json> out;
  if (attr.kind == NETCL_ATTR_BOOL) {
    out = {true, false};
  } else if (attr.kind == NETCL_ATTR_STR) {
    out.assign(attr.choices.begin(), attr.choices.end());
  } else if (attr.kind == NETCL_ATTR_INT) {
    for (const int64_t value : {2, 3})
      out.push_back(static_cast<int64_t>(within(attr, static_cast<double>(value))));
  } else if (attr.kind == NETCL_ATTR_FLOAT) {
    out = {within(attr, 0.25)};
  } else if (attr.kind == NETCL_ATTR_INTS) {
    out.assign(usual_lists().begin(), usual_lists().end());
  }
  const auto has = config.find(attr.key);
  if (has != config.end()) out.erase(std::remove(out.begin(), out.end(), *has), out.end());
  return out;
}

bool takes(const LayerExample& example, LayerProvider& layers, std::string* words) {
  try {
    trace_example(example, layers, /*training=*/true);
    return true;
  } catch (const Error& e) {
    *words = e.message();
    return false;
  }
}

TensorDesc batch_of(const TensorDesc& sample) {
  std::vector<int64_t> dims = {-1};
  dims.insert(dims.end(), sample.shape.dims().begin(), sample.shape.dims().end());
  return {sample.dtype, Shape(std::move(dims))};
}

}  // namespace

std::string LayerExample::text() const { return config.dump() + " of " + sample.str(); }

TracedExample trace_example(const LayerExample& example, LayerProvider& layers, bool training) {
  TracedExample out;
  const LayerType& type = layers.find(example.config.at("type").get<std::string>());
  for (size_t i = 0; i < type.n_in(); ++i)
    out.in.push_back(out.graph.external(str_cat("in", i), batch_of(example.sample)));
  Tracer tracer(
      out.graph, layers, out.slots,
      [&](const Slot& slot) {
        const auto known = out.slot_values.find(slot.name);
        if (known != out.slot_values.end()) return known->second;
        return out.slot_values[slot.name] = out.graph.external(slot.name, slot.desc);
      },
      [&] {
        if (!out.random) out.random = out.graph.external("random", {DType::kI32, Shape{8}});
        return *out.random;
      },
      {training, nullptr});
  if (type.n_in() == 1 && type.n_out() == 1) {
    const ordered_json list = ordered_json::array({example.config});
    out.out = {tracer.sequence(list, "model.layers", out.in[0])};
  } else {
    out.out = tracer.sublayer("layer", example.config, out.in);
  }
  return out;
}

std::vector<LayerExample> find_examples(const LayerType& type, LayerProvider& layers) {
  std::vector<LayerExample> out;
  std::string words = "it has no words";
  for (const ordered_json& config : usual_configs(type, layers)) {
    for (const TensorDesc& input : usual_inputs()) {
      const LayerExample example{config, input, kTokens};
      // Of forms that differ in size alone the first is enough.
      const bool known = std::any_of(out.begin(), out.end(), [&](const LayerExample& other) {
        return other.sample.dtype == input.dtype && other.sample.shape.rank() == input.shape.rank();
      });
      if (!known && takes(example, layers, &words)) out.push_back(example);
    }
    if (!out.empty()) break;
  }
  NETCL_CHECK(!out.empty(), ErrorCode::kPlugin, "no keys and input were found that layer ",
              type.name(),
              " takes; say some in verify.json beside the manifest. The last refusal: ", words);
  const LayerExample first = out.front();
  for (const LayerAttr& attr : type.attrs()) {
    for (const ordered_json& value : other_values(attr, first.config)) {
      LayerExample other = first;
      other.config[attr.key] = value;
      if (takes(other, layers, &words)) out.push_back(other);
    }
  }
  return out;
}

std::vector<LayerExample> given_examples(const std::string& directory, const std::string& type) {
  std::vector<LayerExample> out;
  const std::filesystem::path path = std::filesystem::path(directory) / "verify.json";
  if (!std::filesystem::exists(path)) return out;
  const ConfigView doc(JsonDoc::load(path));
  const ConfigView list = doc.list("layers");
  for (size_t i = 0; i < list.size(); ++i) {
    const ConfigView entry = list[i];
    if (entry.text("type") != type) continue;
    LayerExample example;
    example.config = entry.json();
    std::vector<int64_t> dims;
    const ConfigView input = entry.list("input");
    for (size_t d = 0; d < input.size(); ++d) dims.push_back(input[d].as_integer(0));
    example.sample = {DType::kF32, Shape(std::move(dims))};
    for (const char* key : {"input", "input_dtype", "int_high"}) example.config.erase(key);
    if (entry.has("input_dtype")) example.sample.dtype = dtype_named(entry.text("input_dtype"));
    if (entry.has("int_high")) example.int_high = entry.integer("int_high");
    out.push_back(std::move(example));
  }
  return out;
}

}  // namespace netcl
