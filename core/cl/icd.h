// OpenCL drivers as the loader sees them, one by one.
//
// A driver is named by its ICD file ("/etc/OpenCL/vendors/pocl.icd") or by its library
// ("libnvidia-opencl.so.1", from OCL_ICD_FILENAMES). No OpenCL is opened here.
#ifndef NETCL_CORE_CL_ICD_H_
#define NETCL_CORE_CL_ICD_H_

#include <string>
#include <vector>

namespace netcl {

// The drivers that the loader would open: ICD files, sorted, then libraries that no file names.
std::vector<std::string> icd_drivers();

// Changes of the environment with which a process opens only this driver; none for "".
std::vector<std::string> only_driver(const std::string& driver);

}  // namespace netcl

#endif  // NETCL_CORE_CL_ICD_H_
