// Reads and writes safetensors files: a JSON header, then the tensors' bytes. Threads: any.
//
// A file that is read is not trusted: lengths, offsets, types and shapes are checked against each
// other and against the file's size before any tensor is made.
// Source: https://github.com/huggingface/safetensors, section "Format".
#ifndef NETCL_CORE_NN_SAFETENSORS_H_
#define NETCL_CORE_NN_SAFETENSORS_H_

#include <filesystem>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "core/tensor/shape.h"

namespace netcl {

// A tensor on the host; `bytes` holds desc().size_bytes() of them, row-major, little-endian.
struct NamedTensor {
  std::string name;
  DType dtype = DType::kF32;
  Shape shape;
  std::string bytes;

  TensorDesc desc() const { return {dtype, shape}; }
};

struct Safetensors {
  std::vector<NamedTensor> tensors;             // in the order of their bytes
  std::map<std::string, std::string> metadata;  // the header's __metadata__

  // nullptr if there is none.
  const NamedTensor* find(std::string_view name) const;
};

// The file's bytes. Errors: kInternal for two tensors of one name, the name "__metadata__", or
// bytes that do not fit the shape.
std::string to_safetensors(const Safetensors& content);

// Parses a file's bytes; `name` stands for the file in messages.
// Errors: kCheckpoint, naming the file and the tensor: truncated or too long a file, a header that
// is no JSON or lies, types other than F32, I32 and U8, tensors that overlap or leave gaps.
Safetensors parse_safetensors(std::string_view bytes, const std::string& name);

// Writes by temporary file, fsync and rename. Errors: kCheckpoint, also for a full disk; the old
// file stays then.
void write_safetensors(const std::filesystem::path& path, const Safetensors& content);

// Errors: kCheckpoint.
Safetensors read_safetensors(const std::filesystem::path& path);

}  // namespace netcl

#endif  // NETCL_CORE_NN_SAFETENSORS_H_
