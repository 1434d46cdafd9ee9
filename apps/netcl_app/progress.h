// What a person sees while a run trains: a bar on a terminal, plain lines elsewhere, on stderr.
#ifndef NETCL_APPS_NETCL_APP_PROGRESS_H_
#define NETCL_APPS_NETCL_APP_PROGRESS_H_

#include <cstdint>
#include <string>

#include "core/base/json_doc.h"

namespace netcl::app {

class Progress {
 public:
  // `quiet`: nothing is shown.
  Progress(bool quiet, int64_t epochs, int64_t steps_per_epoch, int64_t samples_per_epoch);

  void line(const std::string& text);  // a line of its own
  void step(const Json& message);      // redraws the bar
  void epoch(const Json& message);     // a line with the epoch's results
  void finish();                       // removes the bar

 private:
  void clear_bar();

  const bool quiet_, terminal_;
  const int64_t epochs_, steps_per_epoch_, samples_per_epoch_;
  double begin_;
  int64_t first_step_ = -1;
  bool bar_shown_ = false;
};

}  // namespace netcl::app

#endif  // NETCL_APPS_NETCL_APP_PROGRESS_H_
