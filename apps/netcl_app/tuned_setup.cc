#include "apps/netcl_app/tuned_setup.h"

#include <utility>

#include "core/runtime/tuned_kernels.h"
#include "core/verify/variant_check.h"

namespace netcl::app {

TunedOptions tuned_options(std::vector<TunedFile> files, Logger log) {
  TunedOptions out;
  out.files = std::move(files);
  out.verdicts = user_verdicts_file();
  out.check = variant_record_check();
  out.log = std::move(log);
  return out;
}

Json questions_json(const KernelChoice& kernels) {
  Json out = Json::array();
  for (const KernelChoice::Asked& asked : kernels.asked()) {
    out.push_back(Json::parse(question_json(asked.question)));
    out.back()["nodes"] = asked.times;
  }
  return out;
}

Json to_json(const std::vector<TunedFile>& files) {
  Json out = Json::array();
  for (const TunedFile& file : files)
    out.push_back({{"path", file.path.string()}, {"bytes", file.bytes}, {"plugin", file.plugin}});
  return out;
}

std::vector<TunedFile> tuned_files_from_json(const Json& json) {
  std::vector<TunedFile> out;
  for (const Json& file : json)
    out.push_back({file.at("path").get<std::string>(), file.at("bytes").get<uint64_t>(),
                   file.at("plugin").get<std::string>()});
  return out;
}

}  // namespace netcl::app
