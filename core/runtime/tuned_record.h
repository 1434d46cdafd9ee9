// A tuned record: which variant of a kernel set was measured to be the fastest for one question on
// one model of device, and with which software. One record is one line of JSON; plugins/README.md
// lists its keys.
//
// Reading is a pure function of the text. Whatever bytes a file holds, a line is a record or a
// reason why it is none.
// Threads: any.
#ifndef NETCL_CORE_RUNTIME_TUNED_RECORD_H_
#define NETCL_CORE_RUNTIME_TUNED_RECORD_H_

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/cl/device_info.h"
#include "core/ops/kernel_provider.h"

namespace netcl {

// A model of device, and the facts by which kernel sets plan for it.
struct TunedDevice {
  std::string vendor, arch, name;
  int64_t compute_units = 0;
  std::string type;  // the rest may be unknown: "" and 0
  int64_t max_work_group = 0, local_mem_bytes = 0, max_alloc_bytes = 0, vector_width_float = 0;

  bool same_model(const TunedDevice& o) const;
  bool same_arch(const TunedDevice& o) const;  // of one vendor; an unknown arch is like no other
};
TunedDevice tuned_device(const DeviceInfo& info);

struct TunedSoftware {
  std::string platform, opencl, driver;

  bool operator==(const TunedSoftware& o) const {
    return platform == o.platform && opencl == o.opencl && driver == o.driver;
  }
  std::string str() const;
};
TunedSoftware tuned_software(const DeviceInfo& info);

// An op with concrete inputs, as plain data. Attributes are JSON with sorted keys, so that equal
// ones are equal text.
struct TunedQuestion {
  std::string op;
  std::vector<TensorDesc> in;
  std::string attributes = "{}";

  bool same_kind(const TunedQuestion& o) const;  // all but the shapes is equal
  bool same_shapes(const TunedQuestion& o) const;
  std::string shapes() const;  // "512x512 512x512"
  std::string text() const;    // equal for equal questions
};
TunedQuestion tuned_question(const KernelQuestion& question);
TunedQuestion tuned_question(const std::string& op, const std::vector<TensorDesc>& in,
                             const Attrs& attrs);
// The attributes as an op takes them (complete_attrs turns them into the kinds that it wants).
// Errors: kUsage for text that is no object of numbers, texts and lists of integers.
Attrs attrs_of(const TunedQuestion& question);

struct TunedRecord {
  TunedQuestion question;
  std::string numerics = "fp32";
  TunedDevice device;
  TunedSoftware software;
  std::string plugin, content, variant;  // content: of the op's kernels (plugin_content.h)
  double median_us = 0, spread = 0;      // spread: interquartile range, as a part of the median
  std::string default_plugin, default_variant;  // what is chosen without records
  double default_us = 0;
  std::vector<std::string> kernel_sets;  // those whose kernels took part in the search
  std::string check, date;

  double speedup() const { return default_us / median_us; }
};

struct TunedLine {
  std::optional<TunedRecord> record;
  std::string why;  // it is none; empty if it is one
};
TunedLine read_tuned_line(std::string_view line);
// One line, without the newline. read_tuned_line gives the record back.
std::string tuned_line(const TunedRecord& record);

// A question as a document, {"op", "dtypes", "shapes", "attributes"}, in text, and back. Errors of
// the latter: kUsage.
std::string question_json(const TunedQuestion& question);
TunedQuestion question_from_json(const std::string& text);

}  // namespace netcl

#endif  // NETCL_CORE_RUNTIME_TUNED_RECORD_H_
