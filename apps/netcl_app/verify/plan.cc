#include "apps/netcl_app/verify/plan.h"

#include <algorithm>
#include <set>

#include "core/base/text.h"
#include "core/ops/op.h"

namespace netcl::app::verify {

namespace check {

std::string layer(const std::string& type, const std::string& part) {
  return "layer." + type + "." + part;
}

}  // namespace check

namespace {

// A plugin that works on devices is given one where it is called, too.
void add_boundary(bool on_device, Plan& plan) {
  plan.checks.insert(
      plan.checks.end(),
      {{check::kOpens, "the library loads, opens, and its process ends as it should", ""},
       {check::kTables, "it has the interfaces, the layers and the ops that the manifest names",
        "interfaces"},
       {check::kOpensAgain, "a second instance opens beside the first", ""},
       {check::kCloseTwice, "close() may be called again", ""},
       {check::kSizes, "it bears hosts that are older, newer, smaller and larger than itself",
        "hosts"},
       {check::kHostFails, "it hands on the errors of the host's services", "calls"},
       {check::kExceptions, "no exception leaves it, whatever it is asked", "questions"},
       {check::kQuiet, "it prints nothing", "processes watched"}});
  for (const char* name : {check::kOpens, check::kOpensAgain, check::kCloseTwice, check::kSizes,
                           check::kHostFails, check::kExceptions}) {
    Unit unit{name, "", {name, check::kQuiet}, true, false};
    if (unit.family == check::kOpens) unit.checks.push_back(check::kTables);
    const bool calls = unit.family.rfind("abi.", 0) == 0;
    unit.on_device = calls && on_device;
    plan.units.push_back(unit);
  }
}

// "vendor.op": made by a layer; the table has no row for it.
bool is_fused(const std::string& op) { return op.find('.') != std::string::npos; }

void add_kernels(const Manifest& manifest, Plan& plan) {
  plan.checks.insert(
      plan.checks.end(),
      {{check::kOffers, "every op of the manifest is known, and some case of it is served", "ops"},
       {check::kPlans, "plans are valid, and the same whenever and from wherever they are asked",
        "plans"},
       {check::kUnknownVariant, "a variant that does not exist is declined", "ops"},
       {check::kResults, "results equal the double-precision reference", "runs"},
       {check::kBounds, "nothing is written beyond outputs and scratch", "runs"},
       {check::kInputs, "inputs stay as they were", "runs"}});
  std::set<std::string> ops;
  for (const Provision& p : manifest.provides) {
    if (!p.op.empty() && !is_fused(p.op)) ops.insert(p.op);
    for (const OpRow& row : op_table())
      if (!p.family.empty() && row.family == p.family) ops.insert(row.name);
  }
  if (ops.empty()) {  // its layers' checks try them
    for (CheckDoc& c : plan.checks) c.optional = c.optional || c.name.rfind("kernels.", 0) == 0;
  }
  for (const std::string& op : ops) {
    plan.units.push_back({"kernels",
                          op,
                          {check::kOffers, check::kPlans, check::kUnknownVariant, check::kResults,
                           check::kBounds, check::kInputs},
                          false,
                          true});
  }
}

// Kernels of fused ops are tried with the layers that make these ops.
void add_fused(const Manifest& manifest, Plan& plan) {
  Unit unit{"fused", "", {check::kOffers}, false, true};
  for (const Provision& p : manifest.provides) {
    if (p.layer.empty()) continue;
    const std::vector<CheckDoc> checks = {
        {check::layer(p.layer, "kernels"),
         "its own kernels give what its recorded ops give, in double", "runs", true},
        {check::layer(p.layer, "kernel_gradients"),
         "its own kernels' gradients equal those of its recorded ops", "runs", true}};
    for (const CheckDoc& c : checks) unit.checks.push_back(c.name);
    plan.checks.insert(plan.checks.end(), checks.begin(), checks.end());
  }
  plan.units.push_back(unit);
}

void add_layers(const Manifest& manifest, Plan& plan) {
  for (const Provision& p : manifest.provides) {
    if (p.layer.empty()) continue;
    const std::vector<CheckDoc> checks = {
        {check::layer(p.layer, "shapes"), "every batch size gives the same outputs for a sample",
         "batches"},
        {check::layer(p.layer, "gradients"), "gradients equal finite differences, in double",
         "directions"},
        {check::layer(p.layer, "replay"),
         "tracing again gives the same ops, random numbers and parameters", "traces"},
        {check::layer(p.layer, "attributes"), "odd keys and inputs are served or refused in words",
         "configurations"}};
    Unit unit{"layer", p.layer, {}, false, false};
    for (const CheckDoc& c : checks) unit.checks.push_back(c.name);
    plan.checks.insert(plan.checks.end(), checks.begin(), checks.end());
    plan.units.push_back(unit);
  }
}

void add_groups(Plan& plan) {
  plan.groups = true;
  plan.checks.insert(
      plan.checks.end(),
      {{check::kAccept, "groups of one machine are served, or declined with a reason", "groups"},
       {check::kMatrix, "every collective, type and reduction gives the bits of rank order",
        "collectives"},
       {check::kOrder, "the bits do not depend on which rank comes first", "orders"},
       {check::kMismatch, "ranks that disagree are an error on each", "groups"},
       {check::kPeer, "a rank that dies ends the others' waits", "groups"},
       {check::kStall, "a rank that stops ends the others' waits after the time limit", "groups"},
       {check::kAbort, "abort ends a rank's waits", "groups"}});
}

void keep_only(const std::string& only, Plan& plan) {
  const Plan gates = gates_plan();
  const auto wanted = [&](const std::string& name) {
    return glob_match(only, name) || name == check::kOpens ||
           std::any_of(gates.checks.begin(), gates.checks.end(),
                       [&](const CheckDoc& c) { return c.name == name; });
  };
  std::vector<CheckDoc> checks;
  for (CheckDoc& c : plan.checks)
    if (wanted(c.name)) checks.push_back(std::move(c));
  plan.checks = std::move(checks);
  std::vector<Unit> units;
  for (Unit& unit : plan.units)
    if (std::any_of(unit.checks.begin(), unit.checks.end(), wanted))
      units.push_back(std::move(unit));
  plan.units = std::move(units);
  plan.groups = plan.groups && std::any_of(plan.checks.begin(), plan.checks.end(), [](auto& c) {
                  return c.name.rfind("transport.", 0) == 0;
                });
}

}  // namespace

Plan gates_plan() {
  Plan out;
  out.checks = {{check::kManifest, "plugin.json can be read, and says what it must", ""},
                {check::kFiles, "the files are there, whole, and nobody else's to write", ""},
                {check::kExports, "the library exports netcl_plugin_open_v1 alone", ""}};
  return out;
}

Plan plan_of(const Manifest& manifest, const std::string& only) {
  Plan out = gates_plan();
  const bool kernels = manifest.has_kind("kernels"), transport = manifest.has_kind("transport");
  if (kernels || transport)
    out.checks.push_back({check::kDevice, "there is a device to try it on", ""});
  add_boundary(kernels || transport, out);
  if (kernels) add_kernels(manifest, out);
  if (manifest.has_kind("layer")) add_layers(manifest, out);
  const bool fused = std::any_of(manifest.provides.begin(), manifest.provides.end(),
                                 [](const Provision& p) { return is_fused(p.op); });
  if (kernels && fused) add_fused(manifest, out);
  if (transport) add_groups(out);
  if (!only.empty()) keep_only(only, out);
  return out;
}

}  // namespace netcl::app::verify
