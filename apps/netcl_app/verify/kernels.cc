// The checks of a kernel set: every variant that it offers of an op, in every case of the op's row,
// on the device, against the double-precision reference.
#include <algorithm>
#include <atomic>
#include <map>
#include <numeric>
#include <optional>
#include <set>
#include <thread>

#include "apps/netcl_app/verify/child.h"
#include "core/base/error.h"
#include "core/base/text.h"
#include "core/ops/case_inputs.h"
#include "core/runtime/kernel_choice.h"
#include "core/runtime/kernel_set.h"
#include "core/verify/op_check.h"

namespace netcl::app::verify {

namespace {

constexpr size_t kUsualGroup = 256;
constexpr uint64_t kSeed = 20240611;
constexpr size_t kKnobCases = 1;  // cases in which a variant's knobs are turned
constexpr int kAskers = 4;        // threads that plan at a time
constexpr const char* kNoVariant = "no_such_variant";

// A recipe in full: equal texts are equal recipes.
std::string text_of(const Recipe& recipe) {
  std::string out = recipe.variant + (recipe.native != nullptr ? "|native" : "");
  for (const RecipeLaunch& l : recipe.launches) {
    out += str_cat("|", l.entry, "|", l.options, "|", l.source, "|", l.dims);
    for (size_t d = 0; d < 3; ++d) out += str_cat(",", l.global[d], "/", l.local[d]);
    for (const RecipeArg& a : l.args) {
      out += str_cat(";", a.kind, ":", a.index, ":", a.i, ":", a.f);
      for (const int32_t v : a.v8) out += str_cat(",", v);
    }
  }
  for (const uint64_t bytes : recipe.scratch_bytes) out += str_cat("|", bytes);
  return out;
}

const char* check_of(OpFinding::Kind kind) {
  if (kind == OpFinding::Kind::kResult) return check::kResults;
  return kind == OpFinding::Kind::kOutOfBounds ? check::kBounds : check::kInputs;
}

// A case of an op without its data.
struct Question {
  Question(const OpRow& op_row, const OpCase& c)
      : row(op_row),
        in(c.in),
        attrs(complete_attrs(op_row, c.attrs)),
        out(op_row.infer({op_row, in, attrs})) {}
  KernelQuestion ask() const { return {row, in, out, attrs}; }
  size_t num_elements() const {
    size_t n = 0;
    for (const auto* list : {&in, &out})
      for (const TensorDesc& d : *list) n += static_cast<size_t>(d.shape.num_elements());
    return n;
  }
  // "softmax(f32[3,5]) axis=1"
  std::string text() const {
    std::vector<std::string> descs;
    for (const TensorDesc& d : in) descs.push_back(d.str());
    const std::string settings = attrs.str();
    return row.name + "(" + join(descs, ", ") + ")" + (settings.empty() ? "" : " " + settings);
  }

  const OpRow& row;
  std::vector<TensorDesc> in;
  Attrs attrs;
  std::vector<TensorDesc> out;
};

// One op of one kernel set.
class OpTrial {
 public:
  OpTrial(ChildContext& context, const OpRow& row)
      : tell_(context.tell()),
        quick_(context.job().quick),
        manifest_(context.manifest()),
        device_(context.device()),
        set_(context.plugin()),
        queue_(Queue::create(device_)),
        row_(row) {}

  void run() {
    std::vector<std::pair<OpCase, uint64_t>> cases;  // with the seed
    for (const DType dtype : {DType::kF32, DType::kF16, DType::kBF16}) {
      const std::vector<OpCase> typed = typed_cases(row_, dtype);
      for (size_t n = 0; n < typed.size(); ++n) cases.emplace_back(typed[n], kSeed + n);
    }
    if (quick_) telling_first(cases);
    size_t offered = 0;
    for (const auto& [c, seed] : cases) {
      const Question question(row_, c);
      if (!is_offered(question)) continue;
      ++offered;
      tell_.guard([&, &one = c, &s = seed] { run_case(question, one, s); });
    }
    if (offered == 0)
      tell_.failed(check::kOffers, row_.name +
                                       ": no case of it has the types and devices of the "
                                       "manifest");
    else if (served_ == 0)
      tell_.failed(check::kOffers,
                   row_.name + ": every case is declined; the first because " + first_decline_);
    else
      tell_.ran(check::kOffers);
  }

 private:
  // The smallest with more elements than a work-group usually takes, then those below, empty ones
  // last: they say little.
  void telling_first(std::vector<std::pair<OpCase, uint64_t>>& cases) const {
    std::vector<size_t> sizes(cases.size()), order(cases.size());
    for (size_t i = 0; i < cases.size(); ++i) {
      const size_t n = Question(row_, cases[i].first).num_elements();
      sizes[i] = n > kUsualGroup ? n : SIZE_MAX - n;
    }
    std::iota(order.begin(), order.end(), size_t{0});
    std::stable_sort(order.begin(), order.end(),
                     [&](size_t a, size_t b) { return sizes[a] < sizes[b]; });
    std::vector<std::pair<OpCase, uint64_t>> sorted;
    for (const size_t i : order) sorted.push_back(cases[i]);
    cases = std::move(sorted);
  }

  bool is_offered(const Question& question) const {
    return std::any_of(manifest_.provides.begin(), manifest_.provides.end(),
                       [&](const Provision& p) {
                         return offers(p, question.ask()) && !refuses_device(p, device_.info());
                       });
  }

  void run_case(const Question& question, const OpCase& op_case, uint64_t seed) {
    tell_.at(check::kPlans, "planning " + question.text());
    const std::vector<std::string> variants = set_.variants(device_, question.ask());
    check_own_choice(question, variants);
    if (variants.empty()) return;
    if (served_++ == 0) check_unknown_variant(question);
    std::optional<OpCheck> judge;  // the reference takes its time
    for (const std::string& id : variants) {
      const std::string type = dtype_name(question.in.empty() ? DType::kF32 : question.in[0].dtype);
      size_t& runs = runs_[quick_ ? id : id + type];
      if (quick_ && runs > 0) continue;
      const auto recipe = plan(question, id);
      if (recipe == nullptr) continue;
      if (!judge) judge.emplace(row_, op_case, seed);
      run_recipe(*judge, question, *recipe);
      if (++runs <= kKnobCases && !quick_) turn_knobs(*judge, question, id);
    }
  }

  // What the set does where nobody names a variant.
  void check_own_choice(const Question& question, const std::vector<std::string>& variants) {
    std::string reason;
    const auto own = set_.plan(device_, question.ask(), "", &reason);
    tell_.ran(check::kPlans);
    if (own == nullptr && first_decline_.empty())
      first_decline_ = reason.empty() ? "(no reason is given)" : reason;
    if (own == nullptr && reason.empty())
      tell_.failed(check::kPlans, question.text() + ": declined without a reason");
    if (variants.empty() != (own == nullptr))
      tell_.failed(check::kPlans, str_cat(question.text(), ": it lists ", variants.size(),
                                          " variants, and its own choice is ",
                                          own == nullptr ? "to decline: " + reason : own->variant));
    if (own == nullptr || variants.empty()) return;
    const std::string id = own->variant.substr(0, own->variant.find('('));
    if (std::find(variants.begin(), variants.end(), id) == variants.end())
      tell_.failed(check::kPlans, question.text() + ": its own choice is the variant " + id +
                                      ", which it does not list");
  }

  void check_unknown_variant(const Question& question) {
    tell_.at(check::kUnknownVariant, "planning a variant of " + row_.name + " that is none");
    std::string reason;
    if (set_.plan(device_, question.ask(), kNoVariant, &reason) != nullptr)
      tell_.failed(check::kUnknownVariant, str_cat(row_.name, ": it plans a variant \"", kNoVariant,
                                                   "\"; decline what you do not know"));
    tell_.ran(check::kUnknownVariant);
  }

  // Plans a variant, twice, and the first time also from several threads at once.
  std::shared_ptr<const Recipe> plan(const Question& question, const std::string& variant) {
    const std::string what = question.text() + ", variant " + variant;
    tell_.at(check::kPlans, "planning " + what);
    std::string reason;
    const auto recipe = set_.plan(device_, question.ask(), variant, &reason);
    if (recipe == nullptr) {
      tell_.failed(check::kPlans, what + ": it lists the variant, and then declines it: " + reason);
      return nullptr;
    }
    const std::string text = text_of(*recipe);
    std::atomic<int> others{0};
    const auto ask = [&] {
      std::string ignored;
      const auto again = set_.plan(device_, question.ask(), variant, &ignored);
      if (again == nullptr || text_of(*again) != text) ++others;
    };
    ask();
    if (planned_.insert(variant).second) {
      std::vector<std::thread> askers;
      for (int i = 0; i < kAskers; ++i) askers.emplace_back(ask);
      for (std::thread& t : askers) t.join();
    }
    if (others > 0) tell_.failed(check::kPlans, what + ": asked again, the plan is another");
    tell_.ran(check::kPlans, 2);
    return recipe;
  }

  void run_recipe(const OpCheck& judge, const Question& question, const Recipe& recipe) {
    const std::string what = recipe.variant + ", " + question.text();
    tell_.at(check::kResults, "running " + what);
    const OpVerdict verdict = judge.judge(*queue_, recipe);
    for (const OpFinding& finding : verdict.findings)
      tell_.failed(check_of(finding.kind), what + ": " + finding.text);
    for (const char* name : {check::kResults, check::kBounds, check::kInputs}) tell_.ran(name);
  }

  // Each value of each knob once, the others at their defaults. A value may be declined.
  void turn_knobs(const OpCheck& judge, const Question& question, const std::string& variant) {
    tell_.at(check::kPlans, "listing the tunables of " + question.text() + ", variant " + variant);
    for (const Tunable& knob : set_.tunables(device_, question.ask(), variant)) {
      for (const int64_t value : knob.values) {
        if (value == knob.def) continue;
        const std::string name = str_cat(variant, "(", knob.name, "=", value, ")");
        tell_.at(check::kPlans, "planning " + question.text() + ", variant " + name);
        std::string reason;
        const auto recipe = set_.plan(device_, question.ask(), name, &reason);
        tell_.ran(check::kPlans);
        if (recipe != nullptr) run_recipe(judge, question, *recipe);
      }
    }
  }

  Teller& tell_;
  const bool quick_;
  const Manifest& manifest_;
  Device& device_;
  const KernelSet set_;
  const std::shared_ptr<Queue> queue_;
  const OpRow& row_;
  size_t served_ = 0;
  std::string first_decline_;
  std::set<std::string> planned_;
  std::map<std::string, size_t> runs_;  // by variant, and type unless --quick
};

}  // namespace

void run_kernels_unit(ChildContext& context, const std::string& op) {
  context.tell().at(check::kOffers, "looking the op " + op + " up");
  const OpRow& row = find_op(op);  // an unknown one is a finding, with the nearest name
  NETCL_CHECK(!row.view && !row.collective, ErrorCode::kPlugin, "no kernel computes the op ", op,
              "; take it out of \"provides\"");
  OpTrial(context, row).run();
}

}  // namespace netcl::app::verify
