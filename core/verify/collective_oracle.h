// What a collective must yield, one element at a time, written as plainly as can be and without a
// line of any transport's: sums in rank order, 16-bit floats through scaling by powers of two.
// Threads: any.
#ifndef NETCL_CORE_VERIFY_COLLECTIVE_ORACLE_H_
#define NETCL_CORE_VERIFY_COLLECTIVE_ORACLE_H_

#include <cstdint>
#include <vector>

namespace netcl {

// Of NETCL_F32 ...: bytes of an element.
uint64_t size_of_dtype(uint32_t dtype);
bool is_float_dtype(uint32_t dtype);

// The reduction `op` (NETCL_SUM ...) of one element's bits, of every rank in order; `weights` are
// the ranks', for NETCL_MEAN.
uint64_t reduce_element(uint32_t dtype, uint32_t op, const std::vector<uint64_t>& bits,
                        const std::vector<double>& weights);

}  // namespace netcl

#endif  // NETCL_CORE_VERIFY_COLLECTIVE_ORACLE_H_
