// Attributes of an op call: named values, kept in the order in which they were set.
#ifndef NETCL_CORE_OPS_ATTRS_H_
#define NETCL_CORE_OPS_ATTRS_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "core/abi/netcl_plugin.h"
#include "core/tensor/shape.h"

namespace netcl {

class Attrs {
 public:
  // A Shape may hold symbolic dimensions; they are resolved when the batch size is known.
  using Item = std::variant<int64_t, double, std::string, std::vector<int64_t>, Shape>;

  Attrs() = default;
  Attrs(std::initializer_list<std::pair<std::string, Item>> items) {
    for (const auto& [key, item] : items) set(key, item);
  }

  void set(const std::string& key, Item item);  // adds or replaces
  bool has(std::string_view key) const { return find(key) != nullptr; }
  // Errors of all four: kUsage if the key is missing or of another kind.
  int64_t integer(std::string_view key) const;
  double number(std::string_view key) const;  // also accepts an integer
  const std::string& text(std::string_view key) const;
  const std::vector<int64_t>& integers(std::string_view key) const;
  const Shape& shape(std::string_view key) const;

  const std::vector<std::pair<std::string, Item>>& items() const { return items_; }
  bool operator==(const Attrs& other) const { return items_ == other.items_; }

  // The attributes with every Shape's symbolic dimensions replaced.
  Attrs with_batch(int64_t batch) const;
  // "axes=[0] keep=1": for messages and cache keys.
  std::string str() const;

 private:
  const Item* find(std::string_view key) const;
  const Item& at(std::string_view key) const;
  std::vector<std::pair<std::string, Item>> items_;
};

// A view of `attrs` as C attributes; borrows from it.
std::vector<netcl_attr> to_abi(const Attrs& attrs);
Attrs attrs_from_abi(const netcl_attr* attrs, size_t n);

}  // namespace netcl

#endif  // NETCL_CORE_OPS_ATTRS_H_
