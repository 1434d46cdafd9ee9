// Checks of one layer with one example, on the host, in double precision. Each returns what is
// wrong, in words; an error that the layer has no reason for is thrown as it comes.
// Threads: those of the layers' provider.
#ifndef NETCL_CORE_VERIFY_LAYER_CHECK_H_
#define NETCL_CORE_VERIFY_LAYER_CHECK_H_

#include <string>
#include <vector>

#include "core/verify/layer_example.h"

namespace netcl {

struct LayerFindings {
  std::vector<std::string> wrong;
  size_t tried = 0;  // batches, directions, traces or configurations
};

// Whether its checks take so long that one example must do.
bool is_large(const TracedExample& traced);

// Batches of several sizes, also none: outputs have the shapes that the trace says, and in
// evaluation a sample's output does not depend on the samples beside it.
LayerFindings check_layer_shapes(const LayerExample& example, LayerProvider& layers);

// Every parameter has a gradient, and gradients of parameters and inputs equal finite differences.
LayerFindings check_layer_gradients(const LayerExample& example, LayerProvider& layers);

// Traced again, also after others of `examples`, it is the same, down to its random streams (so a
// replay draws the same numbers); training and evaluation have the same parameters.
LayerFindings check_layer_replay(const std::vector<LayerExample>& examples, LayerProvider& layers);

// Values that no one would want, for each key, and inputs of odd types and shapes: they are taken,
// or refused with words. (That they do not end the process is for the caller to see.)
LayerFindings check_layer_attributes(const LayerExample& example, LayerProvider& layers);

}  // namespace netcl

#endif  // NETCL_CORE_VERIFY_LAYER_CHECK_H_
