#include "core/cl/recipe.h"

#include <algorithm>
#include <cstddef>

namespace netcl {

namespace {

std::string text(netcl_str s) { return std::string(s.ptr, s.len); }

RecipeArg copy_arg(const netcl_arg& arg) {
  RecipeArg out;
  out.kind = arg.kind;
  out.index = arg.index;
  switch (arg.kind) {
    case NETCL_ARG_F32:
      out.f = arg.u.f;
      break;
    case NETCL_ARG_I32X8:
      std::copy(arg.u.v8, arg.u.v8 + 8, out.v8.begin());
      break;
    case NETCL_ARG_LOCAL:
      out.i = static_cast<int64_t>(arg.u.bytes);
      break;
    default:
      out.i = arg.u.i;
  }
  return out;
}

RecipeLaunch copy_launch(const netcl_launch& launch) {
  RecipeLaunch out;
  out.entry = text(launch.entry);
  out.options = text(launch.options);
  for (uint32_t i = 0; i < launch.n_sources; ++i) {
    out.source +=
        "#line 1 \"" + text(launch.sources[i].name) + "\"\n" + text(launch.sources[i].text) + "\n";
  }
  for (uint32_t i = 0; i < launch.n_args; ++i) out.args.push_back(copy_arg(launch.args[i]));
  out.dims = launch.dims;
  std::copy(launch.global, launch.global + 3, out.global.begin());
  std::copy(launch.local, launch.local + 3, out.local.begin());
  return out;
}

void check_arg(const RecipeArg& arg, size_t position, size_t n_in, size_t n_out, size_t n_scratch,
               const DeviceInfo& device, const std::string& where) {
  const auto check_index = [&](size_t limit, const char* what) {
    NETCL_CHECK(arg.index < limit, ErrorCode::kPlugin, where, ": argument ", position, " names ",
                what, " ", arg.index, " of ", limit);
  };
  switch (arg.kind) {
    case NETCL_ARG_INPUT:
      return check_index(n_in, "input");
    case NETCL_ARG_OUTPUT:
      return check_index(n_out, "output");
    case NETCL_ARG_SCRATCH:
      return check_index(n_scratch, "scratch buffer");
    case NETCL_ARG_LOCAL:
      NETCL_CHECK(arg.i > 0 && arg.i <= device.local_mem_bytes, ErrorCode::kPlugin, where,
                  ": argument ", position, " asks for ", arg.i,
                  " bytes of local memory; the device has ", device.local_mem_bytes);
      return;
    case NETCL_ARG_I32:
      NETCL_CHECK(arg.i >= INT32_MIN && arg.i <= INT32_MAX, ErrorCode::kPlugin, where,
                  ": argument ", position, " is ", arg.i, ", which is no 32-bit integer");
      return;
    case NETCL_ARG_I64:
    case NETCL_ARG_F32:
    case NETCL_ARG_I32X8:
      return;
    default:
      fail(ErrorCode::kPlugin, where, ": argument ", position, " has unknown kind ", arg.kind);
  }
}

void check_launch(const RecipeLaunch& launch, const DeviceInfo& device, const std::string& where) {
  NETCL_CHECK(launch.dims >= 1 && launch.dims <= 3, ErrorCode::kPlugin, where, ": ", launch.dims,
              " dimensions; expected 1 to 3");
  if (launch.local[0] == 0) return;
  uint64_t group = 1;
  for (uint32_t d = 0; d < launch.dims; ++d) {
    NETCL_CHECK(launch.local[d] > 0 && launch.global[d] % launch.local[d] == 0, ErrorCode::kPlugin,
                where, ": global size ", launch.global[d], " in dimension ", d,
                " is no multiple of local size ", launch.local[d]);
    group *= launch.local[d];
  }
  NETCL_CHECK(group <= static_cast<uint64_t>(device.max_work_group), ErrorCode::kPlugin, where,
              ": work-groups of ", group, " items; the device allows ", device.max_work_group);
}

}  // namespace

bool RecipeLaunch::empty() const {
  return std::any_of(global.begin(), global.begin() + dims, [](uint64_t g) { return g == 0; });
}

Recipe copy_recipe(const netcl_recipe& recipe, const std::string& plugin, size_t n_in, size_t n_out,
                   const DeviceInfo& device) {
  constexpr size_t kFirstSize = offsetof(netcl_recipe, native);  // in boundary 0.1
  NETCL_CHECK(recipe.size >= kFirstSize, ErrorCode::kPlugin, "plugin ", plugin, ": a recipe of ",
              recipe.size, " bytes; expected at least ", kFirstSize);
  Recipe out;
  out.plugin = plugin;
  out.n_in = n_in;
  out.n_out = n_out;
  out.variant = text(recipe.variant);
  out.scratch_bytes.assign(recipe.scratch_bytes, recipe.scratch_bytes + recipe.n_scratch);
  for (uint32_t i = 0; i < recipe.n_launches; ++i) {
    RecipeLaunch launch = copy_launch(recipe.launches[i]);
    const std::string where =
        str_cat("plugin ", plugin, ", variant ", out.variant, ", kernel ", launch.entry);
    check_launch(launch, device, where);
    for (size_t a = 0; a < launch.args.size(); ++a) {
      check_arg(launch.args[a], a, n_in, n_out, out.scratch_bytes.size(), device, where);
    }
    if (!launch.empty()) out.launches.push_back(std::move(launch));
  }
  return out;
}

namespace {

// A program that cannot be built is the plugin's fault.
cl::Program built(Device& device, const RecipeLaunch& launch, const std::string& where) {
  try {
    return device.programs().get(launch.source, launch.options);
  } catch (const Error& e) {
    fail(ErrorCode::kPlugin, where, ": ", e.message());
  }
}

}  // namespace

Executable::Executable(Device& device, const Recipe& recipe)
    : recipe_(std::make_shared<Recipe>(recipe)) {
  for (const RecipeLaunch& launch : recipe_->launches) {
    const std::string where = str_cat("kernel ", launch.entry, " of plugin ", recipe_->plugin,
                                      ", variant ", recipe_->variant);
    const cl::Program program = built(device, launch, where);
    Bound bound{with_cl_errors(where, [&] { return cl::Kernel(program, launch.entry.c_str()); }),
                &launch,
                {},
                {},
                {}};
    const auto n_args = bound.kernel.getInfo<CL_KERNEL_NUM_ARGS>();
    NETCL_CHECK(n_args == launch.args.size(), ErrorCode::kPlugin, where, ": the recipe gives ",
                launch.args.size(), " arguments, the kernel takes ", n_args);
    std::copy(launch.global.begin(), launch.global.end(), bound.global.begin());
    std::copy(launch.local.begin(), launch.local.end(), bound.local.begin());
    with_cl_errors("arguments of " + where, [&] {
      for (cl_uint i = 0; i < n_args; ++i) {
        const RecipeArg& arg = launch.args[i];
        switch (arg.kind) {
          case NETCL_ARG_INPUT:
          case NETCL_ARG_OUTPUT:
          case NETCL_ARG_SCRATCH:
            bound.buffers.push_back({i, arg.kind, arg.index});
            break;
          case NETCL_ARG_LOCAL:
            bound.kernel.setArg(i, static_cast<size_t>(arg.i), nullptr);
            break;
          case NETCL_ARG_I32:
            bound.kernel.setArg(i, static_cast<cl_int>(arg.i));
            break;
          case NETCL_ARG_I64:
            bound.kernel.setArg(i, static_cast<cl_long>(arg.i));
            break;
          case NETCL_ARG_F32:
            bound.kernel.setArg(i, static_cast<cl_float>(arg.f));
            break;
          default:
            bound.kernel.setArg(i, sizeof(arg.v8), arg.v8.data());
        }
      }
    });
    launches_.push_back(std::move(bound));
  }
}

void Executable::bind(const cl_mem* in, const cl_mem* out, const cl_mem* scratch) {
  if (recipe_->native != nullptr) {
    native_in_.assign(in, in + recipe_->n_in);
    native_out_.assign(out, out + recipe_->n_out);
    native_scratch_.assign(scratch, scratch + recipe_->scratch_bytes.size());
  }
  for (Bound& bound : launches_) {
    for (const BufferArg& arg : bound.buffers) {
      const cl_mem* from = arg.kind == NETCL_ARG_INPUT    ? in
                           : arg.kind == NETCL_ARG_OUTPUT ? out
                                                          : scratch;
      const cl_int rc =
          ::clSetKernelArg(bound.kernel(), arg.position, sizeof(cl_mem), from + arg.index);
      NETCL_CHECK(rc == CL_SUCCESS, ErrorCode::kDevice, "argument ", arg.position, " of kernel ",
                  bound.launch->entry, " of plugin ", recipe_->plugin, ": ", cl_error_name(rc));
    }
  }
}

void Executable::bind(const std::vector<cl::Buffer>& in, const std::vector<cl::Buffer>& out,
                      const std::vector<cl::Buffer>& scratch) {
  const auto handles = [](const std::vector<cl::Buffer>& buffers) {
    std::vector<cl_mem> out_handles;
    for (const cl::Buffer& buffer : buffers) out_handles.push_back(buffer());
    return out_handles;
  };
  bind(handles(in).data(), handles(out).data(), handles(scratch).data());
  buffers_.clear();
  for (const auto* list : {&in, &out, &scratch})
    buffers_.insert(buffers_.end(), list->begin(), list->end());
}

void Executable::launch(const cl::CommandQueue& queue, const Bound& bound, cl_event* event) const {
  const cl_int rc = ::clEnqueueNDRangeKernel(
      queue(), bound.kernel(), bound.launch->dims, nullptr, bound.global.data(),
      bound.local[0] == 0 ? nullptr : bound.local.data(), 0, nullptr, event);
  NETCL_CHECK(rc == CL_SUCCESS, ErrorCode::kDevice, "launching kernel ", bound.launch->entry,
              " of plugin ", recipe_->plugin, " (variant ", recipe_->variant, ") failed with ",
              cl_error_name(rc));
}

// `event`, unless null, becomes that of the last command.
void Executable::enqueue_native(const cl::CommandQueue& queue, cl::Event* event) const {
  cl_event last = nullptr;
  recipe_->native->enqueue(queue(), native_in_.data(), native_out_.data(), native_scratch_.data(),
                           event == nullptr ? nullptr : &last);
  if (event == nullptr) return;
  if (last != nullptr) {
    *event = cl::Event(last);
  } else {
    with_cl_errors("a marker after native work of plugin " + recipe_->plugin,
                   [&] { queue.enqueueMarkerWithWaitList(nullptr, event); });
  }
}

void Executable::enqueue(const cl::CommandQueue& queue, cl::Event* last) const {
  if (recipe_->native != nullptr) enqueue_native(queue, launches_.empty() ? last : nullptr);
  for (const Bound& bound : launches_) {
    const bool wanted = last != nullptr && &bound == &launches_.back();
    cl_event event = nullptr;
    launch(queue, bound, wanted ? &event : nullptr);
    if (wanted) *last = cl::Event(event);
  }
}

void Executable::enqueue(const cl::CommandQueue& queue, Trace& trace) const {
  if (recipe_->native != nullptr) {
    cl::Event event;
    enqueue_native(queue, &event);
    trace.command(recipe_->plugin + "/" + recipe_->variant, "kernel", event);
  }
  for (const Bound& bound : launches_) {
    cl_event event = nullptr;
    launch(queue, bound, &event);
    trace.command(bound.launch->entry, "kernel", cl::Event(event));
  }
}

}  // namespace netcl
