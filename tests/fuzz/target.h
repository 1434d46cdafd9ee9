// What every fuzz target shares. libFuzzer calls LLVMFuzzerTestOneInput; where there is none,
// replay.cc does.
#ifndef NETCL_TESTS_FUZZ_TARGET_H_
#define NETCL_TESTS_FUZZ_TARGET_H_

#include <cstddef>
#include <cstdint>
#include <cstdlib>

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);

// What must hold whatever the input is.
inline void must(bool holds) {
  if (!holds) std::abort();
}

#endif  // NETCL_TESTS_FUZZ_TARGET_H_
