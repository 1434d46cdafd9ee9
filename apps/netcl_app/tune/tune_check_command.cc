// netcl-app tune check: every line is read; its plugin must have the content that was measured and
// plan the variant for the record's device, which need not be here; where it is, the variant must
// compute what its op's reference says.
#include "apps/netcl_app/tune/tune_check_command.h"

#include <algorithm>
#include <iostream>
#include <map>
#include <memory>
#include <optional>

#include "apps/netcl_app/open_device.h"
#include "apps/netcl_app/options.h"
#include "apps/netcl_app/probe.h"
#include "apps/netcl_app/tune/questions.h"
#include "core/base/environment.h"
#include "core/base/file.h"
#include "core/base/json_doc.h"
#include "core/base/text.h"
#include "core/cl/icd.h"
#include "core/distributed/selectors.h"
#include "core/runtime/kernel_set.h"
#include "core/runtime/plugin_content.h"
#include "core/runtime/tuned_store.h"
#include "core/verify/variant_check.h"

namespace netcl::app {
namespace fs = std::filesystem;

namespace {

struct CheckOptions : CommonOptions {
  std::vector<std::string> files;
  std::string device = "all";
};

struct RecordFile {
  fs::path path;
  std::optional<Manifest> owner;  // whose directory holds it
};

// The plugin whose directory holds the file, or nullopt.
std::optional<Manifest> owner_of(const fs::path& file) {
  std::error_code error;
  fs::path directory = fs::canonical(file, error).parent_path();
  for (; !error && directory.has_relative_path(); directory = directory.parent_path()) {
    if (!fs::exists(directory / "plugin.json", error)) continue;
    const ManifestResult read = read_manifest(directory);
    if (read.refusal) fail(ErrorCode::kPlugin, read.refusal->code, ": ", read.refusal->detail);
    return read.manifest;
  }
  return std::nullopt;
}

// What kernel sets are told of a device that is not here.
DeviceInfo device_of(const TunedRecord& record) {
  DeviceInfo out;
  out.vendor = out.platform_key = record.device.vendor;
  out.arch = record.device.arch;
  out.name = record.device.name;
  out.compute_units = record.device.compute_units;
  out.type = record.device.type;
  out.max_work_group = record.device.max_work_group;
  out.local_mem_bytes = record.device.local_mem_bytes;
  out.max_alloc_bytes = out.memory_bytes = record.device.max_alloc_bytes;
  out.vector_width_float = record.device.vector_width_float;
  out.platform = record.software.platform;
  out.opencl = record.software.opencl;
  out.driver = record.software.driver;
  out.selector = "the device of the record";
  return out;
}

class RecordChecks {
 public:
  explicit RecordChecks(const CheckOptions& options)
      : options_(options), log_(stderr_logger(options.quiet)) {
    const std::vector<DeviceInfo> devices = probe_devices().devices();
    PluginHost plugins(options.plugin_options(), devices, log_);
    find_files(plugins);
    if (devices.empty()) return;  // what needs one stays unchecked
    const DeviceInfo info = resolve_selectors(options.device, devices)[0].device;
    environment::apply(only_driver(info.icd));
    found_ = find_device(info);
    device_ = std::make_unique<Device>(*found_, environment::cache_dir(), log_);
  }

  int run() {
    for (const RecordFile& file : files_) {
      const std::string text = read_file(file.path, ErrorCode::kUsage);
      for (const NumberedLine& line : numbered_lines(text)) check(file, line);
    }
    const bool passed = std::none_of(rows_.begin(), rows_.end(),
                                     [](const Json& row) { return row.at("state") == "bad"; });
    if (options_.json) {
      std::cout << Json({{"passed", passed}, {"records", rows_}}).dump(2) << "\n";
    } else {
      for (const Json& row : rows_) {
        for (const char* key : {"state", "place", "op", "shape", "plugin", "variant", "detail"})
          std::cout << row.at(key).get<std::string>() << "  ";
        std::cout << "\n";
      }
      std::cout << rows_.size() << " records in " << files_.size()
                << " files: " << (passed ? "none is bad" : "some are bad") << "\n";
    }
    return passed ? 0 : exit_code(ErrorCode::kPlugin);
  }

 private:
  struct Bad {
    std::string why;
  };

  // Those named, or all that plugins ship, also plugins that no device here matches.
  void find_files(const PluginHost& plugins) {
    for (const std::string& name : options_.files)
      files_.push_back({fs::absolute(name), owner_of(name)});
    if (!options_.files.empty()) return;
    for (const PluginRow& row : plugins.rows()) {
      if (row.state != "serving" && row.state != "idle") continue;
      const ManifestResult read = read_manifest(row.path);
      if (!read.manifest) continue;
      for (const TunedFile& file : tuned_files_of(*read.manifest))
        files_.push_back({file.path, read.manifest});
    }
  }

  void check(const RecordFile& file, const NumberedLine& line) {
    const TunedLine read = read_tuned_line(line.text);
    Json row = {{"state", "bad"},    {"place", str_cat(file.path.string(), ":", line.number)},
                {"op", ""},          {"shape", ""},
                {"plugin", ""},      {"variant", ""},
                {"detail", read.why}};
    if (read.record) {
      row["op"] = read.record->question.op;
      row["shape"] = read.record->question.shapes();
      row["plugin"] = read.record->plugin;
      row["variant"] = read.record->variant;
      try {
        row["detail"] = judge(*read.record, file.owner);
        row["state"] = row["detail"] == kPassed ? "passed" : "valid";
      } catch (const Bad& bad) {
        row["detail"] = bad.why;
      } catch (const Error& e) {
        row["detail"] = e.message();
      }
    }
    rows_.push_back(std::move(row));
  }

  // What was found out about a record that is not bad.
  std::string judge(const TunedRecord& record, const std::optional<Manifest>& owner) {
    const OpenQuestion question(record.question);
    if (owner && owner->id != record.plugin)
      throw Bad{"it is of plugin " + record.plugin + ", in the directory of " + owner->id};
    const DeviceInfo info = device_of(record);
    PluginHost& plugins = host_for(info, owner);
    const auto known = plugins.manifests("kernels");
    const auto manifest = std::find_if(known.begin(), known.end(),
                                       [&](const Manifest* m) { return m->id == record.plugin; });
    if (manifest == known.end())
      throw Bad{"no plugin " + record.plugin + " serves its device. " + plugins.rejections()};
    const std::string content = contents_.of(**manifest, find_op(record.question.op)).kernels;
    if (content != record.content)
      throw Bad{"it is of other kernels: content " + record.content + ", the plugin has " +
                content};
    if (!device_) return "read; the same content. Without a device its settings are not checked";
    const KernelSet set(plugins.load(record.plugin));
    const auto planner_on = [&](Device& device) {
      return [&](const KernelQuestion& asked, std::string* reason) {
        return set.plan(device, asked, record.variant, reason);
      };
    };
    FoundDevice stand_in = *found_;
    stand_in.info = info;
    Device recorded(stand_in, device_->context(), "", log_);
    std::string why;
    if (planner_on(recorded)(question.get(), &why) == nullptr)
      throw Bad{"the plugin does not take its settings: " + why};
    if (!record.device.same_model(tuned_device(device_->info())))
      return "its plugin takes the settings; its device is not here";
    const auto usual = [&](const KernelQuestion& asked, std::string* reason) {
      return KernelChoice(plugins, {}).least_specific(*device_, asked, reason);
    };
    const std::string wrong =
        VariantCheck(Queue::create(*device_), question.get(), usual).wrong(planner_on(*device_));
    if (!wrong.empty()) throw Bad{"its results are wrong: " + wrong};
    return kPassed;
  }

  // Plugins as they are chosen on the record's device.
  PluginHost& host_for(const DeviceInfo& info, const std::optional<Manifest>& owner) {
    const std::string directory = owner ? owner->directory.string() : "";
    auto& host = hosts_[join({info.vendor, info.arch, info.name, info.type,
                              std::to_string(info.compute_units), info.driver, directory},
                             "|")];
    if (host == nullptr) {
      PluginOptions plugins = options_.plugin_options();
      if (owner) plugins.paths.insert(plugins.paths.begin(), owner->directory);
      host = std::make_unique<PluginHost>(plugins, std::vector<DeviceInfo>{info}, Logger());
    }
    return *host;
  }

  static constexpr const char* kPassed = "results are right on this device";

  const CheckOptions& options_;
  const Logger log_;
  std::vector<RecordFile> files_;
  std::optional<FoundDevice> found_;
  PluginContents contents_;
  std::unique_ptr<Device> device_;
  std::map<std::string, std::unique_ptr<PluginHost>> hosts_;
  Json rows_ = Json::array();
};

}  // namespace

void add_tune_check(CLI::App& tune, Run& run) {
  auto options = std::make_shared<CheckOptions>();
  CLI::App* command = tune.add_subcommand(
      "check", "Check tuned records: those named, or all that plugins bring along");
  command->footer("Example: netcl-app tune check plugins/my-kernels/tuned/*.jsonl");
  command->add_option("FILES", options->files, "Files of records");
  command->add_option("--device", options->device,
                      "The device whose records' results are checked (default: the first)");
  add_common(*command, *options);
  command->callback([options, &run] { run = [options] { return RecordChecks(*options).run(); }; });
}

}  // namespace netcl::app
