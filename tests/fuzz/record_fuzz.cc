// A line of a file of tuned records: any bytes are a record or a reason; a record survives being
// written and read again, and its attributes are attributes.
#include "core/base/error.h"
#include "core/runtime/tuned_record.h"
#include "tests/fuzz/target.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const netcl::TunedLine line = netcl::read_tuned_line({reinterpret_cast<const char*>(data), size});
  must(line.record.has_value() == line.why.empty());
  if (!line.record) return 0;
  const std::string written = netcl::tuned_line(*line.record);
  const netcl::TunedLine again = netcl::read_tuned_line(written);
  must(again.record && netcl::tuned_line(*again.record) == written);
  must(line.record->median_us > 0);
  netcl::attrs_of(line.record->question);
  line.record->question.shapes();
  return 0;
}
