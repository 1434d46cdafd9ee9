// Selectors against a made-up machine.
#include "core/distributed/selectors.h"

#include <gtest/gtest.h>

#include "core/base/error.h"
#include "core/base/text.h"

namespace netcl {
namespace {

DeviceInfo device(const char* selector, const char* type, const char* platform, int64_t index) {
  DeviceInfo info;
  info.selector = selector;
  info.type = type;
  info.platform_key = platform;
  info.platform_device = index;
  info.name = std::string("Model ") + selector;
  info.compute_units = 16;
  return info;
}

std::vector<DeviceInfo> machine() {
  return {device("cpu:0", "cpu", "pocl", 0), device("gpu:0", "gpu", "nvidia", 0),
          device("gpu:1", "gpu", "nvidia", 1), device("oclgrind:0", "simulator", "oclgrind", 0)};
}

std::string labels(const std::string& text) {
  std::vector<std::string> out;
  for (const WorkerPlace& place : resolve_selectors(text, machine())) out.push_back(place.label());
  return join(out, " ");
}

std::string error_of(const std::string& text, const std::vector<DeviceInfo>& devices,
                     ErrorCode code = ErrorCode::kUsage) {
  try {
    resolve_selectors(text, devices);
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), code);
    return e.message();
  }
  return "no error";
}

TEST(SelectorsTest, Table) {
  const std::pair<const char*, const char*> table[] = {
      {"all", "cpu:0 gpu:0 gpu:1"},  // no simulator
      {"gpu", "gpu:0 gpu:1"},
      {"cpu", "cpu:0"},
      {"gpu:1", "gpu:1"},
      {"nvidia:0", "gpu:0"},
      {"pocl:0", "cpu:0"},
      {"oclgrind:0", "oclgrind:0"},
      {"gpu:1,cpu:0", "gpu:1 cpu:0"},  // the order is the user's
      {"cpu:0/2", "cpu:0#0 cpu:0#1"},
      {"gpu,cpu:0/2", "gpu:0 gpu:1 cpu:0#0 cpu:0#1"},
      {"gpu/2", "gpu:0#0 gpu:0#1 gpu:1#0 gpu:1#1"},
      {"cpu:0/1", "cpu:0"},
  };
  for (const auto& [text, expected] : table) EXPECT_EQ(labels(text), expected) << text;
}

TEST(SelectorsTest, AnUnknownDeviceListsWhatThereIs) {
  for (const char* text : {"gpu:2", "tpu", "", "cpu:", "all,gpu:7", "nvidia:2"}) {
    const std::string message = error_of(text, machine());
    EXPECT_NE(message.find("there is no device"), std::string::npos) << message;
    EXPECT_NE(message.find("cpu:0 or pocl:0 (Model cpu:0), gpu:0 or nvidia:0 (Model gpu:0), "
                           "gpu:1 or nvidia:1 (Model gpu:1), oclgrind:0 (Model oclgrind:0)"),
              std::string::npos)
        << message;
  }
}

TEST(SelectorsTest, SharesAreSmallNumbers) {
  for (const char* text : {"cpu:0/0", "cpu:0/x", "cpu:0/", "cpu:0/-1", "cpu:0/1000", "cpu:0/2x"})
    EXPECT_NE(error_of(text, machine()), "no error") << text;
}

TEST(SelectorsTest, PartsOfGivenSizes) {
  const std::vector<WorkerPlace> places = resolve_selectors("gpu:1,cpu:0/1+12+3", machine());
  ASSERT_EQ(places.size(), 4u);
  EXPECT_TRUE(places[0].shares.units.empty());
  const int64_t first[] = {0, 1, 13}, count[] = {1, 12, 3};
  for (int i = 0; i < 3; ++i) {
    const WorkerPlace& place = places[static_cast<size_t>(i) + 1];
    EXPECT_EQ(place.label(), str_cat("cpu:0#", i));
    EXPECT_EQ(place.shares.text(), "1+12+3");
    const DeviceShares::Range range = place.shares.range(place.share_index, 16);
    EXPECT_EQ(range.first, first[i]);
    EXPECT_EQ(range.count, count[i]);
  }
}

TEST(SelectorsTest, EvenPartsCoverWhatIsAvailable) {
  for (const int64_t available : {1, 2, 3, 16, 17}) {
    for (const int parts : {1, 2, 3, 5}) {
      int64_t next = 0;
      for (int i = 0; i < parts; ++i) {
        const DeviceShares::Range range = DeviceShares(parts).range(i, available);
        EXPECT_GE(range.count, 1);
        if (parts > available) continue;
        EXPECT_EQ(range.first, next) << i << " of " << parts << " in " << available;
        next = range.first + range.count;
      }
      EXPECT_EQ(next, parts > available ? 0 : available);
    }
  }
}

TEST(SelectorsTest, PartsMustBeThereAndACpus) {
  const std::pair<const char*, const char*> table[] = {
      {"cpu:0/8+9", "8+9 are 17 compute units, but cpu:0 (Model cpu:0) has 16"},
      {"cpu:0/1+0", "\"0\" after \"/\": expected a worker's compute units from 1"},
      {"cpu:0/4+", "\"\" after \"/\": expected"},
      {"cpu:0/+4", "\"\" after \"/\": expected"},
      {"cpu:0/4+x", "\"x\" after \"/\": expected"},
      {"cpu:0/9223372036854775807+9223372036854775807", "expected a worker's compute units"},
      {"gpu:0/4+4", "gpu:0 (Model gpu:0) is no CPU"},
      {"all/1+1", "gpu:0 (Model gpu:0) is no CPU"},
  };
  for (const auto& [text, expected] : table) {
    const std::string message = error_of(text, machine());
    EXPECT_NE(message.find(expected), std::string::npos) << text << ": " << message;
  }
}

TEST(SelectorsTest, ADeviceIsNamedOnce) {
  for (const char* text : {"cpu:0,cpu:0", "all,gpu:1", "gpu:0,nvidia:0", "cpu:0/2,pocl:0"}) {
    const std::string message = error_of(text, machine());
    EXPECT_NE(message.find("is named twice; write"), std::string::npos) << message;
  }
}

TEST(SelectorsTest, WithoutDevicesTheMessageSaysWhatToInstall) {
  const std::string message = error_of("all", {}, ErrorCode::kDevice);
  EXPECT_NE(message.find("pocl-opencl-icd"), std::string::npos) << message;
}

TEST(SelectorsTest, AllOnASimulatorAloneIsAnError) {
  EXPECT_NE(error_of("all", {machine()[3]}).find("oclgrind:0"), std::string::npos);
}

}  // namespace
}  // namespace netcl
