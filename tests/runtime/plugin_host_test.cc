// The plugin host: where it looks, what a candidate becomes, and what opening one can bring.
#include "core/runtime/plugin_host.h"

#include <sys/stat.h>

#include <algorithm>
#include <chrono>
#include <fstream>
#include <set>

#include "core/base/error.h"
#include "core/base/sha256.h"
#include "tests/runtime/plugin_folder.h"

namespace netcl {
namespace {

namespace fs = std::filesystem;
using test::good_manifest;
using test::ordered_json;

DeviceInfo device(const char* selector, const char* type, const char* vendor) {
  DeviceInfo d;
  d.selector = selector;
  d.type = type;
  d.vendor = vendor;
  return d;
}

// A manifest of its own id, since libraries agree with "probe" only when they are opened.
ordered_json with_id(const std::string& id) {
  ordered_json json = good_manifest();
  json["id"] = id;
  return json;
}

class PluginHostTest : public test::PluginFolder {
 protected:
  PluginHostTest() {
    ::unsetenv("NETCL_SAFE_MODE");
    ::setenv("NETCL_PLUGIN_PATH", "", 1);  // no other place is searched
    options_.paths = {root_};
  }
  ~PluginHostTest() override {
    ::unsetenv("NETCL_SAFE_MODE");
    ::unsetenv("NETCL_PLUGIN_PATH");
  }
  PluginHost host() {
    return PluginHost(options_, devices_,
                      Logger([this](LogLevel, const std::string& text) { log_.push_back(text); }));
  }
  static const PluginRow& row_of(const PluginHost& host, const fs::path& path) {
    const auto found = std::find_if(host.rows().begin(), host.rows().end(),
                                    [&](const PluginRow& r) { return r.path == path.string(); });
    if (found == host.rows().end()) throw std::runtime_error("no row for " + path.string());
    return *found;
  }
  static void expect_row(const PluginRow& row, const std::string& state, const std::string& code,
                         const std::vector<std::string>& words) {
    EXPECT_EQ(row.state, state) << row.detail;
    EXPECT_EQ(row.code, code) << row.detail;
    for (const std::string& word : words) {
      EXPECT_NE(row.detail.find(word), std::string::npos) << row.detail << "\nlacks: " << word;
    }
  }
  // The message of load(id); the row afterwards is `rejected` with the same code.
  void expect_load_fails(const std::string& id, const std::string& code,
                         const std::vector<std::string>& words) {
    PluginHost plugins = host();
    ASSERT_EQ(plugins.rows().size(), 1u);
    ASSERT_EQ(plugins.rows()[0].state, "serving") << plugins.rows()[0].detail;
    try {
      plugins.load(id);
      FAIL() << "it was opened; expected " << code;
    } catch (const Error& e) {
      EXPECT_EQ(e.code(), ErrorCode::kPlugin);
      EXPECT_EQ(e.message().substr(0, 8), code + ": ");
    }
    expect_row(plugins.rows()[0], "rejected", code, words);
    EXPECT_NO_THROW(plugins.load_all());
  }

  PluginOptions options_;
  std::vector<DeviceInfo> devices_ = {device("gpu:0", "gpu", "nvidia"),
                                      device("cpu:0", "cpu", "intel")};
  std::vector<std::string> log_;
};

TEST_F(PluginHostTest, OpensAGoodOneOnce) {
  const fs::path directory = add("good", good_manifest());
  PluginHost plugins = host();
  expect_row(row_of(plugins, directory), "serving", "", {});
  EXPECT_EQ(row_of(plugins, directory).kind, "layer");
  EXPECT_EQ(row_of(plugins, directory).version, "1.0.0");
  ASSERT_EQ(plugins.manifests("layer").size(), 1u);
  EXPECT_TRUE(plugins.manifests("kernels").empty());
  LoadedPlugin& loaded = plugins.load("probe");
  EXPECT_EQ(&loaded, &plugins.load("probe"));
  EXPECT_EQ(loaded.id(), "probe");
}

TEST_F(PluginHostTest, ARejectedManifestIsARowAndNamingItIsAnError) {
  ordered_json json = good_manifest();
  json["abi"]["minor"] = 7;
  const fs::path directory = add("bad", json);
  test::write(root_ / "worse" / "plugin.json", "{");
  PluginHost plugins = host();
  expect_row(row_of(plugins, directory), "rejected", "NPL-04", {"0.7", "0.4"});
  EXPECT_EQ(row_of(plugins, directory).id, "probe");
  expect_row(row_of(plugins, root_ / "worse"), "rejected", "NPL-01", {"plugin.json:1:2"});
  EXPECT_EQ(row_of(plugins, root_ / "worse").id, "worse");
  try {
    plugins.load("probe");
    FAIL();
  } catch (const Error& e) {
    EXPECT_NE(e.message().find("plugin probe cannot serve: rejected (NPL-04)"), std::string::npos)
        << e.message();
  }
}

TEST_F(PluginHostTest, AnUnknownNameSaysTheNearest) {
  add("good", good_manifest());
  PluginHost plugins = host();
  try {
    plugins.load("prob");
    FAIL();
  } catch (const Error& e) {
    EXPECT_NE(e.message().find("no plugin \"prob\"; did you mean \"probe\"?"), std::string::npos)
        << e.message();
  }
}

TEST_F(PluginHostTest, KernelSetsThatMatchNoDeviceAreIdle) {
  ordered_json json = good_manifest();
  json["kinds"] = {"kernels"};
  json["provides"] =
      ordered_json::parse(R"([{"op": "matmul", "match": [{"type": "gpu", "vendor": "amd"}]}])");
  const fs::path directory = add("amd", json);
  {
    const PluginHost plugins = host();
    expect_row(
        row_of(plugins, directory), "idle", "NPL-08",
        {R"(gpu:0: vendor is "nvidia", wanted "amd")", R"(cpu:0: type is "cpu", wanted "gpu")"});
    EXPECT_TRUE(plugins.manifests("kernels").empty());
  }
  devices_.push_back(device("gpu:1", "gpu", "amd"));
  EXPECT_EQ(row_of(host(), directory).state, "serving");
  devices_.clear();
  expect_row(row_of(host(), directory), "idle", "NPL-08", {"no device was found"});
  json["provides"] =
      ordered_json::parse(R"([{"op": "matmul", "match": [{"extensions": ["cl_none"]}]}])");
  devices_ = {device("cpu:0", "cpu", "intel")};
  expect_row(row_of(host(), add("amd", json)), "idle", "NPL-08", {"extension \"cl_none\""});
}

TEST_F(PluginHostTest, SwitchesDisable) {
  const fs::path one = add("one", with_id("acme-one")), two = add("two", with_id("zeta"));
  options_.disable = {"acme-*"};
  expect_row(row_of(host(), one), "disabled", "NPL-09", {"--disable-plugins"});
  EXPECT_EQ(row_of(host(), two).state, "serving");
  options_.disable.clear();
  options_.only = {"acme-?ne"};
  EXPECT_EQ(row_of(host(), one).state, "serving");
  expect_row(row_of(host(), two), "disabled", "NPL-09", {"--only-plugins"});
}

TEST_F(PluginHostTest, AnUnresolvedSymbolIsNPL10) {
  add_code("bad", good_manifest(),
           std::string("extern int netcl_nobody_has_this(void);\n") + test::kGoodOpen +
               "NETCL_EXPORT int use(void) { return netcl_nobody_has_this(); }\n");
  expect_load_fails("probe", "NPL-10",
                    {"libprobe.so", "cannot be loaded", "netcl_nobody_has_this"});
}

TEST_F(PluginHostTest, AMissingEntryIsNPL12) {
  add_code("bad", good_manifest(), "int other_function(void) { return 1; }\n");
  expect_load_fails("probe", "NPL-12", {"does not export netcl_plugin_open_v1", "NETCL_PLUGIN"});
}

TEST_F(PluginHostTest, AFailingEntryIsNPL12) {
  add_code("bad", good_manifest(), R"(
#include "netcl_plugin.h"
NETCL_EXPORT netcl_rc netcl_plugin_open_v1(const netcl_host *h, netcl_call *c, netcl_plugin_api *out) {
  netcl_str why = {"no licence key", 14};
  (void)out;
  return h->fail(c, NETCL_E_STATE, 0, why);
}
)");
  expect_load_fails("probe", "NPL-12",
                    {"opening plugin probe failed", "status 3", "no licence key"});
}

TEST_F(PluginHostTest, AnEmptyDescriptionIsNPL12) {
  add_code("bad", good_manifest(), R"(
#include "netcl_plugin.h"
NETCL_EXPORT netcl_rc netcl_plugin_open_v1(const netcl_host *h, netcl_call *c, netcl_plugin_api *out) {
  (void)h; (void)c; (void)out;
  return NETCL_OK;
}
)");
  expect_load_fails("probe", "NPL-12", {"without an id, a version or a query function"});
}

TEST_F(PluginHostTest, ADifferentIdOrVersionIsNPL13) {
  add("bad", with_id("probe2"));
  expect_load_fails("probe2", "NPL-13",
                    {"the library says probe 1.0.0", "the manifest probe2 1.0.0"});
}

TEST_F(PluginHostTest, AKindWithoutItsTableIsNPL13) {
  add("bad", good_manifest());
  PluginHost plugins = host();
  const LoadedPlugin& plugin = plugins.load("probe");
  try {
    (void)plugin.table<netcl_layer_api>(NETCL_LAYER_INTERFACE);
    FAIL();
  } catch (const Error& e) {
    EXPECT_NE(e.message().find("NPL-13: plugin probe has no interface netcl.layer/1"),
              std::string::npos)
        << e.message();
  }
}

TEST_F(PluginHostTest, TheEarlierOfTwoShadowsTheOther) {
  const fs::path first = add("a", good_manifest()), second = add("b", good_manifest());
  const PluginHost plugins = host();
  ASSERT_EQ(plugins.rows().size(), 2u);
  EXPECT_EQ(row_of(plugins, first).state, "serving");
  expect_row(row_of(plugins, second), "shadowed", "NPL-14", {first.string(), "same id"});
}

TEST_F(PluginHostTest, ADirectoryReachedTwiceCountsOnce) {
  const fs::path directory = add("a", good_manifest());
  fs::create_directory_symlink(directory, root_ / "z");
  options_.paths.push_back(root_);
  options_.paths.push_back(directory);
  const PluginHost plugins = host();
  ASSERT_EQ(plugins.rows().size(), 1u);
  EXPECT_EQ(plugins.rows()[0].state, "serving");
}

TEST_F(PluginHostTest, FoldersMayGroupPlugins) {
  const fs::path deep = add("vendor/kernels/big", good_manifest());
  add("vendor/kernels/far/too/deep", with_id("lost"));
  const PluginHost plugins = host();
  ASSERT_EQ(plugins.rows().size(), 1u);
  EXPECT_EQ(plugins.rows()[0].path, deep.string());
}

TEST_F(PluginHostTest, APathThatIsNoDirectoryIsARow) {
  options_.paths = {root_ / "absent"};
  const PluginHost plugins = host();
  ASSERT_EQ(plugins.rows().size(), 1u);
  expect_row(plugins.rows()[0], "rejected", "NPL-03",
             {"--plugin-path", "absent", "not a directory"});
}

TEST_F(PluginHostTest, AnUnreadableDirectoryIsARow) {
  if (::geteuid() == 0) GTEST_SKIP() << "root reads everything";
  add("good", good_manifest());
  fs::create_directory(root_ / "closed");
  ASSERT_EQ(::chmod((root_ / "closed").c_str(), 0), 0);
  const PluginHost plugins = host();
  expect_row(row_of(plugins, root_ / "closed"), "rejected", "NPL-01", {"cannot be read"});
  EXPECT_EQ(row_of(plugins, root_ / "good").state, "serving");
  ::chmod((root_ / "closed").c_str(), 0700);
}

// The libraries of this test's folder that the process has mapped.
std::set<std::string> mapped_below(const fs::path& folder) {
  std::ifstream maps("/proc/self/maps");
  std::set<std::string> out;
  for (std::string line; std::getline(maps, line);) {
    const size_t at = line.find(folder.string());
    if (at != std::string::npos) out.insert(line.substr(at));
  }
  return out;
}

TEST_F(PluginHostTest, FiftyOfWhichFiveServeCostLittleAndOpenFive) {
  for (int i = 0; i < 45; ++i) {
    ordered_json json = with_id("set" + std::to_string(i));
    json["kinds"] = {"kernels"};
    json["provides"] = ordered_json::parse(
        R"([{"op": "matmul", "match": [{"vendor": "amd", "arch": ["gfx9*", "gfx1?"]}]},
            {"op": "conv2d", "match": [{"vendor": "arm"}]}])");
    json["sha256"] = {{"libprobe.so", sha256_hex(good_library())}};
    add("set" + std::to_string(i), json);
  }
  for (int i = 0; i < 5; ++i) {
    std::string code = test::kGoodOpen;
    const std::string id = "lay" + std::to_string(i) + "x";  // as long as "probe"
    code.replace(code.find("probe"), 5, id);
    ordered_json json = with_id(id);
    json["provides"][0]["layer"] = "example." + id;
    add_code(id, json, code);
  }
  host();  // the first time reads the files from the disk
  const auto start = std::chrono::steady_clock::now();
  PluginHost plugins = host();
  plugins.load_all();
  const std::chrono::duration<double, std::milli> took = std::chrono::steady_clock::now() - start;
  const auto count = [&](const std::string& state) {
    return std::count_if(plugins.rows().begin(), plugins.rows().end(),
                         [&](const PluginRow& row) { return row.state == state; });
  };
  EXPECT_EQ(count("idle"), 45);
  EXPECT_EQ(count("serving"), 5);
  EXPECT_EQ(mapped_below(root_).size(), 5u);
  EXPECT_LT(took.count(), 100) << "ms";
  RecordProperty("milliseconds", std::to_string(took.count()));
}

TEST_F(PluginHostTest, WarnsAboutUnknownKeys) {
  ordered_json json = good_manifest();
  json["kind"] = "layer";
  add("typo", json);
  EXPECT_EQ(host().rows()[0].state, "serving");
  ASSERT_EQ(log_.size(), 1u);
  EXPECT_NE(log_[0].find("unknown key \"kind\"; did you mean \"kinds\"?"), std::string::npos)
      << log_[0];
}

TEST_F(PluginHostTest, TheEnvironmentReplacesTheDefaultPlaces) {
  add("good", good_manifest());
  options_.paths.clear();
  ::setenv("NETCL_PLUGIN_PATH", (root_.string() + ":" + (root_ / "other").string()).c_str(), 1);
  const std::vector<fs::path> expected = {root_, root_ / "other"};
  EXPECT_EQ(plugin_directories(options_), expected);
  EXPECT_EQ(host().rows().size(), 1u);
}

TEST_F(PluginHostTest, SafeModeSearchesBesideTheProgramOnly) {
  add("good", good_manifest());
  ::setenv("NETCL_PLUGIN_PATH", root_.c_str(), 1);
  ::setenv("NETCL_SAFE_MODE", "1", 1);
  const std::vector<fs::path> places = plugin_directories(options_);
  ASSERT_EQ(places.size(), 1u);
  EXPECT_EQ(places[0], fs::canonical("/proc/self/exe").parent_path().parent_path() / "plugins");
  const PluginHost plugins = host();
  for (const PluginRow& row : plugins.rows()) EXPECT_NE(row.path, (root_ / "good").string());
}

}  // namespace
}  // namespace netcl
