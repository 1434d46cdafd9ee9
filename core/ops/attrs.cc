#include "core/ops/attrs.h"

#include "core/base/error.h"

namespace netcl {

namespace {

std::string list_text(const std::vector<int64_t>& values) {
  std::string out = "[";
  for (size_t i = 0; i < values.size(); ++i) out += (i > 0 ? "," : "") + std::to_string(values[i]);
  return out + "]";
}

std::string item_text(const Attrs::Item& item) {
  if (const auto* i = std::get_if<int64_t>(&item)) return std::to_string(*i);
  if (const auto* f = std::get_if<double>(&item)) {
    std::ostringstream out;
    out.precision(17);
    out << *f;
    return out.str();
  }
  if (const auto* s = std::get_if<std::string>(&item)) return *s;
  if (const auto* v = std::get_if<std::vector<int64_t>>(&item)) return list_text(*v);
  return std::get<Shape>(item).str();
}

}  // namespace

void Attrs::set(const std::string& key, Item item) {
  for (auto& [k, v] : items_) {
    if (k == key) {
      v = std::move(item);
      return;
    }
  }
  items_.emplace_back(key, std::move(item));
}

const Attrs::Item* Attrs::find(std::string_view key) const {
  for (const auto& [k, v] : items_) {
    if (k == key) return &v;
  }
  return nullptr;
}

const Attrs::Item& Attrs::at(std::string_view key) const {
  const Item* item = find(key);
  NETCL_CHECK(item != nullptr, ErrorCode::kUsage, "attribute \"", key,
              "\" is missing; given: ", str());
  return *item;
}

int64_t Attrs::integer(std::string_view key) const {
  const auto* value = std::get_if<int64_t>(&at(key));
  NETCL_CHECK(value != nullptr, ErrorCode::kUsage, "attribute \"", key, "\" must be an integer");
  return *value;
}

double Attrs::number(std::string_view key) const {
  const Item& item = at(key);
  if (const auto* i = std::get_if<int64_t>(&item)) return static_cast<double>(*i);
  const auto* value = std::get_if<double>(&item);
  NETCL_CHECK(value != nullptr, ErrorCode::kUsage, "attribute \"", key, "\" must be a number");
  return *value;
}

const std::string& Attrs::text(std::string_view key) const {
  const auto* value = std::get_if<std::string>(&at(key));
  NETCL_CHECK(value != nullptr, ErrorCode::kUsage, "attribute \"", key, "\" must be text");
  return *value;
}

const std::vector<int64_t>& Attrs::integers(std::string_view key) const {
  const auto* value = std::get_if<std::vector<int64_t>>(&at(key));
  NETCL_CHECK(value != nullptr, ErrorCode::kUsage, "attribute \"", key,
              "\" must be a list of integers");
  return *value;
}

const Shape& Attrs::shape(std::string_view key) const {
  const auto* value = std::get_if<Shape>(&at(key));
  NETCL_CHECK(value != nullptr, ErrorCode::kUsage, "attribute \"", key, "\" must be a shape");
  return *value;
}

Attrs Attrs::with_batch(int64_t batch) const {
  Attrs out = *this;
  for (auto& [k, v] : out.items_) {
    if (const auto* shape = std::get_if<Shape>(&v)) v = shape->with_batch(batch);
  }
  return out;
}

std::string Attrs::str() const {
  std::string out;
  for (const auto& [k, v] : items_) out += (out.empty() ? "" : " ") + k + "=" + item_text(v);
  return out;
}

std::vector<netcl_attr> to_abi(const Attrs& attrs) {
  std::vector<netcl_attr> out;
  for (const auto& [key, item] : attrs.items()) {
    netcl_attr a{};
    a.key = {key.data(), key.size()};
    if (const auto* i = std::get_if<int64_t>(&item)) {
      a.kind = NETCL_ATTR_INT;
      a.u.i = *i;
    } else if (const auto* f = std::get_if<double>(&item)) {
      a.kind = NETCL_ATTR_FLOAT;
      a.u.f = *f;
    } else if (const auto* s = std::get_if<std::string>(&item)) {
      a.kind = NETCL_ATTR_STR;
      a.u.s = {s->data(), s->size()};
    } else if (const auto* v = std::get_if<std::vector<int64_t>>(&item)) {
      a.kind = NETCL_ATTR_INTS;
      a.n = static_cast<uint32_t>(v->size());
      a.u.iv = v->data();
    } else {
      const std::vector<int64_t>& dims = std::get<Shape>(item).dims();
      a.kind = NETCL_ATTR_DIMS;
      a.n = static_cast<uint32_t>(dims.size());
      a.u.iv = dims.data();
    }
    out.push_back(a);
  }
  return out;
}

Attrs attrs_from_abi(const netcl_attr* attrs, size_t n) {
  Attrs out;
  for (size_t i = 0; i < n; ++i) {
    const netcl_attr& a = attrs[i];
    const std::string key(a.key.ptr, a.key.len);
    switch (a.kind) {
      case NETCL_ATTR_INT:
      case NETCL_ATTR_BOOL:
        out.set(key, a.u.i);
        break;
      case NETCL_ATTR_FLOAT:
        out.set(key, a.u.f);
        break;
      case NETCL_ATTR_STR:
        out.set(key, std::string(a.u.s.ptr, a.u.s.len));
        break;
      case NETCL_ATTR_INTS:
        out.set(key, std::vector<int64_t>(a.u.iv, a.u.iv + a.n));
        break;
      case NETCL_ATTR_DIMS:
        out.set(key, Shape(std::vector<int64_t>(a.u.iv, a.u.iv + a.n)));
        break;
      default:
        fail(ErrorCode::kPlugin, "attribute \"", key, "\" has unknown kind ", a.kind);
    }
  }
  return out;
}

}  // namespace netcl
