// Round trips, and files that lie.
#include "core/nn/safetensors.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "core/base/error.h"

namespace netcl {
namespace {

std::string with_length(const std::string& header, const std::string& data, uint64_t length) {
  std::string out;
  for (int i = 0; i < 8; ++i) out += static_cast<char>((length >> (8 * i)) & 0xff);
  return out + header + data;
}

std::string file_of(const std::string& header, size_t data_bytes) {
  return with_length(header, std::string(data_bytes, 'x'), header.size());
}

std::string message_of(const std::string& bytes) {
  try {
    parse_safetensors(bytes, "m.st");
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), ErrorCode::kCheckpoint) << e.message();
    return e.message();
  }
  return "(no error)";
}

Safetensors sample() {
  Safetensors content;
  content.metadata = {{"format", "netcl"}, {"step", "12"}};
  content.tensors = {{"w", DType::kF32, Shape{2, 3}, std::string(24, 'a')},
                     {"empty", DType::kF32, Shape{0, 4}, ""},
                     {"bytes", DType::kU8, Shape{3}, "xyz"},
                     {"step", DType::kI32, Shape{}, std::string("\1\0\0\0", 4)}};
  return content;
}

TEST(Safetensors, RoundTripKeepsOrderBytesAndMetadata) {
  const Safetensors in = sample();
  const std::string bytes = to_safetensors(in);
  const Safetensors out = parse_safetensors(bytes, "m.st");
  EXPECT_EQ(out.metadata, in.metadata);
  ASSERT_EQ(out.tensors.size(), in.tensors.size());
  for (size_t i = 0; i < in.tensors.size(); ++i) {
    EXPECT_EQ(out.tensors[i].name, in.tensors[i].name);
    EXPECT_EQ(out.tensors[i].desc(), in.tensors[i].desc());
    EXPECT_EQ(out.tensors[i].bytes, in.tensors[i].bytes);
  }
  ASSERT_NE(out.find("bytes"), nullptr);
  EXPECT_EQ(out.find("none"), nullptr);
  uint64_t length = 0;
  for (size_t i = 8; i-- > 0;) length = length << 8 | static_cast<unsigned char>(bytes[i]);
  EXPECT_EQ(length % 8, 0u);
  EXPECT_EQ(to_safetensors(out), bytes);
}

TEST(Safetensors, EveryTruncationIsRefused) {
  const std::string bytes = to_safetensors(sample());
  for (size_t n = 0; n < bytes.size(); ++n) {
    EXPECT_THROW(parse_safetensors(std::string_view(bytes).substr(0, n), "m.st"), Error) << n;
  }
}

TEST(Safetensors, LyingHeadersAreRefused) {
  const auto entry = [](const std::string& type, const std::string& shape,
                        const std::string& offsets) {
    return R"({"w":{"dtype":")" + type + R"(","shape":)" + shape + R"(,"data_offsets":)" + offsets +
           "}}";
  };
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"", "m.st: 0 bytes are no safetensors file; expected at least 8"},
      {with_length("{}", "", ~0ull), "m.st: the header says it has 18446744073709551615 bytes"},
      {with_length("{}", "", 3), "m.st: the header says it has 3 bytes; the file has 2"},
      {file_of("[1]", 0), "m.st: the safetensors header is no plain JSON object"},
      {file_of("{\"w\":", 0), "m.st: the safetensors header is no plain JSON object"},
      {file_of("{\"w\":" + std::string(100000, '[') + std::string(100000, ']') + "}", 0),
       "m.st: the safetensors header is no plain JSON object"},
      {file_of("{\"w\":1}", 0), "m.st: tensor \"w\": the header entry lacks"},
      {file_of(entry("F64", "[2]", "[0,4]"), 4),
       "m.st: tensor \"w\": data type \"F64\" is not supported; expected F32, F16, BF16, I32, I64, "
       "U8 or BOOL"},
      {file_of(entry("F32", "[2]", "[0,4]"), 4),
       "m.st: tensor \"w\": its 4 bytes do not fit F32[2], which needs 8"},
      {file_of(entry("F32", "[-1]", "[0,4]"), 4), "m.st: tensor \"w\": the shape [-1]"},
      {file_of(entry("F32", "[4611686018427387904,4]", "[0,4]"), 4),
       "m.st: tensor \"w\": the shape [4611686018427387904,4]"},
      {file_of(entry("F32", "[1.5]", "[0,4]"), 4), "m.st: tensor \"w\": the shape [1.5]"},
      {file_of(entry("F32", "[1,1,1,1,1,1,1,1,1]", "[0,4]"), 4),
       "m.st: tensor \"w\": the shape is"},
      {file_of(entry("F32", "[1]", "[0,8]"), 4),
       "m.st: tensor \"w\": its bytes [0,8] lie outside the file's 4 bytes of data"},
      {file_of(entry("F32", "[1]", "[4,0]"), 4), "m.st: tensor \"w\": its bytes [4,0] lie outside"},
      {file_of(entry("F32", "[1]", "[-4,0]"), 4), "m.st: tensor \"w\": data_offsets is [-4,0]"},
      {file_of(entry("F32", "[1]", "[4,8]"), 8),
       "m.st: tensor \"w\" starts at byte 4 of the data; expected 0: tensors leave a gap"},
      {file_of(entry("F32", "[1]", "[0,4]"), 7), "m.st: 3 bytes after the last tensor"},
      {file_of(R"({"a":{"dtype":"U8","shape":[4],"data_offsets":[0,4]},)"
               R"("b":{"dtype":"U8","shape":[4],"data_offsets":[2,6]}})",
               6),
       "m.st: tensor \"b\" starts at byte 2 of the data; expected 4: tensors overlap"},
      {file_of(R"({"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1]},)"
               R"("a":{"dtype":"U8","shape":[1],"data_offsets":[0,1]}})",
               1),
       "m.st: tensor \"a\" occurs twice in the header"},
      {file_of(R"({"__metadata__":{"a":1}})", 0), "m.st: __metadata__ \"a\" is 1; expected text"},
  };
  for (const auto& [bytes, expected] : cases) {
    EXPECT_EQ(message_of(bytes).substr(0, expected.size()), expected);
  }
}

TEST(Safetensors, WriteRefusesWhatDoesNotFit) {
  Safetensors content = sample();
  content.tensors[0].bytes.pop_back();
  EXPECT_THROW(to_safetensors(content), Error);
  content = sample();
  content.tensors[1].name = "w";
  EXPECT_THROW(to_safetensors(content), Error);
}

TEST(Safetensors, FilesAndTheirErrorsNameThePath) {
  const std::filesystem::path path = std::filesystem::path(testing::TempDir()) / "m.safetensors";
  write_safetensors(path, sample());
  EXPECT_EQ(read_safetensors(path).tensors.size(), 4u);
  std::filesystem::remove(path);
  try {
    read_safetensors(path);
    FAIL();
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), ErrorCode::kCheckpoint);
    EXPECT_NE(e.message().find(path.string()), std::string::npos);
  }
  EXPECT_THROW(write_safetensors("no_such_directory/m.st", sample()), Error);
}

}  // namespace
}  // namespace netcl
