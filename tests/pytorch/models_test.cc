// Models by name, trained from stored initial parameters on a stored batch: the losses of ten steps
// and of the evaluation after them equal those that PyTorch computed in double precision
// (models.json, made by models.py). The same steps with recomputation give the same bits; in 16
// bits the losses stay near.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstring>

#include "core/distributed/replica.h"
#include "core/nn/safetensors.h"
#include "tests/pytorch/harness.h"

namespace netcl {
namespace testing {
namespace {

const ordered_json& reference() {
  static const ordered_json json = read_reference("models").at("models");
  return json;
}

Optimizer optimizer_of(const ordered_json& json) {
  Optimizer out = Optimizer::of(optimizer_type(json.at("type").get<std::string>()));
  out.lr = json.at("lr").get<double>();
  out.momentum = json.value("momentum", 0.0);
  out.weight_decay = json.value("weight_decay", out.weight_decay);
  return out;
}

struct Outcome {
  std::vector<double> losses;
  double evaluation = 0;
  size_t workspace_bytes = 0;
};

// The stored run of a model; `recompute`: with its activations computed again.
Outcome train(const ordered_json& model, DType precision, bool recompute) {
  DeviceFixture& f = shared_device();
  const Safetensors file = read_safetensors("tests/pytorch/models/" +
                                            model.at("name").get<std::string>() + ".safetensors");
  const NamedTensor &x = *file.find("x"), &labels = *file.find("labels");
  const auto sample = [](const NamedTensor& t) {
    return Shape(std::vector<int64_t>(t.shape.dims().begin() + 1, t.shape.dims().end()));
  };
  const int64_t rows = x.shape[0];
  StepSpec spec;
  spec.input = sample(x);
  spec.input_dtype = x.dtype;
  spec.label_shape = sample(labels);
  ordered_json layer = model.at("layer");
  if (recompute) layer["recompute"] = true;
  spec.layers = ordered_json::array({layer});
  spec.optimizer = optimizer_of(model.at("optimizer"));
  spec.precision = precision;
  LayerSet layers(f.plugins());
  const StepGraphs graphs = build_step_graphs(spec, layers);
  const auto bytes = static_cast<size_t>(graphs.gradients.num_floats()) * sizeof(float);
  const cl::Buffer gradients = f.device().make_buffer(bytes, "gradients");
  Replica replica(graphs, spec.optimizer, f.kernels(), f.queue(), gradients, gradients, rows);
  replica.initialise(1);
  std::vector<float> arena = replica.read_parameters();
  for (const Slot& slot : graphs.slots) {
    const NamedTensor* tensor = file.find(slot.name);
    NETCL_CHECK(tensor != nullptr && tensor->desc() == slot.desc, ErrorCode::kInternal, slot.name,
                " ", slot.desc.str(), " is not in the file");
    std::memcpy(arena.data() + graphs.parameters.find(slot.name).offset, tensor->bytes.data(),
                tensor->bytes.size());
  }
  replica.write_parameters(arena);
  const auto mean = [&](const std::vector<float>& sums, const ArenaLayout& layout) {
    return static_cast<double>(sums[static_cast<size_t>(layout.find(step_names::kLoss).offset)]) /
           static_cast<double>(
               sums[static_cast<size_t>(layout.find(step_names::kDenominator).offset)]);
  };
  Outcome run;
  replica.stage(x.bytes.data(), labels.bytes.data(), rows).wait();
  for (int64_t step = 1; step <= static_cast<int64_t>(model.at("losses").size()); ++step) {
    replica.forward_backward(rows, {1, step, 0});
    std::vector<float> sums(replica.sums_size());
    replica.update(step, spec.optimizer.lr);
    replica.read_sums(sums.data(), true).wait();
    run.losses.push_back(mean(sums, graphs.gradients));
  }
  replica.evaluate(rows);
  std::vector<float> sums(static_cast<size_t>(graphs.eval_sums.num_floats()));
  replica.read_eval_sums(sums.data()).wait();
  run.evaluation = mean(sums, graphs.eval_sums);
  run.workspace_bytes = replica.train_graph().workspace_bytes();
  return run;
}

class ModelsTest : public ::testing::TestWithParam<size_t> {};

TEST_P(ModelsTest, LossesEqualPyTorch) {
  const ordered_json& model = reference().at(GetParam());
  const Outcome run = train(model, DType::kF32, false);
  const std::vector<double> wanted = model.at("losses").get<std::vector<double>>();
  double worst = 0;
  for (size_t i = 0; i < wanted.size(); ++i) {
    worst = std::max(worst, std::fabs(run.losses[i] / wanted[i] - 1));
    EXPECT_NEAR(run.losses[i], wanted[i], 1e-4 * wanted[i]) << "step " << i + 1;
  }
  const double evaluation = model.at("evaluation").get<double>();
  EXPECT_NEAR(run.evaluation, evaluation, 1e-4 * evaluation) << "evaluation";
  worst = std::max(worst, std::fabs(run.evaluation / evaluation - 1));
  std::printf("%s: largest relative difference %.1e\n", model.at("name").get<std::string>().c_str(),
              worst);
}

TEST_P(ModelsTest, RecomputationChangesNoBit) {
  const ordered_json& model = reference().at(GetParam());
  const Outcome plain = train(model, DType::kF32, false), again = train(model, DType::kF32, true);
  EXPECT_EQ(plain.losses, again.losses);
  EXPECT_EQ(plain.evaluation, again.evaluation);
}

TEST_P(ModelsTest, SixteenBitsStayNear) {
  const ordered_json& model = reference().at(GetParam());
  const std::vector<double> wanted = model.at("losses").get<std::vector<double>>();
  if (wanted.size() < 10) GTEST_SKIP() << "chaotic at this size, see models.py";
  for (const DType precision : {DType::kBF16, DType::kF16}) {
    const Outcome run = train(model, precision, false);
    // The first loss only sees the rounding of the forward part; later ones drift, but fall alike.
    EXPECT_NEAR(run.losses[0], wanted[0], 0.02 * wanted[0]) << dtype_name(precision);
    EXPECT_LT(run.losses.back(), run.losses.front()) << dtype_name(precision);
    EXPECT_NEAR(run.losses.back(), wanted.back(), 0.15 * wanted.front()) << dtype_name(precision);
  }
}

INSTANTIATE_TEST_SUITE_P(All, ModelsTest, ::testing::Range(size_t{0}, reference().size()),
                         [](const ::testing::TestParamInfo<size_t>& instance) {
                           return reference().at(instance.param).at("name").get<std::string>();
                         });

}  // namespace
}  // namespace testing
}  // namespace netcl
