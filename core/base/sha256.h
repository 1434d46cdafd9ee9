// SHA-256 of a file's bytes, by Mbed TLS.
#ifndef NETCL_CORE_BASE_SHA256_H_
#define NETCL_CORE_BASE_SHA256_H_

#include <string>
#include <string_view>

namespace netcl {

// 64 lower-case hexadecimal digits.
std::string sha256_hex(std::string_view bytes);

}  // namespace netcl

#endif  // NETCL_CORE_BASE_SHA256_H_
