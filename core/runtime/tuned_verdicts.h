// Outcomes of checks of tuned variants, kept in a file of the user's, so that each check is made
// once and a kernel that ended its process is not tried again.
//
// The file holds a line an event: a key of 32 hexadecimal digits, then `begun` (in the process that
// wrote it), `tried` with the id of the system's start (in a child of that process), `passed`,
// `open` (as if nothing had been) or `failed` with the reason. The last line of a key counts. Lines
// that are none of this are passed over.
// Threads: one at a time; processes are kept apart by a lock on the file.
#ifndef NETCL_CORE_RUNTIME_TUNED_VERDICTS_H_
#define NETCL_CORE_RUNTIME_TUNED_VERDICTS_H_

#include <filesystem>
#include <functional>
#include <string>
#include <unordered_map>

#include "core/base/log.h"

namespace netcl {

struct TunedVerdict {
  enum class State { kNone, kBegun, kPassed, kFailed };
  State state = State::kNone;
  std::string why;  // of kFailed

  bool passed() const { return state == State::kPassed; }
};

class TunedVerdicts {
 public:
  // `file` empty: nothing is kept.
  TunedVerdicts(std::filesystem::path file, Logger log);

  // A key of whatever a verdict depends on.
  static std::string key(const std::string& text);

  // What is known, without a check.
  TunedVerdict of(const std::string& key);
  // What is known, or else the outcome of `check`, which returns what is wrong, or "". One process
  // at a time checks, and the others take its verdict. Where nothing can be written the check is
  // made anyway, with one warning.
  TunedVerdict decide(const std::string& key, const std::function<std::string()>& check);

  // One event, for who checks elsewhere. False if it cannot be kept.
  bool keep(const std::string& key, TunedVerdict::State state, const std::string& why = "");
  // A child of this process tries it, and this process will keep how that ended. Where it cannot,
  // because it was ended itself, nothing is known of the variant: only what took the whole machine
  // down counts as begun.
  bool keep_tried(const std::string& key);

 private:
  void read();
  bool append(std::string line) const;
  TunedVerdict check_now(const std::string& key, const std::function<std::string()>& check);

  const std::filesystem::path file_;
  Logger log_;
  bool read_ = false, warned_ = false;
  std::unordered_map<std::string, TunedVerdict> known_;
};

}  // namespace netcl

#endif  // NETCL_CORE_RUNTIME_TUNED_VERDICTS_H_
