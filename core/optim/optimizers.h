// Optimisers by name, for programs: AdamW{.lr = 1e-3}. Each becomes an Optimizer, whose other
// fields (groups, clipping, averages) keep their defaults. Threads: values.
#ifndef NETCL_CORE_OPTIM_OPTIMIZERS_H_
#define NETCL_CORE_OPTIM_OPTIMIZERS_H_

#include "core/optim/optimizer.h"

namespace netcl {

struct Sgd {
  double lr = 0.01;
  double momentum = 0;
  double weight_decay = 0;
  bool nesterov = false;

  operator Optimizer() const {
    Optimizer out = Optimizer::sgd(lr);
    out.momentum = momentum;
    out.weight_decay = weight_decay;
    out.nesterov = nesterov;
    return out;
  }
};

struct Adam {
  double lr = 0.001;
  double beta1 = 0.9, beta2 = 0.999;
  double epsilon = 1e-8;
  double weight_decay = 0;

  operator Optimizer() const {
    Optimizer out = Optimizer::of(Optimizer::Type::kAdam);
    out.lr = lr;
    out.beta1 = beta1;
    out.beta2 = beta2;
    out.epsilon = epsilon;
    out.weight_decay = weight_decay;
    return out;
  }
};

struct AdamW {
  double lr = 0.001;
  double weight_decay = 0.01;
  double beta1 = 0.9, beta2 = 0.999;
  double epsilon = 1e-8;

  operator Optimizer() const {
    Optimizer out = Adam{lr, beta1, beta2, epsilon, weight_decay};
    out.type = Optimizer::Type::kAdamW;
    return out;
  }
};

}  // namespace netcl

#endif  // NETCL_CORE_OPTIM_OPTIMIZERS_H_
