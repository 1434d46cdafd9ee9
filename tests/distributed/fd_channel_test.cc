#include "core/distributed/fd_channel.h"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include "core/base/error.h"

namespace netcl {
namespace {

TEST(FdChannelTest, DescriptorsPass) {
  auto ends = FdChannel::pair();
  const FdChannel here(std::move(ends.first)), there(std::move(ends.second));
  const UniqueFd memory(memfd_create("test", MFD_CLOEXEC));
  ASSERT_EQ(write(memory.get(), "abc", 3), 3);
  EXPECT_TRUE(here.send("next", {memory.get(), memory.get()}));
  const FdChannel::Message message = there.receive();
  EXPECT_EQ(message.text, "next");
  ASSERT_EQ(message.fds.size(), 2u);
  char text[4] = {};
  EXPECT_EQ(pread(message.fds[1].get(), text, 3, 0), 3);
  EXPECT_STREQ(text, "abc");
}

TEST(FdChannelTest, AGoneEndIsNoticed) {
  auto ends = FdChannel::pair();
  const FdChannel here(std::move(ends.first));
  ends.second.reset();
  EXPECT_FALSE(here.send("end", {}));
  EXPECT_THROW(here.receive(), Error);
}

}  // namespace
}  // namespace netcl
