#include "core/nn/tracer.h"

#include <algorithm>
#include <cmath>

#include "core/abi/netcl_plugin.h"
#include "core/base/error.h"
#include "core/base/text.h"

namespace netcl {
using nlohmann::ordered_json;

namespace {

// Every layer has this key: its activations are computed again in the backward part.
constexpr const char* kRecompute = "recompute";

// "model.layers[2].layers[0]" -> "layers.2.layers.0": how PyTorch names nested modules.
std::string slot_prefix(const std::string& path) {
  std::string out;
  for (const char c : path.substr(path.find('.') + 1)) {
    if (c == '[') {
      out += '.';
    } else if (c != ']') {
      out += c;
    }
  }
  return out;
}

std::string described(const ordered_json& value) {
  const std::string text = value.dump();
  return str_cat(value.type_name(), " ", text.size() > 60 ? text.substr(0, 57) + "..." : text);
}

// A limit or a value in full: 16777216, not 1.67772e+07.
std::string number_text(double number) {
  constexpr double kExact = 9e15;
  const bool whole = number == std::floor(number) && std::abs(number) < kExact;
  return whole ? std::to_string(static_cast<int64_t>(number)) : str_cat(number);
}

// The JSON value as an attribute of `kind`, or nullopt if it is of another type.
std::optional<Attrs::Item> convert(const ordered_json& value, uint32_t kind) {
  switch (kind) {
    case NETCL_ATTR_INT:
      if (value.is_number_integer()) return Attrs::Item(value.get<int64_t>());
      return std::nullopt;
    case NETCL_ATTR_BOOL:
      if (value.is_boolean()) return Attrs::Item(int64_t{value.get<bool>()});
      return std::nullopt;
    case NETCL_ATTR_FLOAT:
      if (value.is_number()) return Attrs::Item(value.get<double>());
      return std::nullopt;
    case NETCL_ATTR_STR:
      if (value.is_string()) return Attrs::Item(value.get<std::string>());
      return std::nullopt;
    case NETCL_ATTR_INTS: {
      std::vector<int64_t> out;
      if (value.is_number_integer()) return Attrs::Item(std::vector<int64_t>{value.get<int64_t>()});
      if (!value.is_array()) return std::nullopt;
      for (const ordered_json& item : value) {
        if (!item.is_number_integer()) return std::nullopt;
        out.push_back(item.get<int64_t>());
      }
      return Attrs::Item(out);
    }
    default:
      return std::nullopt;
  }
}

const char* kind_name(uint32_t kind) {
  switch (kind) {
    case NETCL_ATTR_INT:
      return "an integer";
    case NETCL_ATTR_BOOL:
      return "true or false";
    case NETCL_ATTR_FLOAT:
      return "a number";
    case NETCL_ATTR_STR:
      return "text";
    case NETCL_ATTR_INTS:
      return "a list of integers";
    case NETCL_ATTR_LAYERS:
      return "a list of layers";
    default:
      return "a value";
  }
}

}  // namespace

Tracer::Tracer(Recorder& recorder, LayerProvider& layers, std::vector<Slot>& slots,
               std::function<ValueId(const Slot&)> slot_value,
               std::function<ValueId()> random_state, TraceOptions options)
    : recorder_(recorder),
      layers_(layers),
      slots_(slots),
      slot_value_(std::move(slot_value)),
      random_state_(std::move(random_state)),
      options_(std::move(options)) {}

void Tracer::bad(const std::string& path, const std::string& message) const {
  const std::string place = options_.locate ? options_.locate(path) : "";
  fail(ErrorCode::kUsage, place.empty() ? "" : place + ": ", path, ": ", message);
}

ValueId Tracer::sequence(const ordered_json& layers, const std::string& path, ValueId x) {
  if (!layers.is_array() || layers.empty())
    bad(path, "expected a non-empty list of layers, found " + described(layers));
  for (size_t i = 0; i < layers.size(); ++i) {
    const std::string at = str_cat(path, "[", i, "]");
    const std::vector<ValueId> out = layer(layers[i], at, {x});
    if (out.size() != 1) bad(at, "a layer in a sequence must have one output");
    x = out[0];
  }
  return x;
}

LayerArgs Tracer::check_args(const LayerType& type, const ordered_json& config,
                             const std::string& path) {
  LayerArgs out;
  std::vector<std::string> known = {"type", kRecompute};
  for (const LayerAttr& attr : type.attrs()) known.push_back(attr.key);
  for (const auto& item : config.items()) {
    if (std::find(known.begin(), known.end(), item.key()) == known.end()) {
      bad(path + "." + item.key(),
          "unknown key of layer \"" + type.name() + "\"" + suggest(item.key(), known));
    }
  }
  for (const LayerAttr& attr : type.attrs()) {
    const std::string at = path + "." + attr.key;
    const auto found = config.find(attr.key);
    if (attr.kind == NETCL_ATTR_LAYERS) {
      if (found == config.end() && !attr.required) {  // absent: an empty list
        out.nested.push_back({attr.key, {-1, 0}});
        continue;
      }
      if (found == config.end())
        bad(at, "layer \"" + type.name() + "\" needs this key: a list of layers");
      if (!found->is_array()) bad(at, "expected a list of layers, found " + described(*found));
      out.nested.push_back(
          {attr.key, {static_cast<int64_t>(lists_.size()), static_cast<uint32_t>(found->size())}});
      lists_.push_back({&*found, at});
      continue;
    }
    if (found == config.end()) {
      if (attr.required || !attr.def) {
        bad(at, "layer \"" + type.name() + "\" needs this key: " + kind_name(attr.kind) +
                    (attr.doc.empty() ? "" : ", " + attr.doc));
      }
      out.values.set(attr.key, *attr.def);
      continue;
    }
    const auto value = convert(*found, attr.kind);
    if (!value) bad(at, str_cat("expected ", kind_name(attr.kind), ", found ", described(*found)));
    if (found->is_number() && (attr.min != 0 || attr.max != 0)) {
      const double number = found->get<double>();
      if (number < attr.min || number > attr.max) {
        bad(at, str_cat("expected ", kind_name(attr.kind), " from ", number_text(attr.min), " to ",
                        number_text(attr.max), ", found ", number_text(number)));
      }
    }
    if (found->is_string() && !attr.choices.empty()) {
      const std::string text = found->get<std::string>();
      if (std::find(attr.choices.begin(), attr.choices.end(), text) == attr.choices.end()) {
        bad(at, "expected one of " + join(attr.choices, ", ") + ", found \"" + text + "\"" +
                    suggest(text, attr.choices));
      }
    }
    out.values.set(attr.key, *value);
  }
  return out;
}

std::vector<ValueId> Tracer::layer(const ordered_json& config, const std::string& path,
                                   const std::vector<ValueId>& in) {
  if (!config.is_object())
    bad(path, "expected a layer, an object with \"type\", found " + described(config));
  const auto type_name = config.find("type");
  if (type_name == config.end() || !type_name->is_string())
    bad(path, "a layer needs \"type\", the name of a layer type");
  const std::string saved = std::exchange(path_, path);
  try {
    const LayerType& type = layers_.find(type_name->get<std::string>());
    if (in.size() != type.n_in()) {
      bad(path,
          str_cat("layer \"", type.name(), "\" takes ", type.n_in(), " inputs, not ", in.size()));
    }
    const LayerArgs args = check_args(type, config, path);
    const size_t begin = recorder_.nodes().size();
    std::vector<ValueId> out = type.trace(*this, args, in);
    traced_.push_back({{begin, recorder_.nodes().size()}, path + " (" + type.name() + ")"});
    if (wants_recompute(config, path)) mark_recompute({begin, recorder_.nodes().size()});
    path_ = saved;
    return out;
  } catch (const Error& e) {
    path_ = saved;
    if (e.message().find(path) != std::string::npos) throw;  // a nested layer has said where
    std::string shapes;
    for (const ValueId v : in) shapes += (shapes.empty() ? "" : ", ") + recorder_.desc(v).str();
    const std::string place = options_.locate ? options_.locate(path) : "";
    fail(e.code(), place.empty() ? "" : place + ": ", path, " (", type_name->get<std::string>(),
         ", input ", shapes, "): ", e.message());
  }
}

bool Tracer::wants_recompute(const ordered_json& config, const std::string& path) const {
  const auto found = config.find(kRecompute);
  if (found == config.end()) return false;
  if (!found->is_boolean())
    bad(path + "." + kRecompute, "expected true or false, found " + described(*found));
  return found->get<bool>();
}

void Tracer::mark_recompute(NodeRange range) {
  if (range.begin == range.end) return;
  while (!recompute_.empty() && recompute_.back().begin >= range.begin) recompute_.pop_back();
  recompute_.push_back(range);
}

ValueId Tracer::slot(Slot slot) {
  NETCL_CHECK(!slot.desc.shape.symbolic(), ErrorCode::kPlugin, "slot \"", slot.name,
              "\" has a shape that depends on the batch: ", slot.desc.shape.str());
  double elements = 1;  // a product of integers could wrap
  for (const int64_t d : slot.desc.shape.dims()) elements *= static_cast<double>(d);
  NETCL_CHECK(elements < 1e13, ErrorCode::kUsage, "the parameter \"", slot.name, "\" would be ",
              slot.desc.str(), ", which is beyond any memory; make the layer or its input smaller");
  slot.name = slot_prefix(path_) + "." + slot.name;
  const auto known = std::find_if(slots_.begin(), slots_.end(),
                                  [&](const Slot& other) { return other.name == slot.name; });
  if (known != slots_.end()) {
    NETCL_CHECK(known->desc == slot.desc && known->statistic == slot.statistic, ErrorCode::kPlugin,
                "slot ", slot.name, " was declared as ", known->desc.str(), " and now as ",
                slot.desc.str());
  } else {
    slots_.push_back(slot);
  }
  const ValueId value = slot_value_(slot);
  if (slot.statistic) statistics_[value] = std::move(slot);
  return value;
}

void Tracer::update_slot(ValueId statistic, ValueId next) {
  const auto found = statistics_.find(statistic);
  NETCL_CHECK(found != statistics_.end(), ErrorCode::kPlugin,
              "update_slot: the value stands for no statistic of this layer");
  const Slot& slot = found->second;
  NETCL_CHECK(recorder_.desc(next) == slot.desc, ErrorCode::kPlugin, "update_slot: ", slot.name,
              " is ", slot.desc.str(), ", its next value ", recorder_.desc(next).str());
  for (const SlotUpdate& other : updates_) {
    NETCL_CHECK(other.slot != slot.name, ErrorCode::kPlugin, "update_slot: ", slot.name,
                " has a next value already");
  }
  if (training()) updates_.push_back({slot.name, next});
}

std::vector<ValueId> Tracer::sublayer(const std::string& name, const ordered_json& config,
                                      const std::vector<ValueId>& in) {
  NETCL_CHECK(!name.empty(), ErrorCode::kPlugin, "a part of a layer needs a name");
  return layer(config, path_ + "." + name, in);
}

std::pair<ValueId, int64_t> Tracer::random_stream() { return {random_state_(), next_stream_++}; }

std::vector<ValueId> Tracer::nested(int64_t handle, uint32_t index,
                                    const std::vector<ValueId>& in) {
  NETCL_CHECK(handle >= 0 && static_cast<size_t>(handle) < lists_.size(), ErrorCode::kPlugin,
              "a nested layer was asked for with an unknown handle");
  const NestedList list = lists_[static_cast<size_t>(handle)];
  NETCL_CHECK(index < list.layers->size(), ErrorCode::kPlugin, "nested layer ", index, " of ",
              list.layers->size());
  return layer((*list.layers)[index], str_cat(list.path, "[", index, "]"), in);
}

}  // namespace netcl
