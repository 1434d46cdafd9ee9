#include "core/base/crash_note.h"

#include <fcntl.h>
#include <signal.h>
#include <ucontext.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cstdint>
#include <cstring>
#include <mutex>
#include <set>
#include <utility>

namespace netcl {

namespace {

constexpr std::array<int, 4> kSignals = {SIGSEGV, SIGBUS, SIGILL, SIGABRT};
constexpr std::array<const char*, 4> kNames = {"SIGSEGV", "SIGBUS", "SIGILL", "SIGABRT"};
constexpr int kMostKernels = 3;  // of one name

struct KernelName {
  const std::string entry, words;
  const KernelName* const next;
};

// What a handler can reach: nothing but these.
thread_local const CrashNote* t_note = nullptr;
std::atomic<const KernelName*> g_kernels{nullptr};
std::atomic<bool> g_crashed{false};
bool g_watched = false;
CrashWatch g_watch;
std::array<struct sigaction, kSignals.size()> g_before;

// ---- from here on in a signal handler: no memory is taken, no lock ----

// Text in a buffer of fixed size, as a part of a JSON string.
struct Text {
  char bytes[1024];
  size_t size = 0;

  void add(const char* text) {
    for (; *text != 0 && size + 1 < sizeof(bytes); ++text) {
      const bool plain = static_cast<unsigned char>(*text) >= ' ' && *text != '"' && *text != '\\';
      bytes[size++] = plain ? *text : '\'';
    }
    bytes[size] = 0;
  }
};

void write_text(int fd, const char* text) {
  const ssize_t ignored = ::write(fd, text, std::strlen(text));
  (void)ignored;
}

// "f3a0-" to a number; `at` goes behind the sign that ends it.
uint64_t hexadecimal(const char*& at) {
  uint64_t out = 0;
  for (;; ++at) {
    const char c = *at;
    if (c >= '0' && c <= '9') {
      out = out * 16 + static_cast<uint64_t>(c - '0');
    } else if (c >= 'a' && c <= 'f') {
      out = out * 16 + static_cast<uint64_t>(c - 'a' + 10);
    } else {
      if (c != 0) ++at;
      return out;
    }
  }
}

// The file that is mapped where the address lies, of a line of /proc/self/maps; nullptr of another.
const char* file_at(const char* line, uint64_t address) {
  const uint64_t begin = hexadecimal(line), end = hexadecimal(line);
  return address >= begin && address < end ? std::strchr(line, '/') : nullptr;
}

// Writes the path to `out`, or "".
void find_file(uint64_t address, char* out, size_t size) {
  out[0] = 0;
  const int fd = ::open("/proc/self/maps", O_RDONLY | O_CLOEXEC);
  if (fd < 0) return;
  char block[512], line[4096];
  size_t length = 0;
  for (ssize_t n = 0; out[0] == 0 && (n = ::read(fd, block, sizeof(block))) > 0;) {
    for (ssize_t i = 0; i < n && out[0] == 0; ++i) {
      if (block[i] != '\n') {
        if (length + 1 < sizeof(line)) line[length++] = block[i];
        continue;
      }
      line[length] = 0;
      length = 0;
      if (const char* path = file_at(line, address)) {
        std::strncpy(out, path, size - 1);
        out[size - 1] = 0;
      }
    }
  }
  ::close(fd);
}

// "kernel relu_x of plugin y, variant z" if the file is named after one. False if it is not.
bool add_kernels(const char* path, Text* text) {
  const char* slash = std::strrchr(path, '/');
  if (slash == nullptr) return false;
  const char* name = slash + 1;
  const char* dot = std::strchr(name, '.');
  const size_t length = dot == nullptr ? std::strlen(name) : static_cast<size_t>(dot - name);
  int found = 0;
  for (const KernelName* k = g_kernels.load(); k != nullptr && found < kMostKernels; k = k->next) {
    if (k->entry.size() != length || std::strncmp(k->entry.c_str(), name, length) != 0) continue;
    text->add(found++ == 0 ? "in " : ", or ");
    text->add(k->words.c_str());
  }
  return found > 0;
}

// Where the crash was; false if it is nobody's.
bool add_place(uint64_t address, Text* text) {
  char path[1024];
  find_file(address, path, sizeof(path));
  if (add_kernels(path, text)) return true;
  const CrashNote* note = t_note;
  if (note == nullptr) {
    text->add(path[0] == 0 ? "in no file" : "in ");
    text->add(path);
    return false;
  }
  text->add("in plugin ");
  text->add(note->plugin());
  text->add(", ");
  text->add(note->doing());
  return true;
}

// One write, which no other thread's line gets into; the newline ends a line that was begun.
void tell_worker(const Text& text) {
  char line[sizeof(text.bytes) + 64];
  char* end = ::stpcpy(line, "\n{\"type\":\"crash\",\"text\":\"");
  end = ::stpcpy(end, text.bytes);
  ::stpcpy(end, "\"}\n");
  write_text(g_watch.status_fd, line);
}

void tell_user(const char* name, const Text& text) {
  if (g_watch.json) {
    write_text(STDOUT_FILENO, "{\n  \"error\": \"crashed with ");
    write_text(STDOUT_FILENO, name);
    write_text(STDOUT_FILENO, " ");
    write_text(STDOUT_FILENO, text.bytes);
    write_text(STDOUT_FILENO, "\",\n  \"code\": ");
    const char code[] = {static_cast<char>('0' + g_watch.exit_code % 10), 0};
    write_text(STDOUT_FILENO, code);
    write_text(STDOUT_FILENO, "\n}\n");
  }
  write_text(STDERR_FILENO, "error: crashed with ");
  write_text(STDERR_FILENO, name);
  write_text(STDERR_FILENO, " ");
  write_text(STDERR_FILENO, text.bytes);
  write_text(STDERR_FILENO, "\n");
}

void end_by_signal(int number) {
  ::signal(number, SIG_DFL);
  ::raise(number);  // delivered when the handler has returned
}

void crashed(int number, siginfo_t* info, void* context) {
  // What the kernel has found has a positive code.
  const bool fault = info->si_code > 0;
  if (!fault && info->si_pid != ::getpid()) return end_by_signal(number);
  if (g_crashed.exchange(true)) return end_by_signal(number);
  size_t index = 0;
  while (index + 1 < kSignals.size() && kSignals[index] != number) ++index;
  uint64_t address = 0;
#ifdef __x86_64__
  if (fault)
    address =
        static_cast<uint64_t>(static_cast<const ucontext_t*>(context)->uc_mcontext.gregs[REG_RIP]);
#else
  (void)context;
#endif
  Text text;
  const bool somebodys = add_place(address, &text);
  if (g_watch.status_fd >= 0) {
    tell_worker(text);
  } else if (somebodys) {
    tell_user(kNames[index], text);
    ::_exit(g_watch.exit_code);
  }
  if (!fault) return end_by_signal(number);
  // The instruction fails again, and whoever was there before has the last word.
  ::sigaction(number, &g_before[index], nullptr);
}

// ---- up to here ----

}  // namespace

CrashNote::CrashNote(const std::string& plugin, const std::string& doing)
    : plugin_(plugin.c_str()), doing_(doing.c_str()), outer_(t_note) {
  std::atomic_signal_fence(std::memory_order_release);
  t_note = this;
}

CrashNote::~CrashNote() { t_note = outer_; }

void note_kernel(const std::string& entry, const std::string& words) {
  static std::mutex mutex;
  static auto& known = *new std::set<std::pair<std::string, std::string>>;
  const std::lock_guard<std::mutex> lock(mutex);
  if (known.emplace(entry, words).second)
    g_kernels.store(new KernelName{entry, words, g_kernels.load()});
}

void watch_crashes(const CrashWatch& watch) {
  g_watch = watch;
  g_watched = true;
  struct sigaction action {};
  action.sa_sigaction = crashed;
  action.sa_flags = SA_SIGINFO | SA_ONSTACK;
  for (size_t i = 0; i < kSignals.size(); ++i) {
    struct sigaction before {};
    ::sigaction(kSignals[i], &action, &before);
    const bool own = (before.sa_flags & SA_SIGINFO) != 0 && before.sa_sigaction == crashed;
    if (!own) g_before[i] = before;
  }
}

void watch_crashes_again() {
  if (g_watched) watch_crashes(g_watch);
}

}  // namespace netcl
