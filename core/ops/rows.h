// The families of the op table: each function appends its rows. op_table.cc lists them.
#ifndef NETCL_CORE_OPS_ROWS_H_
#define NETCL_CORE_OPS_ROWS_H_

#include <vector>

#include "core/ops/op.h"

namespace netcl {

void add_unary_rows(std::vector<OpRow>& rows);          // rows_elementwise.cc
void add_binary_rows(std::vector<OpRow>& rows);         // rows_binary.cc
void add_activation_rows(std::vector<OpRow>& rows);     // rows_activation.cc
void add_layout_rows(std::vector<OpRow>& rows);         // rows_layout.cc
void add_index_rows(std::vector<OpRow>& rows);          // rows_index.cc
void add_gather_rows(std::vector<OpRow>& rows);         // rows_gather.cc
void add_reduce_rows(std::vector<OpRow>& rows);         // rows_reduce.cc
void add_matmul_rows(std::vector<OpRow>& rows);         // rows_matmul.cc
void add_attention_rows(std::vector<OpRow>& rows);      // rows_attention.cc
void add_softmax_rows(std::vector<OpRow>& rows);        // rows_softmax.cc
void add_cross_entropy_rows(std::vector<OpRow>& rows);  // rows_cross_entropy.cc
void add_loss_rows(std::vector<OpRow>& rows);           // rows_loss.cc
void add_random_rows(std::vector<OpRow>& rows);         // rows_random.cc
void add_norm_rows(std::vector<OpRow>& rows);           // rows_norm.cc
void add_batch_norm_rows(std::vector<OpRow>& rows);     // rows_batch_norm.cc
void add_collective_rows(std::vector<OpRow>& rows);     // rows_collective.cc
void add_recurrent_rows(std::vector<OpRow>& rows);      // rows_recurrent.cc
void add_optim_rows(std::vector<OpRow>& rows);          // rows_optim.cc
void add_chain_rows(std::vector<OpRow>& rows);          // rows_chain.cc
void add_conv_rows(std::vector<OpRow>& rows);           // rows_conv.cc
void add_pool_rows(std::vector<OpRow>& rows);           // rows_pool.cc
void add_update_rows(std::vector<OpRow>& rows);         // rows_update.cc

}  // namespace netcl

#endif  // NETCL_CORE_OPS_ROWS_H_
