// variants.json as read: which kernels serve an op, when, and how they are launched.
//
//   { "ops": {"matmul": [VARIANT, ...], "sum mean": [VARIANT, ...]},
//     "families": {"elementwise": [VARIANT, ...]} }
//
// A key of "ops" may name several ops that share their variants, separated by a space.
// VARIANT (tried in order; an op's own list comes before its family's)
//   id        name for pins and tuning
//   needs     what it needs, in words
//   when      expression: can it serve at all (default 1)
//   prefer    expression: choose it unasked; variants whose `prefer` is 0 are left for last
//   tunables  {NAME: {"values": [integer, ...], "default": expression}}: knobs; each NAME is usable
//             from `let` on, in every expression and text
//   let       {name: expression}, evaluated in order, names usable from `when` on
//   scratch   [bytes, ...] expressions
//   launches  [LAUNCH, ...] in order
// LAUNCH
//   sources   .cl files, concatenated
//   entry     kernel name                                            (text)
//   defines   {"NAME" or "NAME(a,b)": text}; emitted as #define lines before the sources
//   options   build options                                          (text)
//   args      ["in0", "in2?", "out0", "scratch0", "local:EXPR" (bytes), "i32:EXPR", "i64:EXPR",
//              "f32:NAME", "i32x8:NAME"]; '?' after in: input 0 stands in for an absent one; after
//              f32: and i32x8: names: zeros stand in
//   global    1 to 3 expressions; local as many, or absent: the driver chooses
//   if        expression: launch only then
// In (text), $name and ${expression} are replaced and $$ is a dollar sign.
//
// Names in expressions: op (its name); the op's integer attributes and facts, its text attributes,
// n_in, n_out; in0_rank in0_n in0_d0 ... in0_dtype ('f32') in0_type ('float') and the same for out0
// ...; the device facts of kDeviceFacts; arch (text); cl_khr_fp64 and the like, 1 if the device has
// the extension, else 0; then `let`. An absent one of the first six inputs has the dtype and type
// of input 0 (if any).
#ifndef NETCL_PLUGINS_PACK_VARIANTS_H_
#define NETCL_PLUGINS_PACK_VARIANTS_H_

#include <array>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "plugins/pack/expr.h"
#include "plugins/pack/template.h"

namespace netcl {
namespace pack {

inline constexpr std::array<const char*, 9> kDeviceFacts = {
    "is_cpu",          "is_gpu",          "compute_units",      "max_work_group",
    "local_mem_bytes", "max_alloc_bytes", "vector_width_float", "subgroup_min",
    "subgroup_max"};

// One kernel argument. kind is NETCL_ARG_*; buffers have `index`, the rest `expr` or `name`.
struct ArgSpec {
  std::string text;  // as written, for messages
  uint32_t kind = 0;
  uint32_t index = 0;
  bool optional = false;
  std::optional<Expr> expr;  // LOCAL, I32, I64
  std::string name;          // F32, I32X8: the attribute
};

struct LaunchSpec {
  std::vector<std::string> sources;
  Template entry, options;
  std::vector<std::pair<std::string, Template>> defines;
  std::vector<ArgSpec> args;
  std::vector<Expr> global, local;
  std::optional<Expr> condition;
};

struct TunableSpec {
  std::string name;
  std::vector<int64_t> values;  // those worth trying
  Expr def;
};

struct VariantSpec {
  std::string id, needs;
  std::vector<TunableSpec> tunables;
  std::optional<Expr> when, prefer;
  std::vector<std::pair<std::string, Expr>> let;
  std::vector<Expr> scratch;
  std::vector<LaunchSpec> launches;
};

struct VariantFile {
  std::vector<std::string> files;  // further files of the same form, in the plugin's directory
  std::map<std::string, std::vector<VariantSpec>, std::less<>> ops, families;
};

// Reads the text of a variants.json; `file` names it in messages.
// Errors: plugin::Failure(NETCL_E_ARG) "FILE: PATH: what is wrong", or with line and column where
// the text is no JSON.
VariantFile read_variants(std::string_view text, const std::string& file);
// Adds the ops and families of a further file. Errors: as above, for an op that `out` has already.
void merge_variants(VariantFile part, const std::string& file, VariantFile* out);

}  // namespace pack
}  // namespace netcl

#endif  // NETCL_PLUGINS_PACK_VARIANTS_H_
