// netcl_host: the services lent to plugins. Each function turns its handles into objects, does the
// work, and turns exceptions into a status; the exception itself is kept in the call.
#include <map>
#include <mutex>

#include "core/base/error.h"
#include "core/cl/device.h"
#include "core/collective/bootstrap.h"
#include "core/nn/tracer.h"
#include "core/runtime/host_call.h"

namespace netcl {

namespace {

std::string text(netcl_str s) { return std::string(s.ptr, s.len); }

template <typename Body>
netcl_rc serve(netcl_call* call, Body&& body) {
  try {
    body();
    return NETCL_OK;
  } catch (const Error& e) {
    call->host_error = std::current_exception();
    call->error = e.message();
    if (e.code() == ErrorCode::kTraining) return NETCL_E_PEER;
    return e.code() == ErrorCode::kDevice ? NETCL_E_DEVICE : NETCL_E_ARG;
  } catch (const std::exception& e) {
    call->host_error = std::current_exception();
    call->error = e.what();
    return NETCL_E_BUG;
  }
}

void log(netcl_call* call, uint32_t level, netcl_str message) {
  call->log.log(static_cast<LogLevel>(std::min<uint32_t>(level, NETCL_LOG_ERROR)),
                call->plugin_id + ": " + text(message));
}

netcl_rc fail_call(netcl_call* call, netcl_rc code, int64_t native_code, netcl_str message) {
  call->error = text(message);
  call->native_code = native_code;
  call->host_error = nullptr;
  return code;
}

netcl_rc device_int(netcl_call* call, netcl_device* device, netcl_str name, int64_t* value) {
  return serve(call, [&] {
    const DeviceInfo& d = *device->info;
    const std::pair<const char*, int64_t> facts[] = {
        {"compute_units", d.compute_units},
        {"local_mem_bytes", d.local_mem_bytes},
        {"max_work_group", d.max_work_group},
        {"max_alloc_bytes", d.max_alloc_bytes},
        {"global_mem_bytes", d.memory_bytes},
        {"unified_memory", d.unified_memory ? 1 : 0},
        {"is_cpu", d.type == "cpu" || d.type == "simulator" ? 1 : 0},
        {"is_gpu", d.type == "gpu" ? 1 : 0},
        {"vector_width_float", d.vector_width_float},
        {"subgroup_min", d.subgroup_min},
        {"subgroup_max", d.subgroup_max},
        {"base_align_bytes", d.base_align_bytes}};
    for (const auto& [key, fact] : facts) {
      if (text(name) != key) continue;
      *value = fact;
      return;
    }
    fail(ErrorCode::kUsage, "unknown device fact \"", text(name), "\"");
  });
}

netcl_rc device_text(netcl_call* call, netcl_device* device, netcl_str name, netcl_sink sink,
                     void* ctx) {
  return serve(call, [&] {
    const DeviceInfo& d = *device->info;
    const std::pair<const char*, const std::string*> facts[] = {
        {"name", &d.name},    {"vendor", &d.vendor}, {"platform", &d.platform},
        {"arch", &d.arch},    {"driver", &d.driver}, {"extensions", &d.extensions},
        {"opencl", &d.opencl}};
    for (const auto& [key, fact] : facts) {
      if (text(name) != key) continue;
      const netcl_str item{fact->data(), fact->size()};
      NETCL_CHECK(sink(ctx, &item) == NETCL_OK, ErrorCode::kPlugin, "the sink refused a text");
      return;
    }
    fail(ErrorCode::kUsage, "unknown device fact \"", text(name), "\"");
  });
}

netcl_rc device_cl(netcl_call* call, netcl_device* device, void** platform, void** id,
                   void** context) {
  return serve(call, [&] {
    NETCL_CHECK(device->device != nullptr, ErrorCode::kDevice, "the device is not open");
    const cl::Device& d = device->device->cl_device();
    *platform = d.getInfo<CL_DEVICE_PLATFORM>();
    *id = d();
    *context = device->device->context()();
  });
}

netcl_rc plugin_dir(netcl_call* call, netcl_sink sink, void* ctx) {
  const netcl_str item{call->plugin_dir.data(), call->plugin_dir.size()};
  return sink(ctx, &item);
}

netcl_rc trace_info(netcl_call* call, netcl_graph* graph, netcl_trace_info* info) {
  return serve(call, [&] {
    info->training = graph->tracer->training() ? 1 : 0;
    info->n_values = static_cast<uint32_t>(graph->tracer->recorder().num_values());
  });
}

void check_value(netcl_graph* graph, netcl_value value) {
  NETCL_CHECK(value < graph->tracer->recorder().num_values(), ErrorCode::kPlugin, "value ", value,
              " does not exist in this graph");
}

std::vector<ValueId> values(netcl_graph* graph, const netcl_value* in, uint32_t n) {
  for (uint32_t i = 0; i < n; ++i) check_value(graph, in[i]);
  return std::vector<ValueId>(in, in + n);
}

void give(const std::vector<ValueId>& results, netcl_value* out, uint32_t n_out,
          const std::string& what) {
  NETCL_CHECK(results.size() == n_out, ErrorCode::kPlugin, what, " has ", results.size(),
              " outputs, not ", n_out);
  std::copy(results.begin(), results.end(), out);
}

netcl_rc value_desc(netcl_call* call, netcl_graph* graph, netcl_value value, netcl_desc* desc) {
  return serve(call, [&] {
    check_value(graph, value);
    *desc = to_abi(graph->tracer->recorder().desc(value));
  });
}

netcl_rc op(netcl_call* call, netcl_graph* graph, netcl_str name, const netcl_value* in,
            uint32_t n_in, const netcl_attr* attrs, uint32_t n_attrs, netcl_value* out,
            uint32_t n_out) {
  return serve(call, [&] {
    give(graph->tracer->recorder().apply(text(name), values(graph, in, n_in),
                                         attrs_from_abi(attrs, n_attrs)),
         out, n_out, "op " + text(name));
  });
}

netcl_rc fused(netcl_call* call, netcl_graph* graph, netcl_str name, const netcl_value* in,
               uint32_t n_in, const netcl_attr* attrs, uint32_t n_attrs, const netcl_value* out,
               uint32_t n_out, netcl_value* own) {
  return serve(call, [&] {
    give(graph->tracer->fused(text(name), values(graph, in, n_in), attrs_from_abi(attrs, n_attrs),
                              values(graph, out, n_out)),
         own, n_out, "fused op " + text(name));
  });
}

netcl_rc slot(netcl_call* call, netcl_graph* graph, const netcl_slot* slot, netcl_value* out) {
  return serve(call, [&] {
    NETCL_CHECK(slot->role <= NETCL_ROLE_STATISTIC && slot->merge <= NETCL_MERGE_NONE,
                ErrorCode::kPlugin, "slot ", text(slot->name), ": unknown role ", slot->role,
                " or merge rule ", slot->merge);
    *out = graph->tracer->slot({text(slot->name), desc_from_abi(slot->desc), slot->init, slot->a,
                                slot->b, slot->role == NETCL_ROLE_STATISTIC, slot->merge});
  });
}

netcl_rc update_slot(netcl_call* call, netcl_graph* graph, netcl_value slot, netcl_value next) {
  return serve(call, [&] {
    check_value(graph, slot);
    check_value(graph, next);
    graph->tracer->update_slot(slot, next);
  });
}

netcl_rc random_stream(netcl_call* call, netcl_graph* graph, netcl_value* state, int64_t* stream) {
  return serve(call, [&] { std::tie(*state, *stream) = graph->tracer->random_stream(); });
}

netcl_rc layer(netcl_call* call, netcl_graph* graph, int64_t handle, uint32_t index,
               const netcl_value* in, uint32_t n_in, netcl_value* out, uint32_t n_out) {
  return serve(call, [&] {
    give(graph->tracer->nested(handle, index, values(graph, in, n_in)), out, n_out, "nested layer");
  });
}

// A layer's attributes as its entry of a configuration would have them.
nlohmann::ordered_json layer_config(const std::string& type, const netcl_attr* attrs, uint32_t n) {
  nlohmann::ordered_json out{{"type", type}};
  for (uint32_t i = 0; i < n; ++i) {
    const netcl_attr& a = attrs[i];
    nlohmann::ordered_json& value = out[text(a.key)];
    switch (a.kind) {
      case NETCL_ATTR_INT:
        value = a.u.i;
        break;
      case NETCL_ATTR_BOOL:
        value = a.u.i != 0;
        break;
      case NETCL_ATTR_FLOAT:
        value = a.u.f;
        break;
      case NETCL_ATTR_STR:
        value = text(a.u.s);
        break;
      case NETCL_ATTR_INTS:
        value = std::vector<int64_t>(a.u.iv, a.u.iv + a.n);
        break;
      default:
        fail(ErrorCode::kPlugin, "sublayer: attribute ", text(a.key), " has kind ", a.kind,
             "; a part of a layer takes integers, numbers, texts, booleans and lists of integers");
    }
  }
  return out;
}

netcl_rc sublayer(netcl_call* call, netcl_graph* graph, netcl_str name, netcl_str type,
                  const netcl_attr* attrs, uint32_t n_attrs, const netcl_value* in, uint32_t n_in,
                  netcl_value* out, uint32_t n_out) {
  return serve(call, [&] {
    give(graph->tracer->sublayer(text(name), layer_config(text(type), attrs, n_attrs),
                                 values(graph, in, n_in)),
         out, n_out, "layer " + text(type));
  });
}

netcl_rc boot_exchange(netcl_call* call, netcl_boot* boot, const void* mine, uint32_t bytes,
                       void* all) {
  return serve(call, [&] { boot->bootstrap->exchange(mine, bytes, all); });
}

netcl_rc boot_shared(netcl_call* call, netcl_boot* boot, uint64_t bytes, void** memory) {
  return serve(call, [&] { *memory = boot->bootstrap->shared_memory(bytes); });
}

netcl_rc boot_status(netcl_call* call, netcl_boot* boot) {
  const auto reason = boot->bootstrap->status();
  if (!reason) return NETCL_OK;
  call->error = *reason;
  return NETCL_E_PEER;
}

}  // namespace

const netcl_host& host_table(uint32_t abi_minor) {
  static const netcl_host table = {sizeof(netcl_host),
                                   NETCL_ABI_MAJOR,
                                   NETCL_ABI_MINOR,
                                   {"0.1.0", 5},
                                   log,
                                   fail_call,
                                   device_int,
                                   device_text,
                                   device_cl,
                                   plugin_dir,
                                   trace_info,
                                   value_desc,
                                   op,
                                   slot,
                                   update_slot,
                                   random_stream,
                                   layer,
                                   boot_exchange,
                                   boot_shared,
                                   boot_status,
                                   sublayer,
                                   fused};
  if (abi_minor == NETCL_ABI_MINOR) return table;
  // Never destroyed: plugins keep the table until the process ends.
  static std::mutex mutex;
  static auto& earlier = *new std::map<uint32_t, netcl_host>;
  const std::lock_guard<std::mutex> lock(mutex);
  netcl_host& out = earlier.emplace(abi_minor, table).first->second;
  out.abi_minor = abi_minor;
  return out;
}

}  // namespace netcl
