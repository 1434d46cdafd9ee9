// netcl_kernels.hpp - kernel sets in C++ for plugin authors, on top of netcl_plugin.hpp.
//
// A set that is pure data needs none of this (.cl files and variants.json). Derive from
// KernelSet<Base> where what to launch is decided in C++, or where a layer brings kernels for its
// own fused ops: `class Mine : public KernelSet<LayerFamily>`. Override plan(): say in a Recipe
// what to launch, or throw Decline with the reason. The host copies and checks the recipe once for
// every device and shape, and replays it: no call into the plugin happens in a step.
#ifndef NETCL_CORE_ABI_NETCL_KERNELS_HPP_
#define NETCL_CORE_ABI_NETCL_KERNELS_HPP_

#include <cstdint>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "netcl_plugin.hpp"
#include "netcl_recipe.hpp"
#include "netcl_variants.hpp"

#pragma GCC visibility push(hidden)
namespace netcl {
namespace plugin {

inline int64_t num_elements(const netcl_desc& desc) {
  int64_t n = 1;
  for (uint32_t d = 0; d < desc.rank; ++d) n *= desc.dim[d];
  return n;
}

// How is this op, with these concrete shapes, computed on this device? Valid during the call.
class KernelCall {
 public:
  KernelCall(Host host, netcl_device* device, const netcl_opkey& key, std::string_view variant,
             Settings settings = {})
      : host_(host),
        device_(device),
        key_(key),
        variant_(variant),
        settings_(std::move(settings)) {}

  std::string_view op() const { return view(key_.op); }
  // The variant that is to be planned: one of variants().
  std::string_view variant() const { return variant_; }
  // In plan(): the value of one of tunables(), as asked for or its default.
  int64_t tunable(std::string_view name) const {
    for (const auto& [known, value] : settings_)
      if (known == name) return value;
    throw Failure(NETCL_E_BUG, "variant " + std::string(variant_) + " of " + std::string(op()) +
                                   " has no tunable " + std::string(name));
  }
  uint32_t n_inputs() const { return key_.n_in; }
  uint32_t n_outputs() const { return key_.n_out; }
  const netcl_desc& input(uint32_t i) const { return at(key_.in, key_.n_in, i); }
  const netcl_desc& output(uint32_t i) const { return at(key_.out, key_.n_out, i); }
  // Attributes of the op, and the shape facts that kernels/README.md lists for it; those of a
  // fused op are what its layer gave.
  AttrView attrs() const { return AttrView(key_.attrs, key_.n_attrs); }
  // Facts of the device, see netcl_host.device_int and device_text.
  int64_t device(std::string_view fact) const { return host_.device_int(device_, fact); }
  std::string device_text(std::string_view fact) const { return host_.device_text(device_, fact); }
  // For sets that ask OpenCL for more, or launch by themselves.
  ClHandles device_cl() const { return host_.device_cl(device_); }
  // Declines unless every input and output has the type (NETCL_F32, ...).
  void require_all(uint32_t dtype, const char* name) const {
    for (uint32_t i = 0; i < key_.n_in + key_.n_out; ++i) {
      const netcl_desc& desc = i < key_.n_in ? key_.in[i] : key_.out[i - key_.n_in];
      if (desc.dtype == dtype) continue;
      throw Decline(std::string("the kernels take ") + name + " alone, and " +
                    (i < key_.n_in ? "input " + std::to_string(i)
                                   : "output " + std::to_string(i - key_.n_in)) +
                    " is of another type");
    }
  }
  const Host& host() const { return host_; }

 private:
  const netcl_desc& at(const netcl_desc* list, uint32_t n, uint32_t i) const {
    if (i < n) return list[i];
    throw Failure(NETCL_E_BUG,
                  std::string(op()) + " has no input or output " + std::to_string(i) + " here");
  }
  Host host_;
  netcl_device* device_;
  const netcl_opkey& key_;
  std::string_view variant_;
  Settings settings_;
};

// A plugin that offers kernels, beside what Base offers. Its manifest's `kinds` has "kernels",
// and `provides` an object for every op. Members are called from any thread, at the same time.
template <typename Base = Plugin>
class KernelSet : public Base {
 public:
  explicit KernelSet(const netcl_host* host) : Base(host) {
    kernels_.size = sizeof(kernels_);
    kernels_.plan = &KernelSet::emit_recipe;
    kernels_.enumerate = &KernelSet::emit_variants;
    kernels_.tunables = &KernelSet::emit_tunables;
  }

  // The ways in which the op can be computed, best guess for this device first. They are asked in
  // this order, or the one alone that a user names (--kernels OP=PLUGIN:VARIANT).
  virtual std::vector<Variant> variants(const KernelCall&) const { return {{"default", ""}}; }
  // Knobs of call.variant(): plan() reads call.tunable(NAME), `tune` and `plugins verify` try all.
  virtual std::vector<Tunable> tunables(const KernelCall&) const { return {}; }
  // Says what to launch for call.variant(). Throws Decline, saying why, for an op, a shape, a type
  // or a device that it does not serve; then the next variant is asked.
  virtual void plan(const KernelCall& call, Recipe& recipe) const = 0;

  const void* query(std::string_view interface_name) override {
    if (interface_name == NETCL_KERNELS_INTERFACE) return &kernels_;
    if constexpr (std::is_same_v<Base, Plugin>) {
      return nullptr;
    } else {
      return Base::query(interface_name);
    }
  }

 private:
  static const KernelSet& of(netcl_plugin* p) { return static_cast<const KernelSet&>(self(p)); }

  // The variants to ask: all, or the one that was named.
  std::vector<Variant> asked(const KernelCall& call) const {
    std::vector<Variant> all = variants(call);
    std::string known;
    for (const Variant& v : all) {
      if (v.id == call.variant()) return {v};
      known += (known.empty() ? "" : ", ") + v.id;
    }
    if (call.variant().empty() && !all.empty()) return all;
    throw Decline(all.empty() ? "no variant of " + std::string(call.op())
                              : "no variant \"" + std::string(call.variant()) + "\" of " +
                                    std::string(call.op()) + "; there is " + known);
  }

  static netcl_rc emit_recipe(netcl_plugin* p, netcl_call* call, netcl_device* device,
                              const netcl_opkey* key, netcl_str variant, netcl_sink sink,
                              void* ctx) {
    return guard(of(p).host(), call, [&] {
      const Host host(of(p).host(), call);
      const AskedVariant wanted(view(variant));
      std::string reasons, last;
      for (const Variant& v : of(p).asked(KernelCall(host, device, *key, wanted.id))) {
        try {
          std::string name = v.id;
          Settings settings =
              wanted.complete(of(p).tunables(KernelCall(host, device, *key, v.id)), &name);
          Recipe recipe(host, name);
          of(p).plan(KernelCall(host, device, *key, v.id, std::move(settings)), recipe);
          return recipe.emit(sink, ctx);
        } catch (const Decline& e) {
          if (last != e.what()) reasons += (reasons.empty() ? "" : "; ") + std::string(e.what());
          last = e.what();
        }
      }
      throw Decline(reasons);
    });
  }

  static netcl_rc emit_variants(netcl_plugin* p, netcl_call* call, netcl_device* device,
                                const netcl_opkey* key, netcl_sink sink, void* ctx) {
    return guard(of(p).host(), call, [&] {
      const KernelCall question(Host(of(p).host(), call), device, *key, {});
      for (const Variant& v : of(p).variants(question)) {
        const netcl_variant item{to_abi(v.id), to_abi(v.needs)};
        check(sink(ctx, &item), "sink");
      }
    });
  }

  static netcl_rc emit_tunables(netcl_plugin* p, netcl_call* call, netcl_device* device,
                                const netcl_opkey* key, netcl_str variant, netcl_sink sink,
                                void* ctx) {
    return guard(of(p).host(), call, [&] {
      const AskedVariant wanted(view(variant));
      const KernelCall question(Host(of(p).host(), call), device, *key, wanted.id);
      for (const Variant& v : of(p).asked(question)) {
        for (const Tunable& t : of(p).tunables(KernelCall(question.host(), device, *key, v.id))) {
          netcl_tunable item{};
          item.name = to_abi(t.name);
          item.values = t.values.data();
          item.n_values = static_cast<uint32_t>(t.values.size());
          item.def = t.def;
          check(sink(ctx, &item), "sink");
        }
        return;  // of no variant's name: those of the best guess
      }
    });
  }

  netcl_kernels_api kernels_{};
};

}  // namespace plugin
}  // namespace netcl
#pragma GCC visibility pop

#endif  // NETCL_CORE_ABI_NETCL_KERNELS_HPP_
