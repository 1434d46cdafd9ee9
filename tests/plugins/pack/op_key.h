// An op key with the memory behind it, for tests.
#ifndef NETCL_TESTS_PLUGINS_PACK_OP_KEY_H_
#define NETCL_TESTS_PLUGINS_PACK_OP_KEY_H_

#include <deque>
#include <string>
#include <vector>

#include "core/abi/netcl_plugin.hpp"

namespace netcl {
namespace testing {

class OpKey {
 public:
  explicit OpKey(std::string op, std::string family = "")
      : op_(std::move(op)), family_(std::move(family)) {}
  OpKey(const OpKey&) = delete;
  OpKey& operator=(const OpKey&) = delete;

  OpKey& in(std::vector<int64_t> dims, uint32_t dtype = NETCL_F32) {
    in_.push_back(desc(dims, dtype));
    return *this;
  }
  OpKey& out(std::vector<int64_t> dims, uint32_t dtype = NETCL_F32) {
    out_.push_back(desc(dims, dtype));
    return *this;
  }
  OpKey& integer(const std::string& key, int64_t value) {
    attrs_.push_back(plugin::attr_int(keep(key), value));
    return *this;
  }
  OpKey& number(const std::string& key, double value) {
    attrs_.push_back(plugin::attr_float(keep(key), value));
    return *this;
  }
  OpKey& text(const std::string& key, const std::string& value) {
    attrs_.push_back(plugin::attr_text(keep(key), keep(value)));
    return *this;
  }
  OpKey& list(const std::string& key, std::vector<int64_t> values) {
    lists_.push_back(std::move(values));
    attrs_.push_back(plugin::attr_ints(keep(key), lists_.back()));
    return *this;
  }

  const std::vector<netcl_desc>& inputs() const { return in_; }
  const std::vector<netcl_desc>& outputs() const { return out_; }
  netcl_opkey view() const {
    netcl_opkey key{};
    key.size = sizeof(key);
    key.op = plugin::to_abi(op_);
    key.family = plugin::to_abi(family_);
    key.n_in = static_cast<uint32_t>(in_.size());
    key.n_out = static_cast<uint32_t>(out_.size());
    key.n_attrs = static_cast<uint32_t>(attrs_.size());
    key.in = in_.data();
    key.out = out_.data();
    key.attrs = attrs_.data();
    return key;
  }

 private:
  static netcl_desc desc(const std::vector<int64_t>& dims, uint32_t dtype) {
    netcl_desc d{};
    d.dtype = dtype;
    d.rank = static_cast<uint32_t>(dims.size());
    for (size_t i = 0; i < dims.size(); ++i) d.dim[i] = dims[i];
    return d;
  }
  const std::string& keep(const std::string& text) {
    texts_.push_back(text);
    return texts_.back();
  }
  std::string op_, family_;
  std::deque<std::string> texts_;  // stable addresses
  std::deque<std::vector<int64_t>> lists_;
  std::vector<netcl_desc> in_, out_;
  std::vector<netcl_attr> attrs_;
};

}  // namespace testing
}  // namespace netcl

#endif  // NETCL_TESTS_PLUGINS_PACK_OP_KEY_H_
