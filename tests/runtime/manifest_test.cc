// The gates that a manifest passes before any code of its plugin runs: a case for each refusal,
// with its code and the words that a user needs.
#include "core/runtime/manifest.h"

#include <elf.h>
#include <sys/stat.h>

#include <functional>

#include "tests/runtime/plugin_folder.h"

namespace netcl {
namespace {

namespace fs = std::filesystem;
using test::good_manifest;
using test::ordered_json;

struct Case {
  std::string name;
  std::function<void(ordered_json&)> change;
  std::string code;
  std::vector<std::string> words;
};

class ManifestTest : public test::PluginFolder {
 protected:
  void expect_refusal(const fs::path& directory, const std::string& code,
                      const std::vector<std::string>& words) {
    const ManifestResult result = read_manifest(directory);
    ASSERT_TRUE(result.refusal) << directory << " was accepted; expected " << code;
    EXPECT_EQ(result.refusal->code, code) << result.refusal->detail;
    for (const std::string& word : words) {
      EXPECT_NE(result.refusal->detail.find(word), std::string::npos)
          << result.refusal->detail << "\nlacks: " << word;
    }
  }
};

TEST_F(ManifestTest, AcceptsAGoodOne) {
  ordered_json json = good_manifest();
  json["name"] = "Probe";
  json["license"] = "MIT";
  json["provides"] = ordered_json::parse(
      R"([{"op": "matmul", "dtypes": ["f32"], "match": [{"type": "gpu"}], "never": [{}], "priority": 7},
          {"transport": "probe", "one_context": true}, {"family": "elementwise", "yields": true}])");
  const ManifestResult result = read_manifest(add("good", json));
  ASSERT_FALSE(result.refusal) << result.refusal->detail;
  const Manifest& m = *result.manifest;
  EXPECT_EQ(m.id, "probe");
  EXPECT_EQ(m.version, "1.0.0");
  EXPECT_EQ(m.library, root_ / "good" / "libprobe.so");
  EXPECT_TRUE(m.has_kind("layer"));
  EXPECT_FALSE(m.has_kind("kernels"));
  ASSERT_EQ(m.provides.size(), 3u);
  EXPECT_FALSE(m.provides[0].one_context);
  EXPECT_TRUE(m.provides[1].one_context);
  EXPECT_FALSE(m.provides[0].yields);
  EXPECT_TRUE(m.provides[2].yields);
  EXPECT_EQ(m.provides[0].op, "matmul");
  EXPECT_EQ(m.provides[0].priority, 7);
  EXPECT_EQ(m.provides[0].match.size(), 1u);
  EXPECT_EQ(m.provides[0].never.size(), 1u);
  EXPECT_TRUE(m.warnings.empty());
}

TEST_F(ManifestTest, RefusesWrongMembers) {
  const auto erase = [](const char* key) { return [key](ordered_json& j) { j.erase(key); }; };
  const auto set = [](const char* key, const char* value) {
    return [key, value](ordered_json& j) { j[key] = ordered_json::parse(value); };
  };
  const std::vector<Case> cases = {
      {"no_id", erase("id"), "NPL-01", {"plugin.json", "\"id\" is missing"}},
      {"no_schema", erase("manifest"), "NPL-01", {"\"manifest\" is missing"}},
      {"no_version", erase("version"), "NPL-01", {"\"version\" is missing"}},
      {"no_kinds", erase("kinds"), "NPL-01", {"\"kinds\" is missing"}},
      {"no_library", erase("library"), "NPL-01", {"\"library\" is missing"}},
      {"no_abi", erase("abi"), "NPL-01", {"\"abi\" is missing"}},
      {"no_provides", erase("provides"), "NPL-01", {"\"provides\" is missing"}},
      {"id_number", set("id", "3"), "NPL-01", {"\"id\" must be non-empty text", "3"}},
      {"id_empty", set("id", "\"\""), "NPL-01", {"\"id\" must be non-empty text"}},
      {"id_climbs", set("id", "\"../../x\""), "NPL-01", {"\"id\" must be 1 to 64", "../../x"}},
      {"id_escapes", set("id", R"("a\u001b[31m")"), "NPL-01", {"a\\u001b[31m"}},
      {"kinds_none", set("kinds", "[]"), "NPL-01", {"\"kinds\" is empty"}},
      {"kinds_text", set("kinds", "\"layer\""), "NPL-01", {"\"kinds\" must be a list"}},
      {"kinds_number", set("kinds", "[1]"), "NPL-01", {"\"kinds\" must be a list of texts"}},
      {"kind_typo",
       set("kinds", "[\"layers\"]"),
       "NPL-01",
       {"unknown kind \"layers\"", "did you mean \"layer\"?"}},
      {"abi_list", set("abi", "[0, 1]"), "NPL-01", {"\"abi\" must be"}},
      {"abi_negative", set("abi", R"({"major": 0, "minor": -1})"), "NPL-01", {"\"abi\" must be"}},
      {"abi_huge",
       set("abi", R"({"major": 4294967296, "minor": 1})"),
       "NPL-01",
       {"\"abi\" must be"}},
      {"provides_object", set("provides", "{}"), "NPL-01", {"\"provides\" must be a list"}},
      {"provision_text", set("provides", "[\"x\"]"), "NPL-01", {"provides[0] must be an object"}},
      {"provision_empty", set("provides", "[{}]"), "NPL-01", {"provides[0] must have one of"}},
      {"provision_two",
       set("provides", R"([{"op": "add", "layer": "x"}])"),
       "NPL-01",
       {"provides[0] must have one of"}},
      {"data_text", set("data", "\"x\""), "NPL-01", {"\"data\" must be an object"}},
      {"variants_number",
       set("data", R"({"variants": 3})"),
       "NPL-01",
       {"data.variants", "found 3"}},
      {"variants_missing",
       set("data", R"({"variants": "none.json"})"),
       "NPL-03",
       {"none.json", "is missing"}},
      {"variants_outside", set("data", R"({"variants": "/bin/sh"})"), "NPL-03", {"lies outside"}},
      {"match_typo",
       set("provides", R"([{"op": "add", "match": [{}, {"vendr": "amd"}]}])"),
       "NPL-01",
       {"plugin.json: provides[0].match[1]: unknown member \"vendr\"", "did you mean \"vendor\"?"}},
      {"never_typo",
       set("provides", R"([{"op": "add"}, {"op": "mul", "never": [{"fp64": true}]}])"),
       "NPL-01",
       {"provides[1].never[0]: unknown member \"fp64\"", "known: vendor, platform"}},
      {"match_kinds",
       set("provides", R"([{"op": "add", "match": [{"vendor": 3}]}])"),
       "NPL-01",
       {"\"vendor\" must be text or a list of texts, found 3"}},
      {"match_count",
       set("provides", R"([{"op": "add", "match": [{"min_compute_units": "8"}]}])"),
       "NPL-01",
       {"\"min_compute_units\" must be a number, found \"8\""}},
      {"match_version",
       set("provides", R"([{"op": "add", "match": [{"cl": 1.2}]}])"),
       "NPL-01",
       {"\"cl\" must be a version, such as \"1.2\", found 1.2"}},
      {"tuned_text", set("data", R"({"tuned": "a.jsonl"})"), "NPL-01", {"\"data.tuned\" must be"}},
      {"tuned_outside",
       set("data", R"({"tuned": ["../x/*.jsonl"]})"),
       "NPL-03",
       {"data.tuned", "../x/*.jsonl", "below the plugin's directory"}},
      {"tuned_absolute", set("data", R"({"tuned": ["/x.jsonl"]})"), "NPL-03", {"data.tuned"}},
      {"match_object",
       set("provides", R"([{"op": "add", "match": {}}])"),
       "NPL-01",
       {"provides[0].match must be a list"}},
      {"never_text",
       set("provides", R"([{"op": "add", "never": ["gpu"]}])"),
       "NPL-01",
       {"provides[0].never must be a list"}},
      {"dtypes_text",
       set("provides", R"([{"op": "add", "dtypes": "f32"}])"),
       "NPL-01",
       {"provides[0].dtypes"}},
      {"priority_text",
       set("provides", R"([{"op": "add", "priority": "1"}])"),
       "NPL-01",
       {"provides[0].priority"}},
      {"priority_huge",
       set("provides", R"([{"op": "add", "priority": 4294967297}])"),
       "NPL-01",
       {"provides[0].priority"}},
      {"one_context_text",
       set("provides", R"([{"transport": "x", "one_context": "yes"}])"),
       "NPL-01",
       {"provides[0].one_context"}},
      {"one_context_op",
       set("provides", R"([{"op": "add", "one_context": true}])"),
       "NPL-01",
       {"provides[0].one_context", "transport"}},
      {"yields_text",
       set("provides", R"([{"op": "add", "yields": 1}])"),
       "NPL-01",
       {"provides[0].yields must be true or false"}},
      {"yields_layer",
       set("provides", R"([{"layer": "example.a", "yields": true}])"),
       "NPL-01",
       {"provides[0].yields", "beside \"op\" or \"family\""}},
      {"schema_new",
       set("manifest", "\"netcl-plugin/2\""),
       "NPL-02",
       {"netcl-plugin/2", "netcl-plugin/1"}},
      {"library_machine",
       set("library", R"({"linux-aarch64": "libprobe.so"})"),
       "NPL-03",
       {"no entry for linux-x86_64"}},
      {"library_missing",
       set("library", R"({"linux-x86_64": "none.so"})"),
       "NPL-03",
       {"none.so", "is missing"}},
      {"library_absolute",
       set("library", R"({"linux-x86_64": "/bin/sh"})"),
       "NPL-03",
       {"/bin/sh", "lies outside"}},
      {"library_folder", set("library", R"({"linux-x86_64": "."})"), "NPL-03", {"library_folder"}},
      {"library_text",
       set("library", R"({"linux-x86_64": "plugin.json"})"),
       "NPL-03",
       {"not a shared object"}},
      {"sha256_list", set("sha256", "[]"), "NPL-01", {"\"sha256\" must be an object"}},
      {"sha256_wrong",
       set("sha256", R"({"libprobe.so": "00"})"),
       "NPL-06",
       {"libprobe.so", "its SHA-256 is", "says 00"}},
      {"sha256_absent", set("sha256", R"({"gone.cl": "00"})"), "NPL-06", {"gone.cl", "is missing"}},
      {"abi_newer_minor",
       set("abi", R"({"major": 0, "minor": 5})"),
       "NPL-04",
       {"boundary 0.5", "has 0.4", "the plugin is newer: update netcl"}},
      {"abi_older_minor",
       set("abi", R"({"major": 0, "minor": 0})"),
       "NPL-04",
       {"boundary 0.0", "has 0.4", "the plugin is older: rebuild it"}},
      {"abi_newer_major",
       set("abi", R"({"major": 1, "minor": 0})"),
       "NPL-04",
       {"boundary 1.0", "has 0.4", "the plugin is newer"}},
  };
  for (const Case& c : cases) {
    SCOPED_TRACE(c.name);
    ordered_json json = good_manifest();
    c.change(json);
    expect_refusal(add(c.name, json), c.code, c.words);
  }
}

TEST_F(ManifestTest, RefusesWhatIsNoJson) {
  const fs::path directory = add("broken", good_manifest());
  test::write(directory / "plugin.json", "{\n  \"id\": \"x\",\n  oops\n}\n");
  expect_refusal(directory, "NPL-01", {"plugin.json:3:3", "not JSON"});
  test::write(directory / "plugin.json", "");
  expect_refusal(directory, "NPL-01", {"plugin.json:1:1", "not JSON"});
  test::write(directory / "plugin.json", "[]");
  expect_refusal(directory, "NPL-01", {"plugin.json:1:1", "expected a JSON object, found array"});
  test::write(directory / "plugin.json", std::string(100000, '['));
  expect_refusal(directory, "NPL-01", {"not JSON"});
  test::write(directory / "plugin.json", R"({"id": 3.3e333})");
  expect_refusal(directory, "NPL-01", {"plugin.json", "not JSON", "3.3e333"});
  test::write(directory / "plugin.json", std::string((1 << 20) + 1, ' '));
  expect_refusal(directory, "NPL-01", {"1048577 bytes", "at most 1048576"});
  test::write(directory / "plugin.json", "{\n  \"id\": \"x\",\n  \"id\": \"y\"\n}\n");
  expect_refusal(directory, "NPL-01", {"plugin.json:3:3", "duplicate key \"id\"", "line 2"});
  const std::string deep(100000, '[');
  test::write(directory / "plugin.json", "{\"id\": " + deep + std::string(100000, ']') + "}");
  expect_refusal(directory, "NPL-01", {"plugin.json:1:", "nested deeper than"});
  fs::remove(directory / "plugin.json");
  expect_refusal(directory, "NPL-01", {"plugin.json", "cannot be read"});
  fs::create_directory(directory / "plugin.json");
  expect_refusal(directory, "NPL-01", {"plugin.json"});
  expect_refusal(root_ / "absent", "NPL-01", {"absent", "cannot be read"});
}

TEST_F(ManifestTest, RefusesALibraryOutsideOfTheDirectory) {
  test::write(root_ / "outside.so", good_library());
  ordered_json json = good_manifest();
  json["library"]["linux-x86_64"] = "../outside.so";
  expect_refusal(add("dots", json), "NPL-03", {"../outside.so", "lies outside", "dots"});

  const fs::path link = add("link", good_manifest());
  fs::remove(link / "libprobe.so");
  fs::create_symlink(root_ / "outside.so", link / "libprobe.so");
  expect_refusal(link, "NPL-03", {"lies outside"});

  // Nobody would write to a pipe, so reading it would never end.
  const fs::path pipe = add("pipe", good_manifest());
  fs::remove(pipe / "libprobe.so");
  ASSERT_EQ(::mkfifo((pipe / "libprobe.so").c_str(), 0600), 0);
  expect_refusal(pipe, "NPL-03", {"libprobe.so", "no regular file"});

  // A folder whose name only begins like the plugin's is outside, too.
  test::write(root_ / "nearby" / "libprobe.so", good_library());
  json["library"]["linux-x86_64"] = "../nearby/libprobe.so";
  expect_refusal(add("near", json), "NPL-03", {"lies outside"});

  // A link that stays inside is good.
  const fs::path inside = add("inside", good_manifest());
  fs::rename(inside / "libprobe.so", inside / "real.so");
  fs::create_symlink("real.so", inside / "libprobe.so");
  EXPECT_FALSE(read_manifest(inside).refusal);
}

TEST_F(ManifestTest, RefusesALibraryThatCannotBeLoadedHere) {
  const fs::path directory = add("elf", good_manifest());
  const fs::path library = directory / "libprobe.so";
  const std::string good = good_library();
  const auto patched = [&](size_t offset, uint16_t value) {
    std::string bytes = good;
    bytes.replace(offset, sizeof(value), reinterpret_cast<const char*>(&value), sizeof(value));
    test::write(library, bytes);
  };
  patched(offsetof(Elf64_Ehdr, e_machine), EM_AARCH64);
  expect_refusal(directory, "NPL-03", {"another machine", "183", "62"});
  patched(offsetof(Elf64_Ehdr, e_type), ET_REL);
  expect_refusal(directory, "NPL-03", {"not a shared object", "ELF type 1"});
  for (const size_t size : {size_t{0}, size_t{3}, size_t{63}}) {
    test::write(library, good.substr(0, size));
    expect_refusal(directory, "NPL-03", {"no ELF header"});
  }
  for (const size_t size : {size_t{64}, size_t{300}, good.size() / 2}) {
    test::write(library, good.substr(0, size));
    expect_refusal(directory, "NPL-03", {"is cut off", std::to_string(size)});
  }
  test::write(library, good);
  EXPECT_FALSE(read_manifest(directory).refusal);
}

TEST_F(ManifestTest, RefusesWhatOthersCanWrite) {
  for (const std::string part :
       {"", "plugin.json", "libprobe.so", "add.cl", "tuned", "tuned/a.jsonl"}) {
    SCOPED_TRACE(part);
    const fs::path directory = add("open" + std::to_string(part.size()), good_manifest());
    test::write(directory / "add.cl", "kernel");
    test::write(directory / "tuned/a.jsonl", "");
    const fs::path path = part.empty() ? directory : directory / part;
    ASSERT_EQ(::chmod(path.c_str(), 0777), 0);
    expect_refusal(directory, "NPL-07",
                   {path.string(), "can be written by every user", "chmod o-w"});
    ASSERT_EQ(::chmod(path.c_str(), 0755), 0);
    EXPECT_FALSE(read_manifest(directory).refusal);
  }
}

TEST_F(ManifestTest, KnowsTheIdOfWhatItRefuses) {
  ordered_json json = good_manifest();
  json["abi"]["major"] = 9;
  const ManifestResult result = read_manifest(add("known", json));
  ASSERT_TRUE(result.manifest);
  EXPECT_EQ(result.manifest->id, "probe");
}

TEST_F(ManifestTest, WarnsAboutUnknownKeys) {
  ordered_json json = good_manifest();
  json["licence"] = "MIT";
  const ManifestResult result = read_manifest(add("typo", json));
  ASSERT_FALSE(result.refusal);
  ASSERT_EQ(result.manifest->warnings.size(), 1u);
  const std::string& warning = result.manifest->warnings[0];
  EXPECT_NE(warning.find("unknown key \"licence\"; did you mean \"license\"?"), std::string::npos)
      << warning;
}

TEST_F(ManifestTest, WarnsAboutNamesThatItDoesNotKnow) {
  ordered_json json = good_manifest();
  json["provides"] = ordered_json::parse(
      R"([{"op": "matmull", "prority": 2}, {"family": "elementwize"}, {"op": "example.own"},
          {"op": "softmax", "dtypes": ["f32", "float"]}, {"op": "nothing_like_it"}])");
  const ManifestResult result = read_manifest(add("names", json));
  ASSERT_FALSE(result.refusal) << result.refusal->detail;
  const std::vector<std::string> words = {
      "provides[0]: unknown key \"prority\"; did you mean \"priority\"?",
      "provides[0]: unknown op \"matmull\"; did you mean \"matmul\"?",
      "provides[1]: unknown family \"elementwize\"; did you mean \"elementwise\"?",
      "provides[3].dtypes: ", "provides[4]: unknown op \"nothing_like_it\"; kernels/README.md"};
  ASSERT_EQ(result.manifest->warnings.size(), words.size());
  for (size_t i = 0; i < words.size(); ++i)
    EXPECT_NE(result.manifest->warnings[i].find(words[i]), std::string::npos)
        << result.manifest->warnings[i];
}

TEST_F(ManifestTest, AManifestThatIsToBeWrittenIsChecked) {
  const fs::path directory = root_ / "unsealed";
  fs::create_directory(directory);
  EXPECT_FALSE(check_manifest(directory, good_manifest().dump()).refusal);
  ordered_json json = good_manifest();
  json.erase("version");
  const ManifestResult result = check_manifest(directory, json.dump());
  ASSERT_TRUE(result.refusal);
  EXPECT_EQ(result.refusal->code, "NPL-01");
}

DeviceInfo device() {
  DeviceInfo d;
  d.selector = "gpu:0";
  d.vendor = "nvidia";
  d.platform = "NVIDIA CUDA";
  d.name = "Big Card 90";
  d.arch = "sm_90";
  d.type = "gpu";
  d.driver = "580.1";
  d.opencl = "OpenCL 3.0 CUDA";
  d.extensions = "cl_khr_fp64 cl_khr_external_memory";
  d.local_mem_bytes = 49152;
  d.compute_units = 132;
  return d;
}

TEST(MismatchTest, EveryMember) {
  struct Row {
    const char* rule;
    const char* why;  // "": it matches
  };
  const std::vector<Row> rows = {
      {R"({})", ""},
      {R"({"vendor": "nvidia"})", ""},
      {R"({"vendor": "NVIDIA"})", ""},
      {R"({"vendor": ["amd", "nv*"]})", ""},
      {R"({"vendor": "amd"})", R"(vendor is "nvidia", wanted "amd")"},
      {R"({"vendor": []})", R"(vendor is "nvidia", wanted [])"},
      {R"({"vendor": 3})", R"(vendor is "nvidia", wanted 3)"},
      {R"({"platform": "*cuda*"})", ""},
      {R"({"platform": "pocl"})", R"(platform is "NVIDIA CUDA")"},
      {R"({"name": "big card ?0"})", ""},
      {R"({"name": "big card"})", R"(name is "Big Card 90")"},
      {R"({"arch": ["sm_8*", "sm_9*"]})", ""},
      {R"({"arch": "sm_8*"})", R"(arch is "sm_90", wanted "sm_8*")"},
      {R"({"type": "cpu"})", R"(type is "gpu", wanted "cpu")"},
      {R"({"driver": "580.*"})", ""},
      {R"({"driver": "570.*"})", R"(driver is "580.1")"},
      {R"({"extensions": "cl_khr_fp64"})", ""},
      {R"({"extensions": ["cl_khr_fp64", "cl_khr_external_memory"]})", ""},
      {R"({"extensions": ["cl_khr_fp64", "cl_khr_fp16"]})",
       R"(extension "cl_khr_fp16" is not offered)"},
      {R"({"extensions": "cl_khr"})", R"(extension "cl_khr" is not offered)"},
      {R"({"extensions": [16]})", "extension 16 is not offered"},
      {R"({"cl": "1.2"})", ""},
      {R"({"cl": "3.0"})", ""},
      {R"({"cl": "3.1"})", R"(OpenCL 3.0, wanted "3.1")"},
      {R"({"cl": 1.2})", "OpenCL 3.0, wanted 1.2"},
      {R"({"min_local_mem_bytes": 49152})", ""},
      {R"({"min_local_mem_bytes": 49153})", "min_local_mem_bytes: has 49152, wanted 49153"},
      {R"({"min_compute_units": 132})", ""},
      {R"({"min_compute_units": 133})", "min_compute_units: has 132, wanted 133"},
      {R"({"min_compute_units": "1"})", R"(min_compute_units: has 132, wanted "1")"},
      {R"({"vendr": "nvidia"})", R"(unknown member "vendr")"},
      {R"({"type": "gpu", "vendor": "amd", "arch": "x"})",
       R"(vendor is "nvidia")"},  // the first that fails
  };
  for (const Row& row : rows) {
    SCOPED_TRACE(row.rule);
    const auto why = mismatch(ordered_json::parse(row.rule), device());
    if (*row.why == '\0') {
      EXPECT_FALSE(why) << *why;
    } else {
      ASSERT_TRUE(why);
      EXPECT_NE(why->find(row.why), std::string::npos) << *why;
    }
  }
}

TEST(RefusesDeviceTest, NeverGoesFirstAndSpecificityCounts) {
  Provision p;
  p.op = "matmul";
  int specificity = -1;
  EXPECT_FALSE(refuses_device(p, device(), &specificity));
  EXPECT_EQ(specificity, 0);
  p.match = {ordered_json::parse(R"({"type": "cpu"})"),
             ordered_json::parse(R"({"type": "gpu", "vendor": "nvidia"})")};
  EXPECT_FALSE(refuses_device(p, device(), &specificity));
  EXPECT_EQ(specificity, 2);
  p.match.pop_back();
  EXPECT_EQ(refuses_device(p, device()).value_or(""), R"(type is "gpu", wanted "cpu")");
  p.match.clear();
  p.never = {ordered_json::parse(R"({"arch": "sm_9*"})")};
  EXPECT_NE(refuses_device(p, device()).value_or("").find("never"), std::string::npos);
}

}  // namespace
}  // namespace netcl
