// Twenty steps of every optimiser through the update graph on a device, and fifty values of every
// schedule, against PyTorch's (optimizers.json, made by optimizers.py).
#include <gtest/gtest.h>

#include <cmath>
#include <map>

#include "apps/netcl_app/optim_config.h"
#include "core/graph/compiled_graph.h"
#include "core/nn/update_graph.h"
#include "tests/pytorch/harness.h"

namespace netcl {
namespace testing {
namespace {

// f32 against PyTorch's double, twenty steps: some 1e-6; more where a step is g / sqrt(v - m^2).
constexpr double kTolerance = 1e-4;
constexpr int64_t kSums = 128;  // floats before the gradients, as in training

const Json& reference() {
  static const Json json = read_reference("optimizers");
  return json;
}

ConfigView view_of(const Json& config) {
  return ConfigView(JsonDoc::parse(config.dump(), "optimizers.json"));
}

ArenaLayout layout() {
  ArenaLayout out;
  for (size_t k = 0; k < reference().at("names").size(); ++k) {
    out.add(reference()["names"][k],
            {DType::kF32, Shape(reference()["shapes"][k].get<std::vector<int64_t>>())});
  }
  return out;
}

// The arena with these values of each tensor times `factor`, from element `first` on.
std::vector<float> arena_of(const Json& tensors, double factor, int64_t first) {
  const ArenaLayout where = layout();
  std::vector<float> out(static_cast<size_t>(where.num_floats() + first), 0.0f);
  for (size_t k = 0; k < tensors.size(); ++k) {
    auto at = static_cast<size_t>(where.entries()[k].offset + first);
    for (const Json& x : tensors[k]) out[at++] = static_cast<float>(factor * x.get<double>());
  }
  return out;
}

// An update graph with its memory on the device.
class DeviceUpdate {
 public:
  explicit DeviceUpdate(const Optimizer& optimizer)
      : optimizer_(optimizer), plan_(plan_update(optimizer, layout())) {
    const int64_t floats = layout().num_floats() + kSums;
    write("blocks", plan_.blocks);
    write("slots", plan_.slots);
    write("divisor", std::vector<float>{kDivisor});
    write("parameters", arena_of(reference().at("initial"), 1, 0));
    write("grad_norm", std::vector<float>{0});
    for (const std::string& state : plan_.states) {
      write(state, std::vector<float>(static_cast<size_t>(layout().num_floats()),
                                      static_cast<float>(optimizer.initial_state())));
    }
    write("gradients", std::vector<float>(static_cast<size_t>(floats), 0.0f));
    write("hyper", std::vector<float>(plan_.groups.size() * 16, 0.0f));
    graph_ = std::make_unique<CompiledGraph>(
        update_graph(optimizer, plan_, floats, kSums), shared_device().kernels(),
        shared_device().queue(),
        [this](const std::string& name, const TensorDesc&) { return memory_.at(name)->buffer(); });
  }

  void step(int64_t number, const Json& gradients) {
    write("gradients", arena_of(gradients, kDivisor, kSums));
    std::vector<float> hyper;
    for (const UpdatePlan::Group& group : plan_.groups) {
      const auto row = optimizer_.hyper(number, optimizer_.lr * group.lr_scale, group.weight_decay);
      hyper.insert(hyper.end(), row.begin(), row.end());
    }
    write("hyper", hyper);
    graph_->run(0);
  }

  std::vector<float> parameters() {
    std::vector<float> out(static_cast<size_t>(layout().num_floats()));
    shared_device().queue()->cl().enqueueReadBuffer(memory_.at("parameters")->buffer(), CL_TRUE, 0,
                                                    out.size() * sizeof(float), out.data());
    return out;
  }

 private:
  static constexpr float kDivisor = 4;

  template <typename T>
  void write(const std::string& name, const std::vector<T>& values) {
    Queue& queue = *shared_device().queue();
    const size_t bytes = values.size() * sizeof(T);
    if (memory_.count(name) == 0) memory_[name] = queue.allocate(bytes, name);
    queue.cl().enqueueWriteBuffer(memory_[name]->buffer(), CL_TRUE, 0, bytes, values.data());
  }

  const Optimizer optimizer_;
  const UpdatePlan plan_;
  std::map<std::string, std::shared_ptr<Storage>> memory_;
  std::unique_ptr<CompiledGraph> graph_;
};

TEST(PyTorchOptimizers, TwentyStepsAreTheSame) {
  for (const Json& c : reference().at("optimizers")) {
    SCOPED_TRACE(c.at("config").dump());
    const Optimizer optimizer = app::parse_optimizer(view_of(c.at("config")));
    DeviceUpdate update(optimizer);
    int64_t step = 0;
    for (const Json& gradients : reference().at("gradients")) update.step(++step, gradients);
    const std::vector<float> got = update.parameters();
    const ArenaLayout where = layout();
    for (size_t k = 0; k < where.entries().size(); ++k) {
      std::vector<double> want;
      for (const Json& row : c.at("parameters")[k]) {
        if (row.is_array()) {
          for (const Json& x : row) want.push_back(x);
        } else {
          want.push_back(row);
        }
      }
      double largest = 0;
      for (const double w : want) largest = std::max(largest, std::fabs(w));
      for (size_t i = 0; i < want.size(); ++i) {
        EXPECT_NEAR(static_cast<double>(got[static_cast<size_t>(where.entries()[k].offset) + i]),
                    want[i], kTolerance * largest)
            << where.entries()[k].name << " element " << i;
        const double value = got[static_cast<size_t>(where.entries()[k].offset) + i];
        note_difference(std::fabs(value - want[i]) / largest);
      }
    }
  }
}

TEST(PyTorchSchedules, FiftyRatesAreTheSame) {
  for (const Json& c : reference().at("schedules")) {
    for (const char* unit : {"step", "epoch"}) {
      Json config = c.at("config");
      config["unit"] = unit;
      SCOPED_TRACE(config.dump());
      const Schedule schedule = app::parse_schedule(view_of(config), 1.0).schedule;
      schedule.check();
      const bool by_epoch = schedule.by_epoch;
      const auto total = static_cast<int64_t>(c.at("rates").size());
      for (int64_t t = 0; t < total; ++t) {
        const double want = c["rates"][static_cast<size_t>(t)];
        const double got = by_epoch ? schedule.lr_factor(3 * t + 2, 3 * total, 3)
                                    : schedule.lr_factor(t + 1, total);
        EXPECT_NEAR(got, want, 1e-9) << "time " << t;
      }
    }
  }
}

TEST(PyTorchSchedules, PlateausAreTheSame) {
  for (const Json& c : reference().at("plateaus")) {
    SCOPED_TRACE(c.at("config").dump());
    const Schedule schedule = app::parse_schedule(view_of(c.at("config")), 1.0).schedule;
    Plateau plateau;
    for (size_t e = 0; e < reference().at("losses").size(); ++e) {
      plateau.end_of_epoch(schedule, reference()["losses"][e]);
      EXPECT_NEAR(plateau.factor, c.at("rates")[e].get<double>(), 1e-12) << "epoch " << e;
    }
  }
}

}  // namespace
}  // namespace testing
}  // namespace netcl
