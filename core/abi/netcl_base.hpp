// netcl_base.hpp - what every plugin in C++ uses: texts, failures, the host's services, attributes.
// Part of netcl_plugin.hpp, which says how to begin.
#ifndef NETCL_CORE_ABI_NETCL_BASE_HPP_
#define NETCL_CORE_ABI_NETCL_BASE_HPP_

#include <cstdint>
#include <exception>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "netcl_plugin.h"

// Two plugins must never share code by accident.
#pragma GCC visibility push(hidden)
namespace netcl {
namespace plugin {

inline netcl_str to_abi(std::string_view text) { return {text.data(), text.size()}; }
inline std::string_view view(netcl_str text) { return {text.ptr, text.len}; }

// "I broke": the host stops and shows the text.
class Failure : public std::runtime_error {
 public:
  Failure(netcl_rc code, const std::string& text, int64_t native_code = 0)
      : std::runtime_error(text), code_(code), native_code_(native_code) {}
  netcl_rc code() const { return code_; }
  int64_t native_code() const { return native_code_; }

 private:
  netcl_rc code_;
  int64_t native_code_;
};

// "Not me, and why": the host asks the next candidate.
class Decline : public Failure {
 public:
  explicit Decline(const std::string& reason) : Failure(NETCL_DECLINE, reason) {}
};

// A host service failed and has stored its own text in the call, which is kept.
class Reported : public Failure {
 public:
  Reported(netcl_rc code, const std::string& service)
      : Failure(code, "host service failed: " + service) {}
};

// Runs `body` and turns every exception into a status and a text in the call.
template <typename Body>
netcl_rc guard(const netcl_host* host, netcl_call* call, Body&& body) {
  try {
    body();
    return NETCL_OK;
  } catch (const Reported& e) {
    return e.code();
  } catch (const Failure& e) {
    return host->fail(call, e.code(), e.native_code(), to_abi(e.what()));
  } catch (const std::bad_alloc&) {
    return host->fail(call, NETCL_E_NOMEM, 0, to_abi("out of memory"));
  } catch (const std::exception& e) {
    return host->fail(call, NETCL_E_BUG, 0, to_abi(e.what()));
  } catch (...) {
    return host->fail(call, NETCL_E_BUG, 0, to_abi("an exception that is no std::exception"));
  }
}

// Throws what the host stored when one of its services failed; the text is already in the call.
inline void check(netcl_rc rc, const char* service = "?") {
  if (rc != NETCL_OK) throw Reported(rc, service);
}

// The raw handles of a device: cl_platform_id, cl_device_id, cl_context.
struct ClHandles {
  void *platform, *device, *context;
};

// The host's services within one call.
class Host {
 public:
  Host(const netcl_host* table, netcl_call* call) : table_(table), call_(call) {}
  const netcl_host* table() const { return table_; }
  netcl_call* call() const { return call_; }

  void log(uint32_t level, std::string_view text) const { table_->log(call_, level, to_abi(text)); }
  int64_t device_int(netcl_device* device, std::string_view name) const {
    int64_t value = 0;
    check(table_->device_int(call_, device, to_abi(name), &value));
    return value;
  }
  std::string device_text(netcl_device* device, std::string_view name) const {
    std::string out;
    check(table_->device_text(call_, device, to_abi(name), &store_text, &out));
    return out;
  }
  ClHandles device_cl(netcl_device* device) const {
    ClHandles out{};
    check(table_->device_cl(call_, device, &out.platform, &out.device, &out.context));
    return out;
  }
  std::string plugin_dir() const {
    std::string out;
    check(table_->plugin_dir(call_, &store_text, &out));
    return out;
  }

 private:
  static netcl_rc store_text(void* ctx, const void* item) {
    *static_cast<std::string*>(ctx) = std::string(view(*static_cast<const netcl_str*>(item)));
    return NETCL_OK;
  }
  const netcl_host* table_;
  netcl_call* call_;
};

// ---- attributes
inline netcl_attr attr_int(std::string_view key, int64_t value) {
  netcl_attr a{};
  a.key = to_abi(key);
  a.kind = NETCL_ATTR_INT;
  a.u.i = value;
  return a;
}
inline netcl_attr attr_bool(std::string_view key, bool value) {
  netcl_attr a = attr_int(key, value ? 1 : 0);
  a.kind = NETCL_ATTR_BOOL;
  return a;
}
inline netcl_attr attr_float(std::string_view key, double value) {
  netcl_attr a{};
  a.key = to_abi(key);
  a.kind = NETCL_ATTR_FLOAT;
  a.u.f = value;
  return a;
}
// `value` must outlive the attribute.
inline netcl_attr attr_text(std::string_view key, std::string_view value) {
  netcl_attr a{};
  a.key = to_abi(key);
  a.kind = NETCL_ATTR_STR;
  a.u.s = to_abi(value);
  return a;
}
// `values` must outlive the attribute.
inline netcl_attr attr_ints(std::string_view key, const std::vector<int64_t>& values,
                            uint32_t kind = NETCL_ATTR_INTS) {
  netcl_attr a{};
  a.key = to_abi(key);
  a.kind = kind;
  a.n = static_cast<uint32_t>(values.size());
  a.u.iv = values.data();
  return a;
}
// A shape, in which -k stands for k x batch size.
inline netcl_attr attr_dims(std::string_view key, const std::vector<int64_t>& values) {
  return attr_ints(key, values, NETCL_ATTR_DIMS);
}

class AttrView {
 public:
  AttrView(const netcl_attr* attrs, uint32_t n) : attrs_(attrs), n_(n) {}
  const netcl_attr* find(std::string_view key) const {
    for (uint32_t i = 0; i < n_; ++i) {
      if (view(attrs_[i].key) == key) return &attrs_[i];
    }
    return nullptr;
  }
  const netcl_attr& at(std::string_view key) const {
    const netcl_attr* a = find(key);
    if (a == nullptr) throw Failure(NETCL_E_ARG, "attribute " + std::string(key) + " is missing");
    return *a;
  }
  int64_t integer(std::string_view key) const { return at(key).u.i; }
  bool boolean(std::string_view key) const { return at(key).u.i != 0; }
  double number(std::string_view key) const {
    const netcl_attr& a = at(key);
    return a.kind == NETCL_ATTR_FLOAT ? a.u.f : static_cast<double>(a.u.i);
  }
  std::string_view text(std::string_view key) const { return view(at(key).u.s); }
  std::vector<int64_t> integers(std::string_view key) const {
    const netcl_attr& a = at(key);
    return {a.u.iv, a.u.iv + a.n};
  }
  const netcl_attr* data() const { return attrs_; }
  uint32_t size() const { return n_; }

 private:
  const netcl_attr* attrs_;
  uint32_t n_;
};

}  // namespace plugin
}  // namespace netcl
#pragma GCC visibility pop

#endif  // NETCL_CORE_ABI_NETCL_BASE_HPP_
