#include "core/cl/icd.h"

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <set>

#include "core/base/environment.h"
#include "core/base/error.h"
#include "core/base/file.h"

namespace netcl {
namespace fs = std::filesystem;

namespace {

constexpr const char* kVendors = "/etc/OpenCL/vendors";

bool is_file_name(const std::string& driver) { return fs::path(driver).extension() == ".icd"; }

// The library that an ICD file names, or "".
std::string library_of(const std::string& icd_file) {
  std::string text;
  try {
    text = read_file(icd_file, ErrorCode::kDevice);
  } catch (const Error&) {  // whoever opens the driver says that it cannot be opened
  }
  text = text.substr(0, text.find('\n'));
  while (!text.empty() && std::isspace(static_cast<unsigned char>(text.back())) != 0) {
    text.pop_back();
  }
  return text;
}

std::vector<std::string> icd_files() {
  const fs::path place = environment::icd_vendors().value_or(kVendors);
  std::error_code error;
  if (fs::is_regular_file(place, error)) return {place.string()};
  std::vector<std::string> out;
  for (const auto& entry : fs::directory_iterator(place, error)) {
    if (is_file_name(entry.path().string())) out.push_back(entry.path().string());
  }
  std::sort(out.begin(), out.end());
  return out;
}

}  // namespace

std::vector<std::string> icd_drivers() {
  std::vector<std::string> out = icd_files();
  std::set<std::string> libraries;
  for (const std::string& file : out) libraries.insert(library_of(file));
  for (const std::string& name : environment::icd_filenames()) {
    if (libraries.insert(name).second) out.push_back(name);
  }
  return out;
}

// ocl-icd takes an ICD file or a library as OCL_ICD_VENDORS. Khronos' loader takes directories
// only, finds nothing there, and opens the library that OCL_ICD_FILENAMES names. A loader that
// honours both sees one platform twice, which enumerate_devices notices.
std::vector<std::string> only_driver(const std::string& driver) {
  if (driver.empty()) return {};
  const std::string library = is_file_name(driver) ? library_of(driver) : driver;
  return {"OCL_ICD_VENDORS=" + driver,
          library.empty() ? "OCL_ICD_FILENAMES" : "OCL_ICD_FILENAMES=" + library};
}

}  // namespace netcl
