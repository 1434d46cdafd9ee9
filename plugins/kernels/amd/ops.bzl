"""The ops that the set amd has kernels for."""

OPS = [
    "conv2d",
    "conv2d_grad_input",
    "conv_transpose2d",
    "cross_entropy",
    "cross_entropy_grad",
    "cross_entropy_with_grad",
    "group_norm",
    "layer_norm",
    "log_softmax",
    "log_softmax_grad",
    "matmul",
    "norm_grad_input",
    "norm_stats",
    "rms_norm",
    "softmax",
    "softmax_grad",
]
