// What a kernel set answers is checked before it reaches a driver.
#include "core/cl/recipe.h"

#include <gtest/gtest.h>

#include <cstddef>
#include <functional>
#include <memory>

#include "tests/ops/device_fixture.h"

namespace netcl {
namespace testing {
namespace {

netcl_str str(const char* text) { return {text, std::char_traits<char>::length(text)}; }

// A good recipe: y[i] = x[i] * f + n + v.s3, with local memory and scratch, that tests then damage.
struct Given {
  Given() {
    sources[0] = {str("scale.cl"),
                  str("__kernel void scale(__global const float* x, __global float* y, int n,\n"
                      "    float f, int8 v, __local float* l, __global float* s, long m) {\n"
                      "  size_t i = get_global_id(0);\n"
                      "  l[get_local_id(0)] = x[i]; s[i] = f;\n"
                      "  if (i < (size_t)n) y[i] = l[get_local_id(0)] * s[i] + n + v.s3 + (int)m;\n"
                      "}\n")};
    args = {{NETCL_ARG_INPUT, 0, {}},   {NETCL_ARG_OUTPUT, 0, {}}, {NETCL_ARG_I32, 0, {}},
            {NETCL_ARG_F32, 0, {}},     {NETCL_ARG_I32X8, 0, {}},  {NETCL_ARG_LOCAL, 0, {}},
            {NETCL_ARG_SCRATCH, 0, {}}, {NETCL_ARG_I64, 0, {}}};
    args[2].u.i = 8;
    args[3].u.f = 2.5;
    args[4].u.v8 = words;
    args[5].u.bytes = 4 * sizeof(float);
    args[7].u.i = 100;
    launch.entry = str("scale");
    launch.options = str("-cl-std=CL1.2");
    launch.sources = sources;
    launch.n_sources = 1;
    launch.dims = 1;
    launch.global[0] = 8;
    launch.local[0] = 4;
    scratch_bytes[0] = 8 * sizeof(float);
  }
  Recipe copy() {
    launch.args = args.data();
    launch.n_args = static_cast<uint32_t>(args.size());
    netcl_recipe recipe{};
    recipe.size = size;
    recipe.variant = str("fast");
    recipe.launches = &launch;
    recipe.n_launches = 1;
    recipe.scratch_bytes = scratch_bytes;
    recipe.n_scratch = 1;
    return copy_recipe(recipe, "vendor", 1, 1, shared_device().device().info());
  }

  size_t size = sizeof(netcl_recipe);
  netcl_source sources[1];
  std::vector<netcl_arg> args;
  int32_t words[8] = {0, 0, 0, 1000, 0, 0, 0, 0};
  netcl_launch launch{};
  uint64_t scratch_bytes[1];
};

TEST(RecipeTest, RunsWithEveryKindOfArgument) {
  DeviceFixture& f = shared_device();
  Executable executable(f.device(), Given().copy());
  const Tensor x = Tensor::from_floats(f.queue(), Shape{8}, {0, 1, 2, 3, 4, 5, 6, 7});
  const Tensor y(f.queue(), x.desc()), scratch(f.queue(), x.desc());
  executable.bind({x.buffer()}, {y.buffer()}, {scratch.buffer()});
  executable.enqueue(f.queue()->cl());
  const std::vector<float> got = y.to_floats();
  for (size_t i = 0; i < 8; ++i) EXPECT_EQ(got[i], static_cast<float>(i) * 2.5f + 1108);
}

// A library that copies the input to scratch memory, and adds up how often it was asked.
class Copying : public NativeWork {
 public:
  explicit Copying(bool tells) : tells_(tells) {}
  void enqueue(cl_command_queue queue, const cl_mem* in, const cl_mem*, const cl_mem* scratch,
               cl_event* event) const override {
    ++calls;
    ASSERT_EQ(::clEnqueueCopyBuffer(queue, in[0], scratch[0], 0, 0, 8 * sizeof(float), 0, nullptr,
                                    tells_ ? event : nullptr),
              CL_SUCCESS);
  }
  mutable int calls = 0;

 private:
  const bool tells_;
};

// y = 2 x through the scratch buffer that native work fills first.
Recipe after_native(const std::shared_ptr<NativeWork>& native, bool with_launch) {
  Recipe recipe = Given().copy();
  recipe.native = native;
  RecipeLaunch& launch = recipe.launches.at(0);
  launch.entry = "twice";
  launch.source =
      "__kernel void twice(__global const float* s, __global float* y) {\n"
      "  y[get_global_id(0)] = 2 * s[get_global_id(0)];\n}\n";
  launch.args = {{NETCL_ARG_SCRATCH, 0, 0, 0, {}}, {NETCL_ARG_OUTPUT, 0, 0, 0, {}}};
  if (!with_launch) recipe.launches.clear();
  return recipe;
}

TEST(RecipeTest, NativeWorkComesBeforeTheLaunches) {
  DeviceFixture& f = shared_device();
  const auto native = std::make_shared<Copying>(true);
  Executable executable(f.device(), after_native(native, true));
  EXPECT_EQ(executable.num_launches(), 2u);
  const Tensor x = Tensor::from_floats(f.queue(), Shape{8}, {0, 1, 2, 3, 4, 5, 6, 7});
  const Tensor y(f.queue(), x.desc()), scratch(f.queue(), x.desc());
  executable.bind({x.buffer()}, {y.buffer()}, {scratch.buffer()});
  EXPECT_EQ(native->calls, 0);
  executable.enqueue(f.queue()->cl());
  EXPECT_EQ(native->calls, 1);
  EXPECT_EQ(y.to_floats(), (std::vector<float>{0, 2, 4, 6, 8, 10, 12, 14}));
}

TEST(RecipeTest, TheLastEventOfNativeWorkIsKnownEvenIfTheLibraryDoesNotTell) {
  DeviceFixture& f = shared_device();
  for (const bool tells : {true, false}) {
    Executable executable(f.device(), after_native(std::make_shared<Copying>(tells), false));
    const Tensor x = Tensor::from_floats(f.queue(), Shape{8}, std::vector<float>(8, 3.0f));
    const Tensor y(f.queue(), x.desc()), scratch(f.queue(), x.desc());
    executable.bind({x.buffer()}, {y.buffer()}, {scratch.buffer()});
    cl::Event last;
    executable.enqueue(f.queue()->cl(), &last);
    ASSERT_NE(last(), nullptr);
    last.wait();
    EXPECT_EQ(last.getInfo<CL_EVENT_COMMAND_EXECUTION_STATUS>(), CL_COMPLETE);
    EXPECT_EQ(scratch.to_floats(), std::vector<float>(8, 3.0f));
  }
}

TEST(RecipeTest, ARecipeOfTheFirstBoundaryIsAccepted) {
  Given given;
  given.size = offsetof(netcl_recipe, native);
  EXPECT_EQ(given.copy().launches.size(), 1u);
}

TEST(RecipeTest, BoundBuffersLiveOn) {
  DeviceFixture& f = shared_device();
  Executable executable(f.device(), Given().copy());
  const Tensor x = Tensor::from_floats(f.queue(), Shape{8}, std::vector<float>(8, 1.0f));
  const Tensor y(f.queue(), x.desc());
  cl_mem scratch = nullptr;
  {
    const cl::Buffer temporary(f.device().context(), CL_MEM_READ_WRITE, 32);
    scratch = temporary();
    executable.bind({x.buffer()}, {y.buffer()}, {temporary});
  }
  cl_uint references = 0;
  ASSERT_EQ(
      clGetMemObjectInfo(scratch, CL_MEM_REFERENCE_COUNT, sizeof(references), &references, nullptr),
      CL_SUCCESS);
  EXPECT_GE(references, 1u);
  executable.enqueue(f.queue()->cl());
  EXPECT_EQ(y.to_floats(), std::vector<float>(8, 2.5f + 1108));
}

TEST(RecipeTest, CopiesWhatItWasGiven) {
  Given given;
  const Recipe recipe = given.copy();
  given.words[3] = 0;  // the plugin's memory is its own again
  EXPECT_EQ(recipe.plugin, "vendor");
  EXPECT_EQ(recipe.variant, "fast");
  EXPECT_EQ(recipe.launches.at(0).args.at(4).v8[3], 1000);
  EXPECT_EQ(recipe.scratch_bytes, std::vector<uint64_t>{8 * sizeof(float)});
}

TEST(RecipeTest, AnEmptyLaunchIsLeftOut) {
  Given given;
  given.launch.global[0] = 0;
  EXPECT_TRUE(given.copy().launches.empty());
}

TEST(RecipeTest, RefusesWhatCannotBe) {
  struct Damage {
    std::function<void(Given&)> harm;
    const char* message;
  };
  const std::vector<Damage> damages = {
      {[](Given& g) { g.size = 8; }, "a recipe of 8 bytes"},
      {[](Given& g) { g.args[0].index = 1; }, "argument 0 names input 1 of 1"},
      {[](Given& g) { g.args[1].index = 7; }, "argument 1 names output 7 of 1"},
      {[](Given& g) { g.args[6].index = 1; }, "argument 6 names scratch buffer 1 of 1"},
      {[](Given& g) { g.args[2].u.i = int64_t{1} << 40; }, "no 32-bit integer"},
      {[](Given& g) { g.args[5].u.bytes = uint64_t{1} << 50; }, "bytes of local memory"},
      {[](Given& g) { g.args[5].u.bytes = 0; }, "bytes of local memory"},
      {[](Given& g) { g.args[3].kind = 99; }, "unknown kind 99"},
      {[](Given& g) { g.launch.dims = 0; }, "0 dimensions"},
      {[](Given& g) { g.launch.dims = 4; }, "4 dimensions"},
      {[](Given& g) { g.launch.local[0] = 3; }, "no multiple of local size 3"},
      {[](Given& g) {
         g.launch.dims = 2;
         g.launch.global[1] = 4;  // local[1] is 0 beside a given local[0]
       },
       "no multiple of local size 0"},
      {[](Given& g) { g.launch.global[0] = g.launch.local[0] = uint64_t{1} << 20; },
       "work-groups of 1048576 items"},
  };
  for (const Damage& damage : damages) {
    Given given;
    damage.harm(given);
    try {
      given.copy();
      ADD_FAILURE() << "accepted; wanted \"" << damage.message << "\"";
    } catch (const Error& e) {
      EXPECT_EQ(e.code(), ErrorCode::kPlugin);
      EXPECT_NE(e.message().find(damage.message), std::string::npos) << e.message();
      EXPECT_NE(e.message().find("vendor"), std::string::npos) << e.message();
    }
  }
}

TEST(RecipeTest, RefusesAWrongNumberOfArguments) {
  Given given;
  given.args.pop_back();
  const Recipe recipe = given.copy();
  try {
    Executable(shared_device().device(), recipe);
    FAIL();
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), ErrorCode::kPlugin);
    EXPECT_NE(e.message().find("gives 7 arguments, the kernel takes 8"), std::string::npos)
        << e.message();
  }
}

TEST(RecipeTest, RefusesAnUnknownKernel) {
  Given given;
  given.launch.entry = str("absent");
  const Recipe recipe = given.copy();
  EXPECT_THROW(Executable(shared_device().device(), recipe), Error);
}

}  // namespace
}  // namespace testing
}  // namespace netcl
