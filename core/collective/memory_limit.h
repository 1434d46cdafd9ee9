// How much memory the system can still give this process.
//
// Allocating the pages of a memfd does not fail when memory runs out: the kernel ends processes
// instead. So whoever allocates shared memory asks here first. Threads: any.
#ifndef NETCL_CORE_COLLECTIVE_MEMORY_LIMIT_H_
#define NETCL_CORE_COLLECTIVE_MEMORY_LIMIT_H_

#include <cstdint>

namespace netcl {

// Bytes available without swapping: what the kernel estimates, or what the process's control group
// leaves of its limit, whichever is less. Without either figure: no limit.
uint64_t available_memory_bytes();

// posix_fallocate behind a check: returns 0, ENOMEM when `bytes` would leave less than a 32nd of
// what is available, or the system's error.
int allocate_pages(int fd, uint64_t offset_bytes, uint64_t bytes);

}  // namespace netcl

#endif  // NETCL_CORE_COLLECTIVE_MEMORY_LIMIT_H_
