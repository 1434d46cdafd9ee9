// batch_norm (Ioffe, Szegedy 2015) over [B,C,...]: each channel by the mean and the deviation of
// the batch in training, by their running averages in evaluation. With "sync" the batch is that of
// all devices; without it each device has its own, and the running averages are merged.
#include "plugins/layers/norm/batch_norm.h"

#include <string>
#include <vector>

namespace netcl {
namespace norm {

namespace {

using plugin::attr_float;
using plugin::attr_int;
using plugin::Failure;
using plugin::Trace;
using plugin::Value;

void batch_norm(const Trace& t) {
  const Value x = t.input(0);
  const std::vector<int64_t> shape = t.shape(x);
  if (shape.size() < 2 || shape[1] < 1) {
    throw Failure(NETCL_E_ARG, "expected an input [B,C,...] with a fixed number of channels C");
  }
  const std::vector<int64_t> channels = {shape[1]};
  const bool sync = t.attrs().boolean("sync"), affine = t.attrs().boolean("affine");
  const double eps = t.attrs().number("eps");
  const auto constant = [&](double value) {
    return t.op("full", {}, {plugin::attr_dims("shape", channels), attr_float("value", value)});
  };
  const Value weight = affine ? t.parameter("weight", channels, NETCL_INIT_ONES) : constant(1);
  const Value bias = affine ? t.parameter("bias", channels, NETCL_INIT_ZEROS) : constant(0);
  const uint32_t merge = sync ? NETCL_MERGE_NONE : NETCL_MERGE_WEIGHTED_MEAN;
  const Value mean = t.statistic("running_mean", channels, NETCL_INIT_ZEROS, merge);
  const Value var = t.statistic("running_var", channels, NETCL_INIT_ONES, merge);
  if (!t.training()) {
    t.output(0, t.op("batch_norm_infer", {x, mean, var, weight, bias}, {attr_float("eps", eps)}));
    return;
  }
  // Sums are taken around the running mean, which is the same on all devices and near the batch's:
  // nothing cancels (Chan, Golub, LeVeque, Algorithms for computing the sample variance, 1983).
  Value sums = t.op("batch_norm_sums", {x, mean});
  if (sync) sums = t.op("all_reduce", {sums});
  t.output(0, t.op("batch_norm", {x, sums, mean, weight, bias},
                   {attr_float("eps", eps), attr_int("sync", sync ? 1 : 0)}));
  const std::vector<Value> next = t.ops("batch_norm_running", {sums, mean, var},
                                        {attr_float("momentum", t.attrs().number("momentum"))}, 2);
  t.update(mean, next[0]);
  t.update(var, next[1]);
}

}  // namespace

plugin::LayerType batch_norm_type() {
  return {"batch_norm",
          "each channel has mean 0 and deviation 1 over the batch",
          {{"eps", NETCL_ATTR_FLOAT, false, 1e-5, "", 1e-30, 1, "", "added to the variance"},
           {"momentum", NETCL_ATTR_FLOAT, false, 0.1, "", 0, 1, "",
            "part of the batch's value in the next running average"},
           {"affine", NETCL_ATTR_BOOL, false, 1, "", 0, 0, "", "trained weight and bias"},
           {"sync", NETCL_ATTR_BOOL, false, 0, "", 0, 0, "",
            "one batch over all devices instead of one a device"}},
          batch_norm};
}

}  // namespace norm
}  // namespace netcl
