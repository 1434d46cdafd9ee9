// Which records speak of a question: the levels, distances, and who overrules whom.
#include "core/runtime/tuned_match.h"

#include <gtest/gtest.h>

#include "tests/runtime/tuned_records.h"

namespace netcl {
namespace testing {
namespace {

class TunedMatchTest : public ::testing::Test {
 protected:
  // Adds a record that takes `us`, after `change`.
  template <typename Change>
  void add(const std::vector<int64_t>& mkn, double us, Change&& change) {
    StoredRecord stored{matmul_record(mkn, "fast", "v" + std::to_string(records_.size()), us),
                        "file:" + std::to_string(records_.size() + 1), true};
    change(stored);
    records_.push_back(std::move(stored));
  }
  void add(const std::vector<int64_t>& mkn, double us) {
    add(mkn, us, [](StoredRecord&) {});
  }
  // The variants in order.
  std::string order(const std::vector<int64_t>& mkn) const {
    std::string out;
    for (const TunedMatch& match : matches(mkn))
      out += (out.empty() ? "" : " ") + match.stored->record.variant;
    return out;
  }
  std::vector<TunedMatch> matches(const std::vector<int64_t>& mkn) const {
    return match_records(pointers(), matmul_record(mkn, "", "", 1).question, test_device(),
                         test_software());
  }
  std::vector<const StoredRecord*> pointers() const {
    std::vector<const StoredRecord*> out;
    for (const StoredRecord& record : records_) out.push_back(&record);
    return out;
  }
  std::vector<StoredRecord> records_;
};

TEST_F(TunedMatchTest, LevelsComeInOrder) {
  add({64, 64, 64}, 1, [](StoredRecord& s) { s.record.device.name = "Acme Two"; });
  add({128, 64, 64}, 1);
  add({64, 64, 64}, 9, [](StoredRecord& s) { s.record.software.driver = "0.9"; });
  add({64, 64, 64}, 9);
  EXPECT_EQ(order({64, 64, 64}), "v3 v2 v1 v0");
  const auto found = matches({64, 64, 64});
  EXPECT_EQ(found[0].reason(), "tuned record, exact: 2.22x the default (user record file:4)");
  EXPECT_NE(found[1].reason().find("measured with Acme CL, OpenCL 3.0, driver 0.9"),
            std::string::npos);
  EXPECT_NE(found[2].reason().find("of the shape 128x64 64x64 at distance 1.00"),
            std::string::npos);
  EXPECT_NE(found[3].reason().find("of another a1, Acme Two with 8 compute units"),
            std::string::npos);
}

TEST_F(TunedMatchTest, TheFastestOfOneKeyComesFirst) {
  add({64, 64, 64}, 5, [](StoredRecord& s) { s.user = false; });
  add({64, 64, 64}, 4, [](StoredRecord& s) {
    s.user = false;
    s.record.plugin = "other";
  });
  EXPECT_EQ(order({64, 64, 64}), "v1 v0");
}

TEST_F(TunedMatchTest, TheNearestShapeComesFirst) {
  add({64, 64, 256}, 1);
  add({64, 64, 128}, 1);
  add({64, 64, 65536}, 1);  // too far
  EXPECT_EQ(order({64, 64, 64}), "v1 v0");
}

TEST_F(TunedMatchTest, OtherKindsAreNotMeant) {
  add({64, 64, 64}, 1, [](StoredRecord& s) { s.record.question.in[0].dtype = DType::kF16; });
  add({64, 64, 64}, 1, [](StoredRecord& s) { s.record.question.attributes = "{\"a\":1}"; });
  add({64, 64, 64}, 1, [](StoredRecord& s) { s.record.device.vendor = "else"; });
  add({64, 64, 64}, 1, [](StoredRecord& s) { s.record.device.arch = "a2"; });
  add({64, 64, 64}, 1, [](StoredRecord& s) { s.record.numerics = "tf32"; });
  add({64, 64, 64}, 1, [](StoredRecord& s) { s.record.question.op = "other"; });
  EXPECT_EQ(order({64, 64, 64}), "");
}

TEST_F(TunedMatchTest, AnUnknownArchIsLikeNoOther) {
  add({64, 64, 64}, 1, [](StoredRecord& s) {
    s.record.device.arch = "";
    s.record.device.name = "Acme Two";
  });
  TunedDevice device = test_device();
  device.arch = "";
  EXPECT_TRUE(
      match_records(pointers(), records_[0].record.question, device, test_software()).empty());
}

TEST_F(TunedMatchTest, TheUsersWordOnAPluginIsTheLast) {
  add({64, 64, 64}, 1, [](StoredRecord& s) { s.user = false; });  // of "fast"
  add({64, 64, 64}, 9);                                           // measured "fast", too
  add({64, 64, 64}, 2, [](StoredRecord& s) {
    s.user = false;
    s.record.plugin = "new";  // not there when the user measured
  });
  EXPECT_EQ(order({64, 64, 64}), "v2 v1");
}

TEST(ShapeDistance, CountsPowersOfTwo) {
  const auto question = [](const std::vector<int64_t>& mkn) {
    return shapes_of(matmul_record(mkn, "", "", 1).question);
  };
  EXPECT_DOUBLE_EQ(*shape_distance(question({8, 8, 8}), question({8, 8, 8})), 0);
  EXPECT_DOUBLE_EQ(*shape_distance(question({8, 8, 8}), question({16, 8, 4})), 2);
  EXPECT_DOUBLE_EQ(*shape_distance(question({8, 8, 8}), question({16, 16, 16})), 4);
  EXPECT_FALSE(shape_distance(question({0, 8, 8}), question({8, 8, 8})));
  EXPECT_TRUE(shape_distance(question({0, 8, 8}), question({0, 8, 8})));
}

}  // namespace
}  // namespace testing
}  // namespace netcl
