#include "core/graph/size_limits.h"

#include <cstdio>
#include <limits>

#include "core/base/error.h"
#include "core/base/text.h"

namespace netcl {

namespace {

constexpr double kMostElements = std::numeric_limits<int32_t>::max();  // kernels count in 31 bits

double elements_of(const TensorDesc& desc) {
  double elements = 1;
  for (const int64_t d : desc.shape.dims()) elements *= static_cast<double>(d);
  return elements;
}

double bytes_of(const TensorDesc& desc) {
  return elements_of(desc) * static_cast<double>(size_of(desc.dtype));
}

}  // namespace

std::string bytes_text(double bytes) {
  char text[64];
  std::snprintf(text, sizeof(text), "%.0f bytes (%.1f GiB)", bytes, bytes / 1073741824.0);
  return text;
}

bool fits(const DeviceInfo& device, const TensorDesc& desc) {
  return bytes_of(desc) <= static_cast<double>(device.max_alloc_bytes) &&
         elements_of(desc) <= kMostElements;
}

void require_bytes(const DeviceInfo& device, double bytes, const std::string& what,
                   const std::string& advice) {
  if (bytes <= static_cast<double>(device.max_alloc_bytes)) return;
  fail(ErrorCode::kDevice, what, " needs ", bytes_text(bytes), " in one piece; ", device.selector,
       " (", device.name, ") allocates at most ",
       bytes_text(static_cast<double>(device.max_alloc_bytes)),
       " at once (max_alloc_bytes). To fit, ", advice);
}

void require_size(const DeviceInfo& device, const TensorDesc& desc, const std::string& what,
                  const std::string& advice) {
  require_bytes(device, bytes_of(desc), what, advice);
  const double elements = elements_of(desc);
  if (elements <= kMostElements) return;
  char text[64];
  std::snprintf(text, sizeof(text), "%.0f elements", elements);
  fail(ErrorCode::kDevice, what, " has ", text,
       "; kernels count at most 2147483647 on any device. ", "To fit, ", advice);
}

}  // namespace netcl
