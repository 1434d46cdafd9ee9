// A kernel-set plugin as C++ sees it: what it offers for a question, and the recipes that it
// answers with. Who is asked, and in which order, is kernel_choice.h's business.
// Threads: any.
#ifndef NETCL_CORE_RUNTIME_KERNEL_SET_H_
#define NETCL_CORE_RUNTIME_KERNEL_SET_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "core/ops/kernel_provider.h"
#include "core/runtime/plugin_host.h"

namespace netcl {

// A knob of a variant.
struct Tunable {
  std::string name;
  std::vector<int64_t> values;  // those worth trying
  int64_t def = 0;              // used unasked; need not be among the values
};

class KernelSet {
 public:
  // Errors: kPlugin if the plugin has no table of kernels.
  explicit KernelSet(LoadedPlugin& plugin);

  const std::string& id() const { return plugin_.id(); }

  // The checked recipe of a variant, which may set tunables ("vec(ROWS=24)"); "": the set's own
  // choice. nullptr if the set declines; *reason then says why. Errors: kPlugin, kDevice, with the
  // set's words.
  std::shared_ptr<const Recipe> plan(Device& device, const KernelQuestion& question,
                                     const std::string& variant, std::string* reason) const;
  // The variants that can serve, best guess first. Errors: as plan.
  std::vector<std::string> variants(Device& device, const KernelQuestion& question) const;
  // The knobs of a variant for this question; none if the set declines or knows no knobs. Errors:
  // as plan.
  std::vector<Tunable> tunables(Device& device, const KernelQuestion& question,
                                const std::string& variant) const;

 private:
  netcl_rc ask(const std::string& what, const std::function<netcl_rc(netcl_call*)>& body,
               std::string* reason = nullptr) const;

  LoadedPlugin& plugin_;
  const netcl_kernels_api& table_;
};

}  // namespace netcl

#endif  // NETCL_CORE_RUNTIME_KERNEL_SET_H_
