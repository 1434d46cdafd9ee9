// What `plugins verify` found: findings of checks by name, and the rows made of them.
// Threads: one.
#ifndef NETCL_APPS_NETCL_APP_VERIFY_REPORT_H_
#define NETCL_APPS_NETCL_APP_VERIFY_REPORT_H_

#include <cstddef>
#include <map>
#include <string>
#include <vector>

#include "apps/netcl_app/verify/plan.h"

namespace netcl::app::verify {

// A check's result, as printed.
struct CheckRow {
  std::string name;
  bool passed = false;
  std::string detail;  // what is wrong, or what was tried
};

class Report {
 public:
  // Something is wrong.
  void failed(const std::string& check, const std::string& detail);
  // `n` more things were tried, and nothing said against them.
  void ran(const std::string& check, size_t n = 1);
  // A remark for the row of a check that passes.
  void note(const std::string& check, const std::string& text);

  bool has_failed(const std::string& check) const;

  // A row for every check that was tried or has failed, in the plan's order; checks that the plan
  // does not know come last.
  std::vector<CheckRow> rows(const Plan& plan) const;
  // The plan's checks for which nothing was tried.
  std::vector<std::string> not_run(const Plan& plan) const;

 private:
  struct Account {
    std::vector<std::string> failures;  // the first few
    size_t n_failures = 0, ran = 0;
    std::string note;
  };
  static CheckRow row(const std::string& name, const std::string& counted, const Account& account);

  std::map<std::string, Account> accounts_;
};

}  // namespace netcl::app::verify

#endif  // NETCL_APPS_NETCL_APP_VERIFY_REPORT_H_
