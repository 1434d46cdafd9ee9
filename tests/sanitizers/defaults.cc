// What the sanitizers are told in every test: options, and what is not netcl's to mend. Linked into
// each test by //third_party:gtest; without a sanitizer nobody calls these functions.
// The sanitizers call them before main and keep no more than the returned literals.

#define NETCL_SANITIZER_DEFAULT extern "C" __attribute__((visibility("default"), used)) const char*

NETCL_SANITIZER_DEFAULT __asan_default_options();
NETCL_SANITIZER_DEFAULT __lsan_default_suppressions();
NETCL_SANITIZER_DEFAULT __ubsan_default_options();
NETCL_SANITIZER_DEFAULT __tsan_default_options();
NETCL_SANITIZER_DEFAULT __tsan_default_suppressions();

// detect_odr_violation: plugins link the same static libraries as the test, with hidden symbols;
// each has its own copy on purpose.
NETCL_SANITIZER_DEFAULT __asan_default_options() {
  return "detect_stack_use_after_return=1:strict_string_checks=1:detect_odr_violation=0";
}

NETCL_SANITIZER_DEFAULT __ubsan_default_options() { return "print_stacktrace=1:halt_on_error=1"; }

// OpenCL drivers keep platforms, devices, compilers and caches until the process ends, and have no
// call that would free them; LLVM the same. Leaks of netcl's own allocations do not pass through
// these modules.
NETCL_SANITIZER_DEFAULT __lsan_default_suppressions() {
  // Libraries of plugins and what they hold stay until the process ends
  // (core/runtime/plugin_host.h).
  return "leak:netcl::PluginHost::load\n"
         "leak:libOpenCL.so\n"
         "leak:libpocl.so\n"
         "leak:libLLVM\n"
         "leak:libclang-cpp\n"
         "leak:liboclgrind\n"
         "leak:libhwloc\n"
         "leak:libltdl\n"
         // The dynamic loader's own bookkeeping of libraries that stay open.
         "leak:ld-linux-x86-64.so\n";
}

// PoCL's threads, and the kernels that it compiles, are not instrumented: their locks are unseen,
// and so is every order that they establish. Accesses made by them are not judged.
NETCL_SANITIZER_DEFAULT __tsan_default_options() {
  return "ignore_noninstrumented_modules=1:die_after_fork=0:second_deadlock_stack=1";
}

NETCL_SANITIZER_DEFAULT __tsan_default_suppressions() {
  return "called_from_lib:libpocl.so\n"
         "called_from_lib:libOpenCL.so\n"
         "called_from_lib:libLLVM\n"
         "called_from_lib:libclang-cpp\n"
         "mutex:libpocl.so\n"
         "deadlock:libpocl.so\n"
         "thread:libpocl.so\n"
         "race:libpocl.so\n"
         "race:libLLVM\n";
}
