// sgd_step and adamw_step: one fused update of a flat arena of parameters.
//
// Contract   every tensor f32[n], grad at least grad_offset + n; hyper f32[8], divisor f32[1]. The gradient is divided by divisor[0]
//            first (0: it counts as zero). Outputs may be the same memory as the inputs.
//            sgd hyper: learning rate, momentum, dampening, weight decay, nesterov, first step.
//            adamw hyper: learning rate, beta1, beta2, epsilon, weight decay, 1 - beta1^t,
//            1 - beta2^t. Without momentum sgd leaves the momentum tensor as it is.
// Divisible  nothing. One element a work-item, straight-line code.
// Order      of operations as in PyTorch.

static inline float mean_gradient(const float sum, const float denominator) {
  return denominator == 0.0f ? 0.0f : sum / denominator;
}

__kernel void sgd_step_generic_dense(__global const float* param, __global const float* grad,
                                     __global const float* momentum, __global const float* hyper,
                                     __global const float* divisor, __global float* param_out,
                                     __global float* momentum_out, const int n,
                                       const int grad_offset) {
  const int i = (int)get_global_id(0);
  if (i >= n) return;
  const float rate = hyper[0], mu = hyper[1], dampening = hyper[2], decay = hyper[3];
  const float p = param[i], old = momentum[i];
  const float g = mean_gradient(grad[grad_offset + i], divisor[0]) + decay * p;
  const float moved = hyper[5] != 0.0f ? g : mu * old + (1.0f - dampening) * g;
  const float buffer = mu != 0.0f ? moved : old;
  const float with_momentum = hyper[4] != 0.0f ? g + mu * moved : moved;
  const float direction = mu != 0.0f ? with_momentum : g;
  momentum_out[i] = buffer;
  param_out[i] = p - rate * direction;
}

__kernel void adamw_step_generic_dense(__global const float* param, __global const float* grad,
                                       __global const float* m, __global const float* v,
                                       __global const float* hyper, __global const float* divisor,
                                       __global float* param_out, __global float* m_out,
                                       __global float* v_out, const int n,
                                       const int grad_offset) {
  const int i = (int)get_global_id(0);
  if (i >= n) return;
  const float rate = hyper[0], beta1 = hyper[1], beta2 = hyper[2], epsilon = hyper[3];
  const float g = mean_gradient(grad[grad_offset + i], divisor[0]);
  const float p = param[i] * (1.0f - rate * hyper[4]);
  const float m_new = m[i] + (g - m[i]) * (1.0f - beta1);
  const float v_new = v[i] * beta2 + (1.0f - beta2) * g * g;
  const float denominator = sqrt(v_new) / sqrt(hyper[6]) + epsilon;
  m_out[i] = m_new;
  v_out[i] = v_new;
  param_out[i] = p - rate / hyper[5] * (m_new / denominator);
}
