#include "apps/netcl_app/verify/host_doubles.h"

#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <cstring>

#include "core/base/error.h"
#include "core/runtime/host_call.h"

namespace netcl::app::verify {

namespace {

std::atomic<size_t>& calls() {
  static std::atomic<size_t> count{0};
  return count;
}

netcl_rc refuse_call(netcl_call* call) {
  ++calls();
  if (call != nullptr) call->error = "this service of the host fails, to see who bears it";
  return NETCL_E_DEVICE;
}

// A function of any service's signature that fails.
template <typename... Args>
void set_failing(netcl_rc (*&service)(netcl_call*, Args...)) {
  service = [](netcl_call* call, Args...) { return refuse_call(call); };
}

template <typename Change>
const netcl_host* changed_host(Change change) {
  auto* host = new netcl_host(host_table());
  change(*host);
  return host;
}

// Called by nobody: services that this version does not know.
void unknown_service() {}

}  // namespace

size_t first_host_size() { return offsetof(netcl_host, sublayer); }

const netcl_host& cut_host(size_t size, uint32_t abi_minor) {
  const auto page = static_cast<size_t>(::sysconf(_SC_PAGESIZE));
  void* memory =
      ::mmap(nullptr, 2 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  NETCL_CHECK(memory != MAP_FAILED && size <= page, ErrorCode::kInternal, "no memory for a table");
  char* const end = static_cast<char*>(memory) + page;
  ::mprotect(end, page, PROT_NONE);
  netcl_host host = host_table();
  host.size = size;
  host.abi_minor = abi_minor;
  std::memcpy(end - size, &host, size);
  return *reinterpret_cast<const netcl_host*>(end - size);
}

const netcl_host& newer_host() {
  struct Later {
    netcl_host host;
    void (*services[4])();
  };
  static const Later later = [] {
    Later out{host_table(), {unknown_service, unknown_service, unknown_service, unknown_service}};
    out.host.size = sizeof(Later);
    out.host.abi_minor = NETCL_ABI_MINOR + 1;
    return out;
  }();
  return later.host;
}

const std::vector<FailingService>& failing_hosts() {
  static const std::vector<FailingService> services = {
      {"device_int", changed_host([](netcl_host& h) { set_failing(h.device_int); }), true},
      {"device_text", changed_host([](netcl_host& h) { set_failing(h.device_text); }), true},
      {"device_cl", changed_host([](netcl_host& h) { set_failing(h.device_cl); }), false},
      {"plugin_dir", changed_host([](netcl_host& h) { set_failing(h.plugin_dir); }), false},
      {"trace_info", changed_host([](netcl_host& h) { set_failing(h.trace_info); }), false},
      {"value_desc", changed_host([](netcl_host& h) { set_failing(h.value_desc); }), false},
      {"op", changed_host([](netcl_host& h) { set_failing(h.op); }), false},
      {"slot", changed_host([](netcl_host& h) { set_failing(h.slot); }), false},
      {"update_slot", changed_host([](netcl_host& h) { set_failing(h.update_slot); }), false},
      {"random_stream", changed_host([](netcl_host& h) { set_failing(h.random_stream); }), false},
      {"layer", changed_host([](netcl_host& h) { set_failing(h.layer); }), false},
      {"boot_exchange", changed_host([](netcl_host& h) { set_failing(h.boot_exchange); }), false},
      {"boot_shared", changed_host([](netcl_host& h) { set_failing(h.boot_shared); }), false},
      {"sublayer", changed_host([](netcl_host& h) { set_failing(h.sublayer); }), false},
      {"fused", changed_host([](netcl_host& h) { set_failing(h.fused); }), false}};
  return services;
}

size_t failing_calls() { return calls().load(); }
void reset_failing_calls() { calls() = 0; }

}  // namespace netcl::app::verify
