// Writes the programs that a kernel set plans for a device that need not be here, for compilers
// that need none: every variant, every value of every tunable, on every case of the op table.
//
// Usage: write_programs --plugin=DIR --device=FILE.json --out=DIR --together=NUMBER
// The device's file holds members of DeviceInfo; what it leaves out is empty. A program becomes
// OUT/NUMBER.cl, whose first line names op, variant and build options. Of programs that differ in
// their defines alone enough are written that each define of a kernel is in one of them
// (--together=1), or every two of them are together in one, if they ever are (--together=2).
#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>

#include "core/base/error.h"
#include "core/ops/case_inputs.h"
#include "core/runtime/kernel_choice.h"
#include "core/runtime/kernel_set.h"

namespace netcl {
namespace testing {
namespace {
namespace fs = std::filesystem;

DeviceInfo read_device(const fs::path& path) {
  nlohmann::ordered_json all = to_json(DeviceInfo());
  std::ifstream in(path);
  all.update(nlohmann::ordered_json::parse(in));
  return device_info_from_json(all);
}

// Plans need an open device, which answers for nothing here.
Device stand_in(const DeviceInfo& info) {
  std::vector<FoundDevice> found = enumerate_devices();
  NETCL_CHECK(!found.empty(), ErrorCode::kDevice, "no OpenCL device to stand in");
  found[0].info = info;
  return Device(found[0], "", Logger());
}

class Writer {
 public:
  Writer(const KernelSet& set, Device& device, fs::path out, bool pairs)
      : set_(set), device_(device), out_(std::move(out)), pairs_(pairs) {
    fs::create_directories(out_);
  }

  void write(const OpRow& row) {
    for (const DType dtype : {DType::kF32, DType::kF16, DType::kBF16}) {
      for (const OpCase& c : typed_cases(row, dtype)) {
        const Attrs attrs = complete_attrs(row, c.attrs);
        const std::vector<TensorDesc> out = row.infer({row, c.in, attrs});
        write(KernelQuestion{row, c.in, out, attrs});
      }
    }
  }
  size_t programs() const { return programs_; }
  size_t plans() const { return plans_; }

 private:
  void write(const KernelQuestion& question) {
    for (const std::string& variant : set_.variants(device_, question)) {
      write(question, variant);
      for (const Tunable& knob : set_.tunables(device_, question, variant)) {
        for (const int64_t value : knob.values)
          write(question, variant + "(" + knob.name + "=" + std::to_string(value) + ")");
      }
    }
  }

  void write(const KernelQuestion& question, const std::string& variant) {
    std::string reason;
    const auto recipe = set_.plan(device_, question, variant, &reason);
    if (recipe == nullptr) return;
    ++plans_;
    for (const RecipeLaunch& launch : recipe->launches) {
      if (!is_new(launch)) continue;
      std::ofstream file(out_ / (std::to_string(programs_++) + ".cl"));
      file << "// " << question.op.name << " " << recipe->variant << " " << launch.entry << ": "
           << launch.options << "\n"
           << launch.source;
    }
  }

  bool is_new(const RecipeLaunch& launch) {
    std::vector<std::string> defines{launch.entry};
    std::istringstream lines(launch.source);
    for (std::string line; std::getline(lines, line) && !line.empty();) defines.push_back(line);
    bool news = false;
    for (const std::string& a : defines) {
      for (const std::string& b : defines) {
        if (pairs_ || a == b)
          news = seen_.insert(launch.entry + "\n" + a + "\n" + b).second || news;
      }
    }
    return news;
  }

  const KernelSet& set_;
  Device& device_;
  const fs::path out_;
  const bool pairs_;
  std::set<std::string> seen_;
  size_t programs_ = 0, plans_ = 0;
};

int run(const fs::path& plugin, const fs::path& device_file, const fs::path& out, bool pairs) {
  const DeviceInfo info = read_device(device_file);
  Device device = stand_in(info);
  PluginOptions options;
  options.paths = {plugin};
  PluginHost plugins(options, {info}, Logger());
  const auto manifests = plugins.manifests("kernels");
  NETCL_CHECK(!manifests.empty(), ErrorCode::kPlugin, plugin.string(), " does not serve ",
              info.vendor, " ", info.arch, ". ", plugins.rejections());
  const Manifest& manifest = *manifests.front();
  const KernelSet set(plugins.load(manifest.id));
  Writer writer(set, device, out, pairs);
  size_t ops = 0;
  for (const OpRow& row : op_table()) {
    const bool offered = std::any_of(manifest.provides.begin(), manifest.provides.end(),
                                     [&](const Provision& p) { return offers(p, row); });
    if (!offered) continue;
    ++ops;
    writer.write(row);
  }
  std::cout << ops << " ops, " << writer.plans() << " plans, " << writer.programs()
            << " programs\n";
  return 0;
}

std::string argument(int argc, char** argv, const std::string& name) {
  for (int i = 1; i < argc; ++i) {
    const std::string arg = argv[i];
    if (arg.compare(0, name.size() + 3, "--" + name + "=") == 0) return arg.substr(name.size() + 3);
  }
  fail(ErrorCode::kUsage, "--", name, "= is missing");
}

}  // namespace
}  // namespace testing
}  // namespace netcl

int main(int argc, char** argv) {
  using netcl::testing::argument;
  try {
    return netcl::testing::run(argument(argc, argv, "plugin"), argument(argc, argv, "device"),
                               argument(argc, argv, "out"),
                               argument(argc, argv, "together") == "2");
  } catch (const std::exception& e) {
    std::cerr << e.what() << "\n";
    return 1;
  }
}
