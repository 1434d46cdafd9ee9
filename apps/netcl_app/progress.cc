#include "apps/netcl_app/progress.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <iostream>

#include "core/base/clock.h"

namespace netcl::app {

namespace {

constexpr int kBarWidth = 24;

template <typename... Args>
std::string format(const char* pattern, Args... args) {
  std::array<char, 256> out{};
  std::snprintf(out.data(), out.size(), pattern, args...);
  return out.data();
}

std::string seconds_text(double seconds) {
  const auto s = static_cast<long>(seconds + 0.5);
  return s < 60     ? format("%lds", s)
         : s < 3600 ? format("%ldm%02lds", s / 60, s % 60)
                    : format("%ldh%02ldm", s / 3600, s / 60 % 60);
}

}  // namespace

Progress::Progress(bool quiet, int64_t epochs, int64_t steps_per_epoch, int64_t samples_per_epoch)
    : quiet_(quiet),
      terminal_(::isatty(STDERR_FILENO) == 1),
      epochs_(epochs),
      steps_per_epoch_(steps_per_epoch),
      samples_per_epoch_(samples_per_epoch),
      begin_(now_seconds()) {}

void Progress::clear_bar() {
  if (bar_shown_) std::cerr << "\r\x1b[K";
  bar_shown_ = false;
}

void Progress::line(const std::string& text) {
  if (quiet_) return;
  clear_bar();
  std::cerr << text << std::endl;
}

void Progress::step(const Json& message) {
  if (quiet_ || !terminal_) return;
  const auto step = message.at("step").get<int64_t>();
  if (first_step_ < 0) {
    first_step_ = step;
    begin_ = now_seconds();
  }
  const int64_t total = epochs_ * steps_per_epoch_;
  const double elapsed = now_seconds() - begin_;
  const double steps_per_second =
      elapsed > 0 ? static_cast<double>(step - first_step_) / elapsed : 0;
  const double samples =
      static_cast<double>(samples_per_epoch_) / static_cast<double>(steps_per_epoch_);
  const auto filled = static_cast<int>(step * kBarWidth / std::max<int64_t>(total, 1));
  std::string bar = std::string(static_cast<size_t>(std::min(filled, kBarWidth)), '#');
  bar.resize(kBarWidth, '.');
  std::string text =
      format("epoch %ld/%ld [%s] step %ld/%ld  loss %.4f", message.at("epoch").get<long>() + 1,
             static_cast<long>(epochs_), bar.c_str(), static_cast<long>(step),
             static_cast<long>(total), message.at("loss").get<double>());
  if (steps_per_second > 0) {
    text += format("  %.0f samples/s  %s left", steps_per_second * samples,
                   seconds_text(static_cast<double>(total - step) / steps_per_second).c_str());
  }
  std::cerr << "\r\x1b[K" << text << std::flush;
  bar_shown_ = true;
}

void Progress::epoch(const Json& message) {
  const Json& train = message.at("train");
  std::string text =
      format("epoch %ld/%ld  step %ld  train loss %.4f", message.at("epoch").get<long>() + 1,
             static_cast<long>(epochs_), message.at("step").get<long>(),
             train.at("loss").is_number() ? train.at("loss").get<double>() : 0.0);
  if (message.contains("test")) {
    const Json& loss = message.at("test").at("loss");  // null: no number
    text += loss.is_number() ? format("  test loss %.4f", loss.get<double>())
                             : std::string("  test loss is no number");
    if (message.at("test").contains("accuracy"))
      text += format("  test accuracy %.4f", message.at("test").at("accuracy").get<double>());
  }
  const double seconds = message.at("seconds").get<double>();
  if (seconds > 0)
    text += format("  %.0f samples/s", message.at("samples").get<double>() / seconds);
  line(text);
}

void Progress::finish() {
  if (!quiet_) clear_bar();
}

}  // namespace netcl::app
