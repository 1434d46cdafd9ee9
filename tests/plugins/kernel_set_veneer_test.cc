// The C++ veneer for kernel sets without the core: what leaves through the boundary, which variants
// are asked, and what a layer gets on a host that knows no fused ops.
#include <gtest/gtest.h>

#include <cstddef>

#include "core/abi/netcl_kernels.hpp"
#include "tests/plugins/fake_host.h"

namespace netcl {
namespace testing {
namespace {

using plugin::Decline;
using plugin::KernelCall;
using plugin::KernelSet;
using plugin::Recipe;
using plugin::to_abi;
using plugin::Tunable;
using plugin::Variant;

// "wide" needs 8 columns; "narrow" takes any number but none.
class Doubles : public KernelSet<> {
 public:
  explicit Doubles(const netcl_host* host) : KernelSet(host) {}
  std::string_view id() const override { return "doubles"; }
  std::string_view version() const override { return "1"; }
  std::vector<Variant> variants(const KernelCall& call) const override {
    if (call.op() != "test.double") return {};
    return {{"wide", "8 columns"}, {"narrow", ""}};
  }
  std::vector<Tunable> tunables(const KernelCall& call) const override {
    if (call.variant() != "wide") return {};
    return {{"ROWS", {1, 2, 4}, 3}, {"DEPTH", {8}, plugin::num_elements(call.input(0))}};
  }
  void plan(const KernelCall& call, Recipe& recipe) const override {
    call.require_all(NETCL_F32, "f32");
    const int64_t n = plugin::num_elements(call.input(0));
    if (n == 0) throw Decline("there is nothing to double");
    if (call.variant() == "wide" && n % 8 != 0) throw Decline("no multiple of 8");
    if (call.variant() == "wide") rows_ = call.tunable("ROWS"), depth_ = call.tunable("DEPTH");
    const uint32_t scratch = recipe.scratch(64);
    recipe.launch("double_test")
        .define("N", std::to_string(n))
        .text("double.cl", "kernel")
        .option("-a")
        .option("-b")
        .input(0)
        .output(0)
        .scratch(scratch)
        .local(16)
        .i32(n)
        .i64(n + 1)
        .f32(call.attrs().number("factor"))
        .over({plugin::round_up(static_cast<uint64_t>(n), 4), 3}, {4, 1});
    recipe.launch("second_test").text("second.cl", "kernel").output(0).over({1});
    if (n == 24) (void)call.tunable("NONE");
  }
  mutable int64_t rows_ = 0, depth_ = 0;  // as they were planned
};

struct Answer {
  netcl_rc rc = NETCL_OK;
  std::string text, variant, entry, sources, options;
  std::vector<netcl_launch> launches;
  std::vector<netcl_arg> args;
  std::vector<uint64_t> scratch;
};

netcl_rc keep(void* ctx, const void* item) {
  auto* out = static_cast<Answer*>(ctx);
  const auto& recipe = *static_cast<const netcl_recipe*>(item);
  out->variant = plugin::view(recipe.variant);
  out->launches.assign(recipe.launches, recipe.launches + recipe.n_launches);
  out->scratch.assign(recipe.scratch_bytes, recipe.scratch_bytes + recipe.n_scratch);
  const netcl_launch& first = recipe.launches[0];
  out->args.assign(first.args, first.args + first.n_args);
  out->entry = plugin::view(first.entry);
  out->options = plugin::view(first.options);
  for (uint32_t i = 0; i < first.n_sources; ++i) {
    out->sources += std::string(plugin::view(first.sources[i].name)) + ":" +
                    std::string(plugin::view(first.sources[i].text)) + "|";
  }
  return NETCL_OK;
}

netcl_rc keep_id(void* ctx, const void* item) {
  static_cast<std::vector<std::string>*>(ctx)->emplace_back(
      plugin::view(static_cast<const netcl_variant*>(item)->id));
  return NETCL_OK;
}

class KernelSetVeneerTest : public ::testing::Test {
 protected:
  netcl_opkey key_of(int64_t n) {
    desc_ = {};
    desc_.dtype = NETCL_F32;
    desc_.rank = 1;
    desc_.dim[0] = n;
    factor_ = plugin::attr_float("factor", 2.5);
    netcl_opkey key{};
    key.size = sizeof(key);
    key.op = to_abi(op_);
    key.n_in = key.n_out = key.n_attrs = 1;
    key.in = key.out = &desc_;
    key.attrs = &factor_;
    return key;
  }
  const netcl_kernels_api& table() {
    return *static_cast<const netcl_kernels_api*>(set_.query(NETCL_KERNELS_INTERFACE));
  }
  netcl_plugin* self() {
    return reinterpret_cast<netcl_plugin*>(static_cast<plugin::Plugin*>(&set_));
  }
  Answer ask(int64_t n, const std::string& variant = "") {
    Answer out;
    const netcl_opkey key = key_of(n);
    out.rc =
        table().plan(self(), call_.handle(), device_.handle(), &key, to_abi(variant), keep, &out);
    out.text = call_.text;
    return out;
  }

  const netcl_host host_ = fake_host();
  Doubles set_{&host_};
  FakeCall call_;
  FakeDevice device_;
  std::string op_ = "test.double";
  netcl_desc desc_{};
  netcl_attr factor_{};
};

TEST_F(KernelSetVeneerTest, ARecipeLeavesWhole) {
  const Answer a = ask(16);
  ASSERT_EQ(a.rc, netcl_rc{NETCL_OK}) << a.text;
  EXPECT_EQ(a.variant, "wide");
  EXPECT_EQ(a.sources, "defines:#define N 16\n|double.cl:kernel|");
  EXPECT_EQ(a.options, "-a -b");
  EXPECT_EQ(a.scratch, std::vector<uint64_t>{64});
  ASSERT_EQ(a.launches.size(), 2u);
  EXPECT_EQ(a.entry, "double_test");
  EXPECT_EQ(a.launches[0].dims, 2u);
  const uint64_t global[] = {16, 3, 1}, local[] = {4, 1, 1};
  for (size_t d = 0; d < 3; ++d) {
    EXPECT_EQ(a.launches[0].global[d], global[d]);
    EXPECT_EQ(a.launches[0].local[d], local[d]);
  }
  EXPECT_EQ(a.launches[1].local[0], 0u);  // the driver chooses
  const uint32_t kinds[] = {NETCL_ARG_INPUT, NETCL_ARG_OUTPUT, NETCL_ARG_SCRATCH, NETCL_ARG_LOCAL,
                            NETCL_ARG_I32,   NETCL_ARG_I64,    NETCL_ARG_F32};
  ASSERT_EQ(a.args.size(), 7u);
  for (size_t i = 0; i < 7; ++i) EXPECT_EQ(a.args[i].kind, kinds[i]);
  EXPECT_EQ(a.args[3].u.bytes, 16u);
  EXPECT_EQ(a.args[4].u.i, 16);
  EXPECT_EQ(a.args[5].u.i, 17);
  EXPECT_EQ(a.args[6].u.f, 2.5);
}

TEST_F(KernelSetVeneerTest, VariantsAreAskedInTurnOrAlone) {
  EXPECT_EQ(ask(9).variant, "narrow");
  EXPECT_EQ(ask(16, "narrow").variant, "narrow");
  Answer a = ask(9, "wide");
  EXPECT_EQ(a.rc, netcl_rc{NETCL_DECLINE});
  EXPECT_EQ(a.text, "no multiple of 8");
  a = ask(0);
  EXPECT_EQ(a.rc, netcl_rc{NETCL_DECLINE});
  EXPECT_EQ(a.text, "there is nothing to double");  // said once
  a = ask(16, "tall");
  EXPECT_EQ(a.rc, netcl_rc{NETCL_DECLINE});
  EXPECT_EQ(a.text, "no variant \"tall\" of test.double; there is wide, narrow");
  std::vector<std::string> ids;
  const netcl_opkey key = key_of(16);
  EXPECT_EQ(table().enumerate(self(), call_.handle(), device_.handle(), &key, keep_id, &ids),
            netcl_rc{NETCL_OK});
  EXPECT_EQ(ids, (std::vector<std::string>{"wide", "narrow"}));
  op_ = "test.other";
  a = ask(16);
  EXPECT_EQ(a.rc, netcl_rc{NETCL_DECLINE});
  EXPECT_EQ(a.text, "no variant of test.other");
}

struct KnobItem {
  std::string name;
  std::vector<int64_t> values;
  int64_t def;
};
netcl_rc keep_knob(void* ctx, const void* item) {
  const auto& t = *static_cast<const netcl_tunable*>(item);
  static_cast<std::vector<KnobItem>*>(ctx)->push_back(
      {std::string(plugin::view(t.name)), {t.values, t.values + t.n_values}, t.def});
  return NETCL_OK;
}

TEST_F(KernelSetVeneerTest, TunablesAreListedAndSet) {
  const netcl_opkey key = key_of(16);
  const auto list = [&](const char* variant, std::vector<KnobItem>* out) {
    return table().tunables(self(), call_.handle(), device_.handle(), &key, to_abi(variant),
                            keep_knob, out);
  };
  std::vector<KnobItem> knobs, none;
  ASSERT_EQ(list("wide", &knobs), netcl_rc{NETCL_OK});
  ASSERT_EQ(knobs.size(), 2u);
  EXPECT_EQ(knobs[0].name, "ROWS");
  EXPECT_EQ(knobs[0].values, (std::vector<int64_t>{1, 2, 4}));
  EXPECT_EQ(knobs[0].def, 3);
  EXPECT_EQ(knobs[1].def, 16);
  EXPECT_EQ(list("narrow", &none), netcl_rc{NETCL_OK});
  EXPECT_TRUE(none.empty());
  EXPECT_EQ(list("tall", &none), netcl_rc{NETCL_DECLINE});

  EXPECT_EQ(ask(16, "wide").variant, "wide");
  EXPECT_EQ(set_.rows_, 3);
  EXPECT_EQ(set_.depth_, 16);
  EXPECT_EQ(ask(16, "wide(DEPTH=8,ROWS=3)").variant, "wide(DEPTH=8)");
  EXPECT_EQ(set_.rows_, 3);
  EXPECT_EQ(set_.depth_, 8);
  EXPECT_EQ(ask(16, "wide(ROWS=4,DEPTH=8)").variant, "wide(ROWS=4,DEPTH=8)");
  const std::pair<const char*, const char*> refused[] = {
      {"wide(ROWS=5)", "variant wide: ROWS=5; it may be 1 2 4 or 3"},
      {"wide(PACK=1)", "variant wide has no tunable \"PACK\"; it has: ROWS DEPTH"},
      {"narrow(ROWS=1)", "variant narrow has no tunable \"ROWS\"; it has none"},
      {"wide(ROWS=x)", "\"wide(ROWS=x)\" names no variant; expected ID or ID(NAME=NUMBER,...)"},
      {"wide(", "names no variant"},
      {"wide()", "names no variant"}};
  for (const auto& [variant, words] : refused) {
    const Answer a = ask(16, variant);
    EXPECT_EQ(a.rc, netcl_rc{NETCL_DECLINE}) << variant;
    EXPECT_NE(a.text.find(words), std::string::npos) << a.text;
  }
  const Answer bug = ask(24);
  EXPECT_EQ(bug.rc, netcl_rc{NETCL_E_BUG});
  EXPECT_NE(bug.text.find("has no tunable NONE"), std::string::npos) << bug.text;
}

TEST_F(KernelSetVeneerTest, ASetHasNoOtherInterface) {
  EXPECT_EQ(set_.query(NETCL_LAYER_INTERFACE), nullptr);
  struct Both : KernelSet<plugin::LayerFamily> {
    explicit Both(const netcl_host* host) : KernelSet(host) {}
    std::string_view id() const override { return "both"; }
    std::string_view version() const override { return "1"; }
    void plan(const KernelCall&, Recipe&) const override {}
  } both(&host_);
  EXPECT_NE(both.query(NETCL_LAYER_INTERFACE), nullptr);
  EXPECT_NE(both.query(NETCL_KERNELS_INTERFACE), nullptr);
  EXPECT_EQ(both.query(NETCL_TRANSPORT_INTERFACE), nullptr);
}

TEST_F(KernelSetVeneerTest, OnAnOlderHostTheOpsStay) {
  netcl_host older = host_;
  older.fused = [](netcl_call*, netcl_graph*, netcl_str, const netcl_value*, uint32_t,
                   const netcl_attr*, uint32_t, const netcl_value*, uint32_t, netcl_value* own) {
    *own = 7;
    return netcl_rc{NETCL_OK};
  };
  const auto fused = [&] {
    const plugin::Trace trace(plugin::Host(&older, call_.handle()), nullptr,
                              plugin::AttrView(nullptr, 0), nullptr, 0, nullptr, 0);
    return trace.fused("test.double", {plugin::Value{1}}, {}, plugin::Value{2}).id;
  };
  EXPECT_EQ(fused(), 7u);
  older.size = offsetof(netcl_host, fused);  // as one that was built before there was such a member
  EXPECT_EQ(fused(), 2u);
}

}  // namespace
}  // namespace testing
}  // namespace netcl
