// Verdicts are reached once, also over processes and crashes, and never block.
#include "core/runtime/tuned_verdicts.h"

#include <gtest/gtest.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <future>
#include <stdexcept>

namespace netcl {
namespace testing {
namespace {

namespace fs = std::filesystem;

class TunedVerdictsTest : public ::testing::Test {
 protected:
  TunedVerdictsTest() {
    fs::remove_all(folder_);
    fs::create_directories(folder_);
  }
  TunedVerdicts verdicts(const fs::path& file) {
    return TunedVerdicts(
        file, Logger([this](LogLevel, const std::string& text) { said_.push_back(text); }));
  }
  TunedVerdicts verdicts() { return verdicts(file_); }
  std::string check(const std::string& wrong) {
    ++checks_;
    return wrong;
  }

  const fs::path folder_ = fs::path(::testing::TempDir()) / "verdicts";
  const fs::path file_ = folder_ / "below" / "checks.txt";
  const std::string key_ = TunedVerdicts::key("one"), other_ = TunedVerdicts::key("two");
  std::vector<std::string> said_;
  int checks_ = 0;
};

TEST_F(TunedVerdictsTest, EachCheckIsMadeOnce) {
  TunedVerdicts first = verdicts();
  EXPECT_TRUE(first.decide(key_, [&] { return check(""); }).passed());
  EXPECT_FALSE(first.decide(other_, [&] { return check("element 3:\ngot 1"); }).passed());
  TunedVerdicts second = verdicts();
  EXPECT_TRUE(second.decide(key_, [&] { return check(""); }).passed());
  EXPECT_EQ(second.decide(other_, [&] { return check(""); }).why, "element 3: got 1");
  EXPECT_EQ(checks_, 2);
  EXPECT_TRUE(said_.empty());
}

TEST_F(TunedVerdictsTest, WhatEndedItsProcessIsNotTriedAgain) {
  verdicts().keep(key_, TunedVerdict::State::kBegun);  // and never came back
  const TunedVerdict verdict = verdicts().decide(key_, [&] { return check(""); });
  EXPECT_FALSE(verdict.passed());
  EXPECT_NE(verdict.why.find("ended the process"), std::string::npos);
  EXPECT_EQ(checks_, 0);
  verdicts().keep(key_, TunedVerdict::State::kNone);  // tune --again
  EXPECT_TRUE(verdicts().decide(key_, [&] { return check(""); }).passed());
}

TEST_F(TunedVerdictsTest, WhatWasTriedInAChildIsOpenUntilTheMachineWentDown) {
  verdicts().keep_tried(key_);  // and was ended from outside
  EXPECT_EQ(verdicts().of(key_).state, TunedVerdict::State::kNone);
  EXPECT_TRUE(verdicts().decide(key_, [&] { return check(""); }).passed());
  std::ofstream(file_, std::ios::app) << other_ << " tried of-an-earlier-start\n";
  const TunedVerdict verdict = verdicts().decide(other_, [&] { return check(""); });
  EXPECT_EQ(verdict.state, TunedVerdict::State::kBegun);
  EXPECT_NE(verdict.why.find("the machine went down"), std::string::npos);
  EXPECT_EQ(checks_, 1);
}

TEST_F(TunedVerdictsTest, ACheckThatGoesOnElsewhereIsWaitedFor) {
  TunedVerdicts first = verdicts(), second = verdicts();
  std::future<TunedVerdict> other;
  first.decide(key_, [&] {
    other = std::async(std::launch::async,
                       [&] { return second.decide(key_, [&] { return check("too many"); }); });
    EXPECT_EQ(other.wait_for(std::chrono::milliseconds(200)), std::future_status::timeout);
    return check("");
  });
  EXPECT_TRUE(other.get().passed());
  EXPECT_EQ(checks_, 1);
}

TEST_F(TunedVerdictsTest, AnExceptionIsAFailure) {
  const TunedVerdict verdict = verdicts().decide(
      key_, []() -> std::string { throw std::runtime_error("the build failed"); });
  EXPECT_EQ(verdict.why, "the build failed");
  EXPECT_EQ(verdicts().of(key_).why, "the build failed");
}

TEST_F(TunedVerdictsTest, WithoutAPlaceEveryStartChecksWithOneWarning) {
  std::ofstream(folder_ / "file") << "no directory";
  for (int start = 0; start < 2; ++start) {
    TunedVerdicts unwritable = verdicts(folder_ / "file" / "checks.txt");
    EXPECT_TRUE(unwritable.decide(key_, [&] { return check(""); }).passed());
    EXPECT_TRUE(unwritable.decide(other_, [&] { return check(""); }).passed());
    EXPECT_TRUE(unwritable.decide(key_, [&] { return check(""); }).passed());
  }
  EXPECT_EQ(checks_, 4);
  EXPECT_EQ(said_.size(), 2u);
  EXPECT_TRUE(verdicts("").decide(key_, [&] { return check(""); }).passed());
}

TEST_F(TunedVerdictsTest, OtherLinesArePassedOver) {
  fs::create_directories(file_.parent_path());
  std::ofstream(file_) << "\xff\xfe nonsense\n" << key_ << " perhaps\n" << key_.substr(5);
  EXPECT_TRUE(verdicts().decide(key_, [&] { return check(""); }).passed());
  EXPECT_TRUE(verdicts().of(key_).passed());  // the half line did not swallow it
}

}  // namespace
}  // namespace testing
}  // namespace netcl
