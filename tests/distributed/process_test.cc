// Child processes: descriptors, exits, pidfds, lines, and death with the parent.
#include "core/distributed/process.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <string>
#include <vector>

#include "core/base/environment.h"
#include "core/base/error.h"

namespace netcl {
namespace {

SpawnOptions shell(const std::string& script) {
  SpawnOptions o;
  o.argv = {"/bin/sh", "-c", script};
  o.environment = environment::with_changes({});
  o.status_fd = 7;
  return o;
}

std::vector<std::string> all_lines(ChildProcess& child) {
  LineReader reader(child.status_fd());
  std::vector<std::string> lines;
  while (!reader.at_end()) {
    wait_any({}, {child.status_fd()}, 10'000);
    for (std::string& line : reader.read_lines()) lines.push_back(std::move(line));
  }
  return lines;
}

size_t open_descriptors() {
  size_t n = 0;
  for (int fd = 0; fd < 1024; ++fd) n += fcntl(fd, F_GETFD) >= 0 ? 1 : 0;
  return n;
}

TEST(Process, ReportsHowAChildEnded) {
  ChildProcess ok(shell("exit 0"));
  EXPECT_EQ(ok.wait(10'000)->describe(), "exit code 0");
  EXPECT_TRUE(ok.exit_status()->success());
  ChildProcess three(shell("exit 3"));
  EXPECT_EQ(three.wait(10'000)->describe(), "exit code 3");
  ChildProcess killed(shell("kill -TERM $$"));
  EXPECT_EQ(killed.wait(10'000)->describe(), "killed by signal 15 (SIGTERM)");
}

TEST(Process, AProgramThatIsMissingIsAnError) {
  SpawnOptions o = shell("");
  o.argv = {"/nonexistent/program"};
  const size_t before = open_descriptors();
  try {
    ChildProcess child(o);
    FAIL() << "started";
  } catch (const Error& e) {
    EXPECT_EQ(e.message(), "cannot start /nonexistent/program: No such file or directory");
  }
  EXPECT_EQ(open_descriptors(), before);
}

TEST(Process, KillIsNoticedThroughThePidfdWithin50Milliseconds) {
  ChildProcess idle(shell("echo up >&7; exec sleep 1000")), victim(shell("exec sleep 1000"));
  wait_any({}, {idle.status_fd()}, 10'000);
  EXPECT_TRUE(wait_any({&idle, &victim}, {}, 0).timed_out());
  const auto start = std::chrono::steady_clock::now();
  kill(victim.pid(), SIGKILL);
  const Ready ready = wait_any({&idle, &victim}, {}, 10'000);
  const auto took = std::chrono::steady_clock::now() - start;
  EXPECT_EQ(ready.exited, std::vector<size_t>{1});
  EXPECT_LT(took, std::chrono::milliseconds(50));
  EXPECT_EQ(victim.wait(1000)->describe(), "killed by signal 9 (SIGKILL)");
  EXPECT_TRUE(idle.running());
}

TEST(Process, InheritsExactlyWhatItIsGiven) {
  // Numbers that collide with each other's targets, and one that must not leak.
  UniqueFd a(open("/dev/null", O_RDONLY)), b(open("/dev/zero", O_RDONLY | O_CLOEXEC));
  UniqueFd leak(open("/etc/passwd", O_RDONLY));
  SpawnOptions o = shell("");
  o.argv = {"/bin/ls", "-l", "/proc/self/fd"};
  o.status_fd = 1;
  o.descriptors = {{a.get(), b.get()}, {b.get(), a.get()}, {b.get(), 12}};
  ASSERT_NE(a.get(), 12);
  ASSERT_NE(b.get(), 12);
  ChildProcess child(o);
  std::vector<std::string> lines;
  for (const std::string& line :
       all_lines(child)) {  // "lr-x------ 1 user group 64 ... 3 -> target"
    const size_t arrow = line.find(" -> ");
    if (arrow == std::string::npos) continue;
    const size_t start = line.rfind(' ', arrow - 1) + 1;
    const std::string number = line.substr(start, arrow - start);
    const std::string target = line.substr(arrow + 4);
    if (number <= "2" && number.size() == 1) continue;
    if (target.compare(0, 6, "/proc/") == 0) continue;  // the directory that ls itself reads
    lines.push_back(number + " " + target);
  }
  std::vector<std::string> want = {str_cat(a.get(), " /dev/zero"), str_cat(b.get(), " /dev/null"),
                                   "12 /dev/zero"};
  std::sort(lines.begin(), lines.end());
  std::sort(want.begin(), want.end());
  EXPECT_EQ(lines, want);
  EXPECT_TRUE(child.wait(10'000)->success());
}

TEST(Process, LeavesNoDescriptorAndNoChildBehind) {
  const size_t before = open_descriptors();
  pid_t pid = -1;
  {
    ChildProcess child(shell("exec sleep 1000"));
    ChildProcess moved(std::move(child));
    pid = moved.pid();
    EXPECT_EQ(kill(pid, 0), 0);
  }
  EXPECT_EQ(kill(pid, 0), -1);
  EXPECT_EQ(open_descriptors(), before);
}

TEST(Process, EnvironmentIsWhatWasAskedFor) {
  SpawnOptions o = shell("echo \"$NETCL_TEST_VALUE\" >&7");
  o.environment = environment::with_changes({"NETCL_TEST_VALUE=a b"});
  ChildProcess child(o);
  EXPECT_EQ(all_lines(child), std::vector<std::string>{"a b"});
}

TEST(Process, ChildrenDieWithTheirParent) {
  // This binary starts a parent of its own kind, which starts a child, which reports and sleeps.
  SpawnOptions o = shell("");
  o.argv = {"/proc/self/exe"};
  o.environment = environment::with_changes({"NETCL_TEST_ROLE=parent"});
  ChildProcess parent(o);
  LineReader reader(parent.status_fd());
  std::vector<std::string> lines;
  while (lines.empty() && !reader.at_end()) {
    wait_any({}, {parent.status_fd()}, 10'000);
    lines = reader.read_lines();
  }
  ASSERT_EQ(lines.size(), 1u);
  const auto grandchild = static_cast<pid_t>(std::stol(lines[0]));
  ASSERT_EQ(kill(grandchild, 0), 0);
  parent.kill();
  // The grandchild holds the pipe's writing end: the end of the stream is its death.
  const auto start = std::chrono::steady_clock::now();
  while (!reader.at_end() && std::chrono::steady_clock::now() - start < std::chrono::seconds(10)) {
    wait_any({}, {parent.status_fd()}, 1000);
    reader.read_lines();
  }
  EXPECT_TRUE(reader.at_end());
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(1));
}

TEST(LineReader, FramesLinesAcrossReadsAndKeepsTheLast) {
  int ends[2];
  ASSERT_EQ(pipe2(ends, O_CLOEXEC), 0);
  UniqueFd in(ends[0]), out(ends[1]);
  LineReader reader(in.get());
  EXPECT_TRUE(reader.read_lines().empty());
  ASSERT_EQ(write(out.get(), "on", 2), 2);
  EXPECT_TRUE(reader.read_lines().empty());
  ASSERT_EQ(write(out.get(), "e\n\ntwo\nthr", 10), 10);
  EXPECT_EQ(reader.read_lines(), (std::vector<std::string>{"one", "", "two"}));
  out.reset();
  EXPECT_EQ(reader.read_lines(), std::vector<std::string>{"thr"});
  EXPECT_TRUE(reader.at_end());
}

TEST(LineReader, RefusesALineWithoutEnd) {
  int ends[2];
  ASSERT_EQ(pipe2(ends, O_CLOEXEC), 0);
  UniqueFd in(ends[0]), out(ends[1]);
  LineReader reader(in.get(), 16);
  ASSERT_EQ(write(out.get(), "12345678901234567", 17), 17);
  EXPECT_THROW(reader.read_lines(), Error);
}

TEST(WriteLine, ABrokenPipeIsAnErrorNotASignal) {
  int ends[2];
  ASSERT_EQ(pipe2(ends, O_CLOEXEC), 0);
  UniqueFd in(ends[0]), out(ends[1]);
  in.reset();
  EXPECT_THROW(write_line(out.get(), "x"), Error);
}

// The roles of ChildrenDieWithTheirParent.
int run_role(const std::string& role) {
  if (role == "child") {
    die_with_parent(static_cast<pid_t>(std::stol(std::getenv("NETCL_TEST_PARENT"))));
    write_line(7, std::to_string(getpid()));
    for (;;) pause();
  }
  SpawnOptions o;
  o.argv = {"/proc/self/exe"};
  o.environment = environment::with_changes(
      {"NETCL_TEST_ROLE=child", "NETCL_TEST_PARENT=" + std::to_string(getpid())});
  o.descriptors = {{7, 7}};
  ChildProcess child(o);
  close(7);
  child.wait(-1);
  return 0;
}

}  // namespace
}  // namespace netcl

int main(int argc, char** argv) {
  if (const char* role = std::getenv("NETCL_TEST_ROLE")) return netcl::run_role(role);
  testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
