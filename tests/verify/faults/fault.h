// Which fault a plugin of the tests has: the word in the file `fault` beside its library; none
// without it. So one library serves many tests, and its right twin is the same code.
#ifndef NETCL_TESTS_VERIFY_FAULTS_FAULT_H_
#define NETCL_TESTS_VERIFY_FAULTS_FAULT_H_

#include <dlfcn.h>

#include <cstdio>
#include <cstring>

namespace faults {

// True if the plugin has the fault of that name. Works before anything is constructed.
inline bool has(const char* name) {
  static char chosen[64] = "";
  static bool read = false;
  if (!read) {
    read = true;
    Dl_info info{};
    char path[4096];
    if (dladdr(reinterpret_cast<const void*>(&has), &info) != 0 &&
        std::strlen(info.dli_fname) + sizeof("fault") < sizeof(path)) {
      std::strcpy(path, info.dli_fname);
      std::strcpy(std::strrchr(path, '/') + 1, "fault");
      if (std::FILE* file = std::fopen(path, "r")) {
        if (std::fscanf(file, "%63s", chosen) != 1) chosen[0] = 0;
        std::fclose(file);
      }
    }
  }
  return std::strcmp(chosen, name) == 0;
}

// A real fault: OpenCL drivers catch a SIGSEGV that is raised.
inline void crash() {
  volatile int* volatile nowhere = nullptr;
  *nowhere = 1;
}

inline void hang() {
  for (volatile unsigned turns = 0;; ++turns) {
  }
}

}  // namespace faults

#endif  // NETCL_TESTS_VERIFY_FAULTS_FAULT_H_
