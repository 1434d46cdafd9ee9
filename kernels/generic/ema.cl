// ema_step: an exponential moving average of the parameters.
//
// Contract   ema, param f32[n], divisor f32[1] -> ema + (param - ema) (1 - decay); as it is for a
//            divisor that is no finite number (the step was skipped). May be in place.
// Divisible  nothing. One element a work-item.

__kernel void ema_generic_dense(__global const float* ema, __global const float* param,
                                __global const float* divisor, __global float* ema_out, const int n,
                                const float decay) {
  const int i = (int)get_global_id(0);
  if (i >= n) return;
  const float old = ema[i];
  ema_out[i] = isfinite(divisor[0]) ? old + (param[i] - old) * (1.0f - decay) : old;
}
