#include "core/autograd/op_cache.h"

#include <functional>
#include <string>
#include <variant>

namespace netcl {

namespace {

class Hash {
 public:
  void add(uint64_t value) { value_ = (value_ ^ value) * 0x9e3779b97f4a7c15u ^ (value_ >> 29); }
  void add(const std::vector<int64_t>& values) {
    add(values.size());
    for (const int64_t v : values) add(static_cast<uint64_t>(v));
  }
  void add(const TensorDesc& desc) {
    add(static_cast<uint64_t>(desc.dtype));
    add(desc.shape.dims());
  }
  void add(const Attrs::Item& item) {
    if (const auto* i = std::get_if<int64_t>(&item)) return add(static_cast<uint64_t>(*i));
    if (const auto* f = std::get_if<double>(&item)) return add(std::hash<double>()(*f));
    if (const auto* s = std::get_if<std::string>(&item)) return add(std::hash<std::string>()(*s));
    if (const auto* v = std::get_if<std::vector<int64_t>>(&item)) return add(*v);
    add(std::get<Shape>(item).dims());
  }
  uint64_t value() const { return value_; }

 private:
  uint64_t value_ = 0;
};

// Complete attributes have the row's keys in the row's order, so their values are enough.
uint64_t hash_of(const OpRow& op, const std::vector<Tensor>& in, const Attrs& attrs) {
  Hash hash;
  hash.add(reinterpret_cast<uintptr_t>(&op));
  for (const Tensor& t : in) hash.add(t.desc());
  for (const auto& [key, item] : attrs.items()) hash.add(item);
  return hash.value();
}

bool answers(const PreparedOp& prepared, const OpRow& op, const std::vector<Tensor>& in,
             const std::vector<TensorDesc>& out, const Attrs& attrs) {
  if (&prepared.op != &op || prepared.in.size() != in.size() || prepared.out.size() != out.size())
    return false;
  for (size_t i = 0; i < in.size(); ++i) {
    if (!(prepared.in[i] == in[i].desc())) return false;
  }
  for (size_t i = 0; i < out.size(); ++i) {
    if (!(*prepared.out[i] == out[i])) return false;
  }
  return prepared.attrs == attrs;
}

}  // namespace

PreparedOp& OpCache::get(KernelProvider& kernels, Device& device, const OpRow& op,
                         const std::vector<Tensor>& in, const std::vector<TensorDesc>& out,
                         const Attrs& attrs) {
  const uint64_t hash = hash_of(op, in, attrs);
  for (auto [it, end] = ops_.equal_range(hash); it != end; ++it) {
    if (answers(*it->second, op, in, out, attrs)) return *it->second;
  }
  std::vector<TensorDesc> descs;
  for (const Tensor& t : in) descs.push_back(t.desc());
  const auto recipe = kernels.recipe(device, {op, descs, out, attrs});
  std::vector<std::shared_ptr<const TensorDesc>> results;
  for (const TensorDesc& desc : out) results.push_back(std::make_shared<const TensorDesc>(desc));
  std::unique_ptr<PreparedOp> prepared(
      new PreparedOp{op, std::move(descs), std::move(results), attrs, Executable(device, *recipe)});
  return *ops_.emplace(hash, std::move(prepared))->second;
}

}  // namespace netcl
