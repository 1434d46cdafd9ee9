#include "core/verify/variant_check.h"

#include "core/base/text.h"
#include "core/runtime/tuned_record.h"
#include "core/verify/sample_cases.h"

namespace netcl {

namespace {

constexpr uint64_t kSeed = 20240229;
// Some tenths of a second of the reference.
constexpr double kMaxReferenceCost = 3e7;

class QuestionCheck : public RecordCheck {
 public:
  std::string wrong(Device& device, const KernelQuestion& question, const Planner& tuned,
                    const Planner& usual) override {
    return VariantCheck(Queue::create(device), question, usual).wrong(tuned);
  }
};

}  // namespace

VariantCheck::VariantCheck(std::shared_ptr<Queue> queue, const KernelQuestion& question,
                           const RecordCheck::Planner& usual)
    : queue_(std::move(queue)) {
  add(question.op, question.in, question.attrs, usual);
  NETCL_CHECK(!checks_.empty(), ErrorCode::kUsage, question.op.name, " with ", question.in.size(),
              " inputs has none that random values can be, so its kernels cannot be checked here");
  if (const auto in = odd_shapes(question.op, question.in, question.attrs))
    add(question.op, *in, question.attrs, usual);
  if (const auto in = edge_shapes(question.op, question.in, question.attrs))
    add(question.op, *in, question.attrs, usual);
}

void VariantCheck::add(const OpRow& row, const std::vector<TensorDesc>& in, const Attrs& attrs,
                       const RecordCheck::Planner& usual) {
  std::optional<OpCase> sample = sample_case(row, in, attrs);
  if (!sample) return;
  const std::vector<TensorDesc> out = row.infer({row, in, attrs});
  const std::string shapes = tuned_question(row.name, in, attrs).shapes();
  std::string beside = "reference: ";
  if (reference_cost(row, in, out) <= kMaxReferenceCost) {
    checks_.emplace_back(row, std::move(*sample), kSeed);
  } else {
    std::string reason;
    const auto right = usual({row, in, out, attrs}, &reason);
    NETCL_CHECK(right != nullptr, ErrorCode::kPlugin, row.name, " ", shapes,
                ": no kernels to compare with: ", reason);
    checks_.emplace_back(row, std::move(*sample), kSeed, *queue_, *right);
    beside = str_cat(right->plugin, "/", right->variant, ": ");
  }
  text_ += (text_.empty() ? "" : "; ") + beside + shapes;
}

std::string VariantCheck::wrong(const RecordCheck::Planner& tuned) const {
  for (const OpCheck& check : checks_) {
    std::string reason;
    const auto recipe = tuned(check.question(), &reason);
    if (recipe == nullptr) {
      if (&check == &checks_.front()) return "it declines: " + reason;
      continue;
    }
    const OpVerdict verdict = check.judge(*queue_, *recipe);
    if (verdict.right()) continue;
    const KernelQuestion question = check.question();
    return tuned_question(question).shapes() + ": " + verdict.text();
  }
  return "";
}

std::shared_ptr<RecordCheck> variant_record_check() { return std::make_shared<QuestionCheck>(); }

}  // namespace netcl
