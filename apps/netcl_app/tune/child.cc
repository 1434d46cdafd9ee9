#include "apps/netcl_app/tune/child.h"

#include <algorithm>
#include <iostream>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "apps/netcl_app/open_device.h"
#include "apps/netcl_app/tune/messages.h"
#include "apps/netcl_app/tune/timed_kernels.h"
#include "core/distributed/process.h"
#include "core/runtime/kernel_choice.h"
#include "core/runtime/tuned_record.h"
#include "core/verify/variant_check.h"

namespace netcl::app {

namespace {

// A candidate this much slower than the best is not timed further.
constexpr double kHopeless = 2;
// Of runs that take this long one is enough.
constexpr double kLongMicroseconds = 3e5;

// One question, and the kernels that were tried for it.
class Trial {
 public:
  Trial(Device& device, PluginHost& plugins, const std::vector<std::string>& only,
        const TunedQuestion& question)
      : device_(device),
        plugins_(plugins),
        row_(find_op(question.op)),
        in_(question.in),
        attrs_(complete_attrs(row_, attrs_of(question))),
        out_(row_.infer({row_, in_, attrs_})),
        queue_(Queue::create(device)) {
    KernelChoice usual(plugins, {});
    const auto chosen = usual.recipe(device, this->question());
    default_ = {{"plugin", chosen->plugin}, {"variant", chosen->variant}};
    find_spaces(only);
  }

  Json describe() {
    size_t candidates = 0;
    for (const VariantSpace& space : spaces_) {
      size_t size = 1;
      for (const Tunable& tunable : space.tunables) size *= tunable.values.size() + 1;
      candidates += size;
    }
    Json out = {{"default", default_},
                {"spaces", to_json(spaces_)},
                {"kernel_sets", asked_},
                {"check", ""}};
    if (candidates < 2) return out;  // nothing to choose: it need not be checked
    check_.emplace(queue_, question(), [this](const KernelQuestion& asked, std::string* reason) {
      return KernelChoice(plugins_, {}).least_specific(device_, asked, reason);
    });
    timed_.emplace(queue_, check_->target().in(), check_->target().out_descs());
    out["check"] = check_->text();
    return out;
  }

  Json attempt(const std::string& plugin, const std::string& variant, const Json& against,
               int samples, bool patient) {
    const std::string name = plugin + "/" + variant;
    if (kernels_.count(name) == 0) {
      const KernelSet set(plugins_.load(plugin));
      const auto planner = [&](const KernelQuestion& asked, std::string* reason) {
        return set.plan(device_, asked, variant, reason);
      };
      std::string reason;
      const auto recipe = planner(question(), &reason);
      if (recipe == nullptr) return {{"declined", reason}};
      if (const std::string wrong = check_->wrong(planner); !wrong.empty())
        return {{"wrong", wrong}};
      kernels_[name] = bound(*recipe);
    }
    const Bound& own = kernels_.at(name);
    const Bound* other = nullptr;
    if (!against.is_null())
      other =
          &bound(against.at("plugin").get<std::string>(), against.at("variant").get<std::string>());
    return times(own, other, samples, patient);
  }

 private:
  struct Bound {
    std::unique_ptr<Executable> kernel;
    int runs = 1;
  };

  KernelQuestion question() const { return {row_, in_, out_, attrs_}; }

  void find_spaces(const std::vector<std::string>& only) {
    for (const std::string& id : KernelChoice(plugins_, {}).sets(device_.info(), question())) {
      const bool wanted = only.empty() || std::find(only.begin(), only.end(), id) != only.end();
      if (!wanted) continue;
      asked_.push_back(id);
      const KernelSet set(plugins_.load(id));
      for (const std::string& variant : set.variants(device_, question())) {
        std::string reason;
        if (set.plan(device_, question(), variant, &reason) == nullptr) continue;
        spaces_.push_back({id, variant, set.tunables(device_, question(), variant)});
      }
    }
  }

  Bound bound(const Recipe& recipe) {
    Bound out{timed_->bind(recipe), 1};
    out.runs = timed_->runs_a_sample(*out.kernel);
    return out;
  }

  // One that was tried before this process began.
  const Bound& bound(const std::string& plugin, const std::string& variant) {
    const std::string name = plugin + "/" + variant;
    const auto found = kernels_.find(name);
    if (found != kernels_.end()) return found->second;
    std::string reason;
    const auto recipe =
        KernelSet(plugins_.load(plugin)).plan(device_, question(), variant, &reason);
    NETCL_CHECK(recipe != nullptr, ErrorCode::kPlugin, name, " declines: ", reason);
    return kernels_[name] = bound(*recipe);
  }

  Json times(const Bound& own, const Bound* other, int samples, bool patient) {
    std::vector<double> us, against;
    for (int i = 0; i < samples; ++i) {
      if (other != nullptr) against.push_back(timed_->sample(*other->kernel, other->runs));
      us.push_back(timed_->sample(*own.kernel, own.runs));
      if (us[0] > kLongMicroseconds) break;
      if (!patient && other != nullptr && us.back() > kHopeless * against.back()) break;
    }
    return {{"us", us}, {"against_us", against}};
  }

  Device& device_;
  PluginHost& plugins_;
  const OpRow& row_;
  const std::vector<TensorDesc> in_;
  const Attrs attrs_;
  const std::vector<TensorDesc> out_;
  std::shared_ptr<Queue> queue_;
  Json default_;
  std::vector<std::string> asked_;  // kernel sets that offer the op
  std::vector<VariantSpace> spaces_;
  std::optional<VariantCheck> check_;
  std::optional<TimedKernels> timed_;
  std::map<std::string, Bound> kernels_;
};

class Child {
 public:
  Json answer(const Json& request) {
    const std::string what = request.at("do").get<std::string>();
    if (what == "open") {
      const DeviceInfo info = device_info_from_json(request.at("device"));
      // What is tried and dropped is not worth a place in the cache of built programs.
      device_ = std::make_unique<Device>(find_device(info), "", Logger());
      plugins_ = std::make_unique<PluginHost>(plugin_options_from_json(request.at("plugins")),
                                              std::vector<DeviceInfo>{info}, Logger());
      request.at("only").get_to(only_);
      return {{"ok", true}};
    }
    if (what == "question") {
      trial_.reset();
      trial_.emplace(*device_, *plugins_, only_, question_from_json(request.at("question").dump()));
      return trial_->describe();
    }
    return trial_->attempt(request.at("plugin").get<std::string>(),
                           request.at("variant").get<std::string>(), request.at("against"),
                           request.at("samples").get<int>(), request.value("patient", false));
  }

 private:
  std::unique_ptr<Device> device_;
  std::unique_ptr<PluginHost> plugins_;
  std::vector<std::string> only_;  // kernel sets to search; none: all
  std::optional<Trial> trial_;
};

}  // namespace

int tune_child_main(int parent) {
  try {
    die_with_parent(parent);
    Child child;
    std::string line;
    while (std::getline(std::cin, line)) {
      Json answer;
      try {
        answer = child.answer(Json::parse(line));
      } catch (const std::exception& e) {
        answer = {{"error", e.what()}};
      }
      write_line(TuneFds::kAnswers, answer.dump(-1, ' ', false, Json::error_handler_t::replace));
    }
    return 0;
  } catch (const Error& e) {
    return exit_code(e.code());
  }
}

}  // namespace netcl::app
