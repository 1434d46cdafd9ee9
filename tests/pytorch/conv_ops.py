#!/usr/bin/env python3
"""Writes conv_ops.json: outputs and gradients of convolution and pooling layers, computed by PyTorch
in double precision. Needs torch; netcl itself does not.

A case: the layer's keys as in a model's configuration, x, the slots by name, dy, and y, dx and the
slots' gradients of the loss sum(y dy). Tensors are {"shape", "data"}.

Usage: conv_ops.py FILE
"""
import json
import sys

import torch
from torch import nn


def tensor(t):
    return {"shape": list(t.shape), "data": [float(f"{v:.9g}") for v in t.detach().flatten().tolist()]}


def case(config, module, shape):
    module = module.double()
    x = torch.randn(shape, dtype=torch.float64).float().double().requires_grad_()
    for parameter in module.parameters():
        parameter.data = parameter.data.float().double()
    y = module(x)
    dy = torch.randn_like(y).float().double()
    (y * dy).sum().backward()
    slots = dict(module.named_parameters())
    return {
        "layer": config,
        "x": tensor(x),
        "dy": tensor(dy),
        "y": tensor(y),
        "dx": tensor(x.grad),
        "slots": {name: tensor(p) for name, p in slots.items()},
        "grads": {name: tensor(p.grad) for name, p in slots.items()},
    }


class GlobalAverage(nn.Module):
    def forward(self, x):
        return x.mean((2, 3))


def cases():
    yield case({"type": "conv2d", "out": 4, "kernel": 3}, nn.Conv2d(3, 4, 3), (2, 3, 6, 7))
    yield case({"type": "conv2d", "out": 6, "kernel": [3, 2], "stride": [2, 1], "padding": [1, 2], "dilation": [1, 2],
                "groups": 2, "bias": False},
               nn.Conv2d(4, 6, (3, 2), (2, 1), (1, 2), (1, 2), groups=2, bias=False), (2, 4, 7, 6))
    yield case({"type": "conv2d", "out": 8, "kernel": 3, "padding": 1, "groups": 4, "stride": 2},
               nn.Conv2d(4, 8, 3, 2, 1, groups=4), (1, 4, 5, 8))
    yield case({"type": "conv2d", "out": 5, "kernel": 1, "stride": 3}, nn.Conv2d(2, 5, 1, 3), (2, 2, 8, 8))
    yield case({"type": "conv1d", "out": 3, "kernel": 4, "stride": 2, "padding": 3, "dilation": 2},
               nn.Conv1d(2, 3, 4, 2, 3, 2), (3, 2, 11))
    yield case({"type": "conv_transpose2d", "out": 3, "kernel": 3, "stride": 2, "padding": 1, "output_padding": 1},
               nn.ConvTranspose2d(4, 3, 3, 2, 1, 1), (2, 4, 3, 4))
    yield case({"type": "conv_transpose2d", "out": 4, "kernel": [2, 3], "stride": [3, 1], "groups": 2,
                "dilation": [1, 2], "output_padding": [2, 0], "bias": False},
               nn.ConvTranspose2d(2, 4, (2, 3), (3, 1), 0, (2, 0), 2, False, (1, 2)), (1, 2, 3, 3))
    yield case({"type": "max_pool2d", "kernel": 2}, nn.MaxPool2d(2), (2, 3, 6, 5))
    yield case({"type": "max_pool2d", "kernel": [3, 2], "stride": 2, "padding": [1, 0], "ceil_mode": True},
               nn.MaxPool2d((3, 2), 2, (1, 0), ceil_mode=True), (1, 2, 8, 7))
    yield case({"type": "max_pool1d", "kernel": 3, "stride": 2}, nn.MaxPool1d(3, 2), (2, 2, 9))
    yield case({"type": "avg_pool2d", "kernel": 3, "stride": 2, "padding": 1},
               nn.AvgPool2d(3, 2, 1), (2, 2, 7, 8))
    yield case({"type": "avg_pool2d", "kernel": 3, "stride": 2, "padding": 1, "ceil_mode": True,
                "count_include_pad": False},
               nn.AvgPool2d(3, 2, 1, True, False), (1, 3, 6, 8))
    yield case({"type": "avg_pool2d", "kernel": 3, "stride": 3, "padding": 1, "ceil_mode": True},
               nn.AvgPool2d(3, 3, 1, True), (1, 2, 6, 8))
    yield case({"type": "avg_pool1d", "kernel": 2}, nn.AvgPool1d(2), (2, 3, 7))
    yield case({"type": "adaptive_avg_pool2d", "output": [3, 5]}, nn.AdaptiveAvgPool2d((3, 5)), (2, 2, 7, 11))
    yield case({"type": "adaptive_avg_pool2d", "output": 4}, nn.AdaptiveAvgPool2d(4), (1, 2, 3, 6))
    yield case({"type": "adaptive_max_pool2d", "output": [2, 3]}, nn.AdaptiveMaxPool2d((2, 3)), (2, 2, 5, 7))
    yield case({"type": "global_avg_pool"}, GlobalAverage(), (2, 3, 4, 5))


def main():
    torch.manual_seed(20240611)
    lines = ",\n".join(json.dumps(c) for c in cases())
    with open(sys.argv[1], "w") as out:
        out.write(f'{{"torch": "{torch.__version__}", "cases": [\n{lines}\n]}}\n')


if __name__ == "__main__":
    main()
