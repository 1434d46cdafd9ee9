// IDX arrays and gzip data, sound and damaged.
#include "apps/netcl_app/formats/idx.h"

#include <gtest/gtest.h>
#include <zlib.h>

#include <filesystem>
#include <fstream>

#include "apps/netcl_app/formats/gzip.h"
#include "tests/data/data_files.h"

namespace netcl::app {
namespace {

std::string bytes(const std::vector<int>& values) {
  std::string out;
  for (const int value : values) out += static_cast<char>(value);
  return out;
}

std::string idx(int type, const std::vector<uint32_t>& dims, const std::string& data) {
  std::string out = bytes({0, 0, type, static_cast<int>(dims.size())});
  for (const uint32_t dim : dims) {
    for (int shift = 24; shift >= 0; shift -= 8) out += static_cast<char>((dim >> shift) & 0xff);
  }
  return out + data;
}

std::string gzipped(const std::string& text) {
  z_stream stream{};
  EXPECT_EQ(deflateInit2(&stream, 6, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY), Z_OK);
  std::string out(deflateBound(&stream, static_cast<uLong>(text.size())) + 64, ' ');
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(text.data()));
  stream.avail_in = static_cast<uInt>(text.size());
  stream.next_out = reinterpret_cast<Bytef*>(out.data());
  stream.avail_out = static_cast<uInt>(out.size());
  EXPECT_EQ(deflate(&stream, Z_FINISH), Z_STREAM_END);
  out.resize(stream.total_out);
  deflateEnd(&stream);
  return out;
}

class IdxTest : public testing::Test {
 protected:
  const std::string images_ = idx(8, {2, 1, 2}, bytes({1, 2, 255, 0}));
  const std::string labels_ = idx(8, {2}, bytes({3, 0}));
};

TEST_F(IdxTest, BytesStayBytes) {
  const Samples got = parse_idx(images_, "x", labels_, "y");
  EXPECT_EQ(got.dtype, DType::kU8);
  EXPECT_EQ(got.sample_shape, (Shape{1, 2}));
  EXPECT_EQ(got.u8, (std::vector<uint8_t>{1, 2, 255, 0}));
  EXPECT_EQ(got.labels, (std::vector<int32_t>{3, 0}));
}

TEST_F(IdxTest, OtherTypesBecomeFloats) {
  const auto value = [](const std::string& x) {
    return parse_idx(x, "x", idx(12, {1}, bytes({0, 0, 0, 5})), "y").f32.at(0);
  };
  EXPECT_EQ(value(idx(9, {1, 1}, bytes({255}))), -1.0f);
  EXPECT_EQ(value(idx(11, {1, 1}, bytes({255, 254}))), -2.0f);
  EXPECT_EQ(value(idx(12, {1, 1}, bytes({0, 1, 0, 0}))), 65536.0f);
  EXPECT_EQ(value(idx(13, {1, 1}, bytes({0x3f, 0xc0, 0, 0}))), 1.5f);
  EXPECT_EQ(value(idx(14, {1}, bytes({0xbf, 0xf8, 0, 0, 0, 0, 0, 0}))), -1.5f);
}

TEST_F(IdxTest, DamagedFiles) {
  struct Case {
    std::string x, y, expected;
  };
  const std::vector<Case> cases = {
      {"", labels_, "x: the file is empty; expected IDX data"},
      {"P5 28 28", labels_, "x: this is not IDX data"},
      {bytes({0, 0, 7, 1, 0, 0, 0, 0}), labels_, "x: this is not IDX data"},
      {images_.substr(0, 10), labels_,
       "x: the file ends in its header, after 10 bytes of 16; it is truncated"},
      {images_.substr(0, 18), labels_,
       "x: the file is truncated: [2,1,2] needs 4 bytes of values, there are 2"},
      {images_ + "!!", labels_, "x: 2 bytes after the end of the 4 bytes that [2,1,2] needs"},
      {idx(8, {0xffffffff, 0xffffffff, 0xffffffff}, ""), labels_, "x: the file is truncated"},
      {idx(8, {0, 2}, ""), idx(8, {0}, ""), "x: no samples: the shape is [0,2]"},
      {images_, idx(8, {3}, "abc"), "y: 3 labels for 2 samples in x; expected as many of both"},
      {images_, images_, "y: labels of shape [2,1,2]; expected one dimension"},
      {images_, idx(9, {2}, bytes({1, 255})),
       "y: sample 1 (from 0) has label -1; expected at least 0"},
      {images_, idx(13, {2}, "12345678"), "y: the labels are floating-point numbers"},
      {idx(13, {2, 1}, bytes({0, 0, 0, 0, 0x7f, 0x80, 0, 0})), labels_,
       "x: sample 1 (from 0) holds a value that is not finite, at element 0"},
  };
  for (const Case& c : cases) {
    const std::string message = message_of([&] { parse_idx(c.x, "x", c.y, "y"); });
    EXPECT_EQ(message.substr(0, c.expected.size()), c.expected);
  }
}

TEST(Gzip, RoundTripAndMembers) {
  const std::string text(1'000'000, 'n');
  EXPECT_EQ(gunzip(gzipped(text), "f.gz"), text);
  EXPECT_EQ(gunzip(gzipped("ab") + gzipped("") + gzipped("cd"), "f.gz"), "abcd");
}

TEST(Gzip, TruncatedAtEveryByteOrDamaged) {
  const std::string packed = gzipped("some text, some text, some other text");
  for (size_t n = 2; n < packed.size(); ++n) {
    const std::string message = message_of([&] { gunzip(packed.substr(0, n), "f.gz"); });
    EXPECT_EQ(message, str_cat("f.gz: the gzip data ends early, after ", n,
                               " bytes; the file is truncated: copy or download it again"));
  }
  std::string damaged = packed;
  damaged[packed.size() - 6] = static_cast<char>(damaged[packed.size() - 6] ^ 1);  // the checksum
  EXPECT_EQ(message_of([&] { gunzip(damaged, "f.gz"); }),
            "f.gz: the gzip data is damaged: incorrect data check");
  EXPECT_EQ(message_of([&] { gunzip(packed + "xyz", "f.gz"); }),
            "f.gz: 3 bytes after the end of the gzip data");
  EXPECT_EQ(message_of([] { gunzip("", "f.gz"); }),
            "f.gz: this is not gzip data (the file is empty)");
}

TEST(Gzip, FilesByContentAndName) {
  const std::string path = testing::TempDir() + "/netcl_idx_test.data";
  std::ofstream(path, std::ios::binary) << gzipped("hello");
  EXPECT_EQ(read_data_file(path), "hello");
  std::ofstream(path, std::ios::binary) << "plain";
  EXPECT_EQ(read_data_file(path), "plain");
  std::filesystem::rename(path, path + ".gz");
  EXPECT_EQ(message_of([&] { read_data_file(path + ".gz"); }), path + ".gz: this is not gzip data");
  std::filesystem::remove(path + ".gz");
  EXPECT_EQ(message_of([&] { read_data_file(path); }),
            path + ": cannot be opened: No such file or directory");
}

}  // namespace
}  // namespace netcl::app
