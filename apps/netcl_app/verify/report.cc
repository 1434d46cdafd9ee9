#include "apps/netcl_app/verify/report.h"

#include <algorithm>

#include "core/base/error.h"
#include "core/base/text.h"

namespace netcl::app::verify {

namespace {

constexpr size_t kShown = 3;  // findings of one check that are printed in full

}  // namespace

void Report::failed(const std::string& check, const std::string& detail) {
  Account& account = accounts_[check];
  ++account.n_failures;
  std::vector<std::string>& shown = account.failures;
  if (shown.size() < kShown && std::find(shown.begin(), shown.end(), detail) == shown.end())
    shown.push_back(detail);
}

void Report::ran(const std::string& check, size_t n) { accounts_[check].ran += n; }

void Report::note(const std::string& check, const std::string& text) {
  std::string& note = accounts_[check].note;
  note += (note.empty() ? "" : "; ") + text;
}

bool Report::has_failed(const std::string& check) const {
  const auto found = accounts_.find(check);
  return found != accounts_.end() && found->second.n_failures > 0;
}

CheckRow Report::row(const std::string& name, const std::string& counted, const Account& account) {
  if (account.n_failures == 0) {
    std::string detail = counted.empty() ? "" : str_cat(account.ran, " ", counted);
    if (!account.note.empty()) detail += (detail.empty() ? "" : "; ") + account.note;
    return {name, true, detail};
  }
  std::string detail = join(account.failures, "\n");
  if (account.n_failures > account.failures.size())
    detail += str_cat("\nand ", account.n_failures - account.failures.size(), " more");
  return {name, false, detail};
}

std::vector<CheckRow> Report::rows(const Plan& plan) const {
  std::vector<CheckRow> out;
  std::map<std::string, Account> left = accounts_;
  for (const CheckDoc& check : plan.checks) {
    const auto found = left.find(check.name);
    if (found == left.end()) continue;
    if (found->second.ran > 0 || found->second.n_failures > 0)
      out.push_back(row(check.name, check.counted, found->second));
    left.erase(found);
  }
  for (const auto& [name, account] : left)
    if (account.n_failures > 0) out.push_back(row(name, "", account));
  return out;
}

std::vector<std::string> Report::not_run(const Plan& plan) const {
  std::vector<std::string> out;
  for (const CheckDoc& check : plan.checks) {
    if (check.optional) continue;
    const auto found = accounts_.find(check.name);
    if (found == accounts_.end() || (found->second.ran == 0 && found->second.n_failures == 0))
      out.push_back(check.name);
  }
  return out;
}

}  // namespace netcl::app::verify
