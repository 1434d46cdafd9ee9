#include "apps/netcl_app/job.h"

#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "apps/netcl_app/tuned_setup.h"
#include "core/base/error.h"

namespace netcl::app {

namespace {

// Calls visit(key, member) for the plain members, so that both directions share one list.
template <typename J, typename Visit>
void visit_members(J& job, Visit&& visit) {
  visit("mode", job.mode);
  visit("config", job.config);
  visit("config_name", job.config_name);
  visit("rank", job.rank);
  visit("n_ranks", job.n_ranks);
  visit("place", job.place);
  visit("n_places", job.n_places);
  visit("places", job.places);
  visit("generation", job.generation);
  visit("survives", job.survives);
  visit("regroups", job.regroups);
  visit("snapshot", job.snapshot);
  visit("parent", job.parent);
  visit("share_index", job.share_index);
  visit("share_count", job.shares.count);
  visit("share_units", job.shares.units);
  visit("label", job.label);
  visit("labels", job.labels);
  visit("place_labels", job.place_labels);
  visit("disable_plugins", job.plugins.disable);
  visit("only_plugins", job.plugins.only);
  visit("transport", job.transport);
  visit("shard", job.shard);
  visit("update", job.update);
  visit("bucket_bytes", job.bucket_bytes);
  visit("cores", job.cores);
  visit("without_passes", job.without_passes);
  visit("kept_ops", job.kept_ops);
  visit("checkpoints", job.checkpoints);
  visit("resume", job.resume);
  visit("max_steps", job.max_steps);
  visit("trace_after", job.trace_after);
  visit("trace_steps", job.trace_steps);
  visit("bench", job.bench);
  visit("has_test", job.has_test);
  visit("timeout_ms", job.timeout_ms);
  visit("stall_seconds", job.stall_seconds);
}

}  // namespace

Json to_json(const Job& job) {
  Json out;
  visit_members(job, [&](const char* key, const auto& member) { out[key] = member; });
  out["device"] = netcl::to_json(job.device);
  out["devices"] = Json::array();
  for (const DeviceInfo& device : job.devices) out["devices"].push_back(netcl::to_json(device));
  out["members"] = Json::array();
  for (const WorkerPlace& member : job.members)
    out["members"].push_back({{"device", netcl::to_json(member.device)},
                              {"index", member.share_index},
                              {"count", member.shares.count},
                              {"units", member.shares.units}});
  out["plugin_paths"] = Json::array();
  for (const auto& path : job.plugins.paths) out["plugin_paths"].push_back(path.string());
  out["tuned"] = to_json(job.tuned);
  out["pins"] = Json::object();
  for (const auto& [op, pin] : job.pins) out["pins"][op] = {pin.plugin, pin.variant};
  return out;
}

Job job_from_json(const Json& json) {
  Job out;
  visit_members(out, [&](const char* key, auto& member) { json.at(key).get_to(member); });
  out.device = device_info_from_json(json.at("device"));
  for (const Json& device : json.at("devices"))
    out.devices.push_back(device_info_from_json(device));
  for (const Json& member : json.at("members")) {
    WorkerPlace place;
    place.device = device_info_from_json(member.at("device"));
    member.at("index").get_to(place.share_index);
    member.at("count").get_to(place.shares.count);
    member.at("units").get_to(place.shares.units);
    out.members.push_back(std::move(place));
  }
  for (const Json& path : json.at("plugin_paths"))
    out.plugins.paths.emplace_back(path.get<std::string>());
  out.tuned = tuned_files_from_json(json.at("tuned"));
  for (const auto& item : json.at("pins").items()) {
    out.pins[item.key()] = {item.value()[0].get<std::string>(), item.value()[1].get<std::string>()};
  }
  return out;
}

UniqueFd text_to_memfd(const std::string& text) {
  UniqueFd fd(::memfd_create("netcl-job", MFD_CLOEXEC));
  NETCL_CHECK(fd.valid(), ErrorCode::kTraining, "memfd_create failed: ", std::strerror(errno));
  for (size_t done = 0; done < text.size();) {
    const ssize_t n =
        ::pwrite(fd.get(), text.data() + done, text.size() - done, static_cast<off_t>(done));
    NETCL_CHECK(n > 0, ErrorCode::kTraining, "writing a job of ", text.size(),
                " bytes failed: ", std::strerror(errno));
    done += static_cast<size_t>(n);
  }
  return fd;
}

std::string text_from_fd(int fd) {
  struct stat info {};
  NETCL_CHECK(::fstat(fd, &info) == 0, ErrorCode::kInternal, "descriptor ", fd, ": ",
              std::strerror(errno));
  std::string out(static_cast<size_t>(info.st_size), '\0');
  for (size_t done = 0; done < out.size();) {
    const ssize_t n = ::pread(fd, out.data() + done, out.size() - done, static_cast<off_t>(done));
    NETCL_CHECK(n > 0, ErrorCode::kInternal, "descriptor ", fd, " ended after ", done, " bytes");
    done += static_cast<size_t>(n);
  }
  return out;
}

}  // namespace netcl::app
