#include "apps/netcl_app/verify/exercise.h"

#include <algorithm>

#include "apps/netcl_app/verify/rank.h"
#include "core/base/error.h"
#include "core/ops/op.h"
#include "core/runtime/kernel_set.h"
#include "core/runtime/layer_set.h"
#include "core/verify/layer_example.h"

namespace netcl::app::verify {

namespace {

constexpr size_t kOps = 3;  // of which a plan is asked

// The library stays loaded, and its objects with it.
LoadedPlugin& opened(const Manifest& manifest, const netcl_host& host) {
  return *new LoadedPlugin(manifest, Logger(), host);
}

// The first of the op's cases that the set takes, since it may leave small ones to others; the first
// of all if it takes none, or breaks: the exercise shows it.
const OpCase& served_case(ChildContext& context, const KernelSet& set, const OpRow& row) {
  for (const OpCase& c : row.cases) {
    const Attrs attrs = complete_attrs(row, c.attrs);
    const std::vector<TensorDesc> results = row.infer({row, c.in, attrs});
    std::string reason;
    try {
      if (set.plan(context.device(), {row, c.in, results, attrs}, "", &reason) != nullptr) return c;
    } catch (const Error&) {
      break;
    }
  }
  return row.cases.front();
}

void add_plans(ChildContext& context, std::vector<Exercise>& out) {
  const KernelSet usual(context.plugin());
  size_t n = 0;
  for (const OpRow& row : op_table()) {
    const auto& provides = context.manifest().provides;
    const bool offered = std::any_of(provides.begin(), provides.end(), [&](const Provision& p) {
      return p.op == row.name || (!p.family.empty() && p.family == row.family);
    });
    if (!offered || row.view || row.collective || row.cases.empty()) continue;
    const OpCase& c = served_case(context, usual, row);
    out.push_back({"planning " + row.name, [&context, &row, &c](const netcl_host& host) {
                     const Attrs attrs = complete_attrs(row, c.attrs);
                     const std::vector<TensorDesc> results = row.infer({row, c.in, attrs});
                     std::string reason;
                     KernelSet(opened(context.manifest(), host))
                         .plan(context.device(), {row, c.in, results, attrs}, "", &reason);
                     NETCL_CHECK(reason.empty(), ErrorCode::kPlugin, reason);
                   }});
    if (++n == kOps) return;
  }
}

void add_traces(ChildContext& context, std::vector<Exercise>& out) {
  LayerSet usual(context.plugins());
  for (const LayerType* type : usual.types_of(context.manifest().id)) {
    LayerExample example;
    try {
      std::vector<LayerExample> given = given_examples(context.job().directory, type->name());
      example = given.empty() ? find_examples(*type, usual).front() : given.front();
    } catch (const Error&) {
      continue;  // the layer's own checks say so
    }
    out.push_back({"tracing layer " + type->name(), [&context, example](const netcl_host& host) {
                     PluginOptions options;
                     options.paths = {context.job().directory};
                     options.host = &host;
                     PluginHost plugins(options, {}, Logger());
                     LayerSet layers(plugins);
                     for (const bool training : {true, false})
                       trace_example(example, layers, training);
                   }});
  }
}

}  // namespace

std::vector<Exercise> exercises(ChildContext& context) {
  const Manifest& manifest = context.manifest();
  std::vector<Exercise> out = {
      {"opening it", [&](const netcl_host& host) { opened(manifest, host); }}};
  if (manifest.has_kind("kernels") && context.job().device) add_plans(context, out);
  if (manifest.has_kind("layer")) add_traces(context, out);
  if (manifest.has_kind("transport") && context.job().device) {
    out.push_back({"a group of one rank", [&](const netcl_host& host) {
                     run_lone_rank(opened(manifest, host), context.device());
                   }});
  }
  return out;
}

}  // namespace netcl::app::verify
