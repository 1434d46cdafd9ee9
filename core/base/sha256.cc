#include "core/base/sha256.h"

#include <mbedtls/sha256.h>

#include <array>

#include "core/base/error.h"

namespace netcl {

std::string sha256_hex(std::string_view bytes) {
  std::array<unsigned char, 32> digest{};
  const int status = mbedtls_sha256_ret(reinterpret_cast<const unsigned char*>(bytes.data()),
                                        bytes.size(), digest.data(), 0);
  NETCL_CHECK(status == 0, ErrorCode::kInternal, "SHA-256 failed with status ", status);
  std::string out;
  for (const unsigned char byte : digest) {
    out += "0123456789abcdef"[byte >> 4];
    out += "0123456789abcdef"[byte & 15];
  }
  return out;
}

}  // namespace netcl
