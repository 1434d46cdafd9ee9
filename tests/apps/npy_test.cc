// NPY and NPZ: byte orders, Fortran order, types, archives, and what is refused.
#include "apps/netcl_app/formats/npy.h"

#include <gtest/gtest.h>
#include <zlib.h>

#include <algorithm>

#include "apps/netcl_app/formats/zip.h"
#include "tests/data/data_files.h"

namespace netcl::app {
namespace {

std::string npy(const std::string& header, const std::string& data, char version = 1) {
  std::string out = "\x93NUMPY";
  out += {version, '\0', static_cast<char>(header.size()), '\0'};
  if (version > 1) out += {'\0', '\0'};
  return out + header + data;
}

std::string header(const std::string& type, const std::string& shape, bool fortran = false) {
  return "{'descr': '" + type + "', 'fortran_order': " + (fortran ? "True" : "False") +
         ", 'shape': " + shape + ", }\n";
}

std::vector<double> values(const NpyArray& array) {
  std::vector<double> out;
  for (size_t i = 0; i < static_cast<size_t>(array.count()); ++i) out.push_back(array.at(i));
  return out;
}

TEST(Npy, ReadsItsOwn) {
  const NpyArray a = parse_npy(npy_of({1, 2.5f, -3, 4, 5, 6}, Shape{3, 2}), "a.npy");
  EXPECT_EQ(a.dims, (std::vector<int64_t>{3, 2}));
  EXPECT_EQ(values(a), (std::vector<double>{1, 2.5, -3, 4, 5, 6}));
}

TEST(Npy, TypesAndByteOrders) {
  const std::string one_two("\x00\x01\x00\x02", 4);
  EXPECT_EQ(values(parse_npy(npy(header(">i2", "(2,)"), one_two), "a")),
            (std::vector<double>{1, 2}));
  EXPECT_EQ(values(parse_npy(npy(header("<u2", "(2,)"), one_two, 2), "a")),
            (std::vector<double>{256, 512}));
  EXPECT_EQ(values(parse_npy(npy(header("|i1", "(2, 1)"), "\xff\x02"), "a")),
            (std::vector<double>{-1, 2}));
  EXPECT_EQ(values(parse_npy(npy(header("|b1", "(1,)"), "\x01"), "a")), (std::vector<double>{1}));
  EXPECT_EQ(
      values(parse_npy(
          npy(header(">f8", "(1,)"), std::string("\x3f\xf8\x00\x00\x00\x00\x00\x00", 8)), "a")),
      (std::vector<double>{1.5}));
  EXPECT_EQ(values(parse_npy(npy(header("<f2", "(1,)"), std::string("\x00\x3e", 2)), "a")),
            (std::vector<double>{1.5}));
}

TEST(Npy, FortranOrderIsTransposed) {
  // [[0,1,2],[3,4,5]] by columns, and a cube.
  const std::string columns("\x00\x03\x01\x04\x02\x05", 6);
  EXPECT_EQ(values(parse_npy(npy(header("|u1", "(2, 3)", true), columns), "a")),
            (std::vector<double>{0, 1, 2, 3, 4, 5}));
  const std::string cube("\x00\x04\x02\x06\x01\x05\x03\x07", 8);
  EXPECT_EQ(values(parse_npy(npy(header("|u1", "(2, 2, 2)", true), cube), "a")),
            (std::vector<double>{0, 1, 2, 3, 4, 5, 6, 7}));
}

TEST(Npy, Refuses) {
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"", "a.npy: this is no NPY array"},
      {"PK\x03\x04 something else", "a.npy: this is no NPY array"},
      {npy(header("<f4", "(2,)"), "1234567"), "a.npy: the file is truncated: [2] needs 8 bytes"},
      {npy(header("<f4", "(1,)"), "12345"), "a.npy: 1 bytes after the end of the 4 bytes"},
      {npy(header("|O", "(2,)"), "12345678"), "a.npy: the array holds Python objects"},
      {npy(header("<U3", "(2,)"), "12345678"), "a.npy: the array holds text"},
      {npy(header("<c8", "(1,)"), "12345678"), "a.npy: the array holds complex numbers"},
      {npy(header("<f3", "(1,)"), "12345678"), "a.npy: the array holds values of an unknown type"},
      {npy("{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (1,)}", "1234"),
       "a.npy: the array holds records"},
      {npy("{'descr': '<f4'}", "1234"), "a.npy: the NPY header is damaged"},
      {npy("{'shape': (99999999999, 99999999999), 'descr': '<f4', 'fortran_order': False}", ""),
       "a.npy: the shape [99999999999,99999999999] is too large"},
      {npy(header("<f4", "(1,)"), "1234").substr(0, 30), "a.npy: the file ends in its header"}};
  for (const auto& [bytes, expected] : cases) {
    const std::string message = message_of([&, b = bytes] { parse_npy(b, "a.npy"); });
    EXPECT_EQ(message.substr(0, expected.size()), expected);
  }
}

TEST(Npy, SamplesAndLabels) {
  const NpyArray x = parse_npy(npy(header("|u1", "(2, 2)"), "\x01\x02\x03\x04"), "x.npy");
  const NpyArray y = parse_npy(npy(header("|u1", "(2,)"), std::string("\x00\x01", 2)), "y.npy");
  const Samples plain = samples_of(x, y, {});
  EXPECT_EQ(plain.dtype, DType::kU8);
  EXPECT_EQ(plain.labels, (std::vector<int32_t>{0, 1}));
  DataConfig config;
  config.tokens = true;
  const Samples text = samples_of(x, x, config);
  EXPECT_EQ(text.i32, (std::vector<int32_t>{1, 2, 3, 4}));
  EXPECT_EQ(text.label_shape, Shape{2});
  EXPECT_EQ(text.count(), 2);
  config.regression = true;
  EXPECT_EQ(samples_of(x, y, config).targets, (std::vector<float>{0, 1}));

  const NpyArray few = parse_npy(npy(header("|u1", "(1,)"), "\x01"), "few.npy");
  EXPECT_EQ(message_of([&] { samples_of(x, few, {}); }),
            "few.npy: labels of shape [1] for 2 samples in x.npy; expected as many of both");
  const NpyArray below = parse_npy(npy(header("|i1", "(2,)"), std::string("\x00\xff", 2)), "b.npy");
  EXPECT_EQ(message_of([&] { samples_of(x, below, {}); }),
            "b.npy: sample 1 (from 0) has the label -1; expected a whole number from 0 to "
            "2147483647");
  const NpyArray nan =
      parse_npy(npy(header("<f4", "(2,)"), std::string("\0\0\x80\x3f\0\0\xc0\x7f", 8)), "n.npy");
  EXPECT_EQ(message_of([&] { samples_of(nan, y, {}); }),
            "n.npy: sample 1 (from 0) holds a value that is not finite, at element 0");
}

std::string little(uint64_t value, size_t bytes) {
  std::string out;
  for (size_t i = 0; i < bytes; ++i) out += static_cast<char>(value >> (8 * i) & 255);
  return out;
}

// An archive of one stored member.
std::string archive(const std::string& name, const std::string& content, uint32_t crc_change = 0) {
  const auto crc = static_cast<uint32_t>(::crc32(0, reinterpret_cast<const Bytef*>(content.data()),
                                                 static_cast<uInt>(content.size())));
  const std::string about = little(0, 2) + little(0, 2) + little(0, 4) +
                            little(crc ^ crc_change, 4) + little(content.size(), 4) +
                            little(content.size(), 4) + little(name.size(), 2) + little(0, 2);
  const std::string local = little(0x04034b50, 4) + little(20, 2) + about + name + content;
  const std::string central = little(0x02014b50, 4) + little(20, 2) + little(20, 2) + about +
                              little(0, 2) + little(0, 2) + little(0, 2) + little(0, 4) +
                              little(0, 4) + name;
  return local + central + little(0x06054b50, 4) + little(0, 4) + little(1, 2) + little(1, 2) +
         little(central.size(), 4) + little(local.size(), 4) + little(0, 2);
}

TEST(Zip, ReadsAndRefuses) {
  const ZipArchive good(archive("x.npy", "hello"), "a.npz");
  EXPECT_EQ(good.names(), (std::vector<std::string>{"x.npy"}));
  EXPECT_EQ(good.read("x.npy"), "hello");
  EXPECT_EQ(message_of([&] { good.read("xx.npy"); }),
            "a.npz: there is no xx.npy in the archive; did you mean \"x.npy\"?; it holds x.npy");
  const ZipArchive bad(archive("x.npy", "hello", 1), "a.npz");
  EXPECT_EQ(message_of([&] { bad.read("x.npy"); }),
            "a.npz: x.npy: the content does not match its checksum");
  EXPECT_EQ(message_of([&] { ZipArchive("no archive at all", "a.npz"); }),
            "a.npz: this is no archive (.npz, a ZIP file of arrays)");
  const std::string whole = archive("x.npy", "hello");
  for (size_t size = 4; size < whole.size(); ++size)
    EXPECT_NE(message_of([&] { ZipArchive(whole.substr(0, size), "a.npz").read("x.npy"); }),
              "(no error)");
}

}  // namespace
}  // namespace netcl::app
