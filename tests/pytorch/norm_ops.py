#!/usr/bin/env python3
"""Makes norm_ops.json: norms, losses and recurrent layers as PyTorch computes them, in double.

Run with a Python that has PyTorch: python3 norm_ops.py > norm_ops.json. Nothing of netcl needs
PyTorch; norm_ops_test.cc reads the file. An op has inputs, attributes, its first output, a seed for
it and the gradients of its first inputs; a loss also its weighted mean. A layer has its
configuration, its input, the slots by name, and the same; batch norm also its next statistics.
"""
import json
import sys

import torch
import torch.nn.functional as F

torch.manual_seed(20240611)
torch.set_default_dtype(torch.float64)


def tensor(x):
    if x.dtype == torch.float64:
        data = [float("%.7g" % v) for v in x.detach().flatten().tolist()]
        return {"dtype": "f32", "shape": list(x.shape), "data": data}
    return {"dtype": "i32", "shape": list(x.shape), "data": x.flatten().tolist()}


def leaf(*shape, low=-1.0, high=1.0):
    # Numbers that f32 holds exactly, so that both sides begin with the same.
    x = torch.rand(*shape) * (high - low) + low
    return (torch.round(x * 64) / 64).requires_grad_()


def finish(case, y, leaves):
    seed = leaf(*y.shape, low=0.5, high=1.5).detach()
    case.update(output=tensor(y), seed=tensor(seed))
    return [tensor(g) for g in torch.autograd.grad(y, leaves, seed, retain_graph=True)]


def op(name, what, attrs, inputs, y, mean=None):
    case = {"name": name, "op": what, "attrs": attrs, "inputs": [tensor(x) for x in inputs]}
    if mean is not None:
        case["mean"] = mean.item()
    case["gradients"] = finish(case, y, [x for x in inputs if x.requires_grad])
    return case


def layer(name, config, x, module, y, statistics=()):
    case = {"name": name, "config": config, "input": tensor(x), "training": module.training}
    parameters = dict(module.named_parameters())
    case["slots"] = {key: tensor(p) for key, p in parameters.items()}
    case["slots"].update({key: tensor(value) for key, value in statistics})
    grads = finish(case, y, [x] + list(parameters.values()))
    case["input_gradient"] = grads.pop(0)
    case["slot_gradients"] = dict(zip(parameters, grads))
    return case


def losses():
    cases = []
    logits, target = leaf(6, 5, low=-3, high=3), torch.tensor([0, 4, 2, 2, 1, 3])
    weights = leaf(5, low=0.25, high=2).detach()
    for name, attrs, weight in [("plain", {}, None), ("ignored", {"ignore_index": 2}, None),
                                ("smoothed", {"label_smoothing": 0.125}, None),
                                ("weighted", {}, weights),
                                ("all", {"ignore_index": 2, "label_smoothing": 0.25}, weights)]:
        inputs = [logits, target] + ([] if weight is None else [weight])
        call = lambda r: F.cross_entropy(logits, target, weight, reduction=r, **attrs)
        cases.append(op("cross_entropy " + name, "cross_entropy", attrs, inputs, call("none"),
                        call("mean")))
        if "label_smoothing" not in attrs:
            call = lambda r: F.nll_loss(logits, target, weight, reduction=r, **attrs)
            cases.append(op("nll " + name, "nll", attrs, inputs, call("none"), call("mean")))
    x, t = leaf(4, 5, low=-3, high=3), leaf(4, 5, low=-1, high=1)
    cases.append(op("mse", "mse", {}, [x, t], F.mse_loss(x, t, reduction="none")))
    cases.append(op("l1", "l1", {}, [x, t], F.l1_loss(x, t, reduction="none")))
    cases.append(op("smooth_l1", "smooth_l1", {"beta": 0.75}, [x, t],
                    F.smooth_l1_loss(x, t, reduction="none", beta=0.75)))
    cases.append(op("huber", "huber", {"delta": 1.5}, [x, t],
                    F.huber_loss(x, t, reduction="none", delta=1.5)))
    p = leaf(4, 5, low=0.05, high=0.95)
    cases.append(op("kl_div", "kl_div", {}, [x, p], F.kl_div(x, p, reduction="none")))
    cases.append(op("bce", "bce_with_logits", {}, [x, p],
                    F.binary_cross_entropy_with_logits(x, p, reduction="none")))
    pos = leaf(5, low=0.5, high=3).detach()
    cases.append(op("bce weighted", "bce_with_logits", {}, [x, p, pos],
                    F.binary_cross_entropy_with_logits(x, p, reduction="none", pos_weight=pos)))
    cases.append(op("mish", "mish", {}, [x], F.mish(x)))
    return cases


def norms():
    cases = []
    x = leaf(3, 4, 6, low=-2, high=3)
    for name, module, config in [
            ("layer_norm", torch.nn.LayerNorm(6), {}),
            ("layer_norm two", torch.nn.LayerNorm([4, 6], eps=1e-3), {"dims": 2, "eps": 1e-3}),
            ("rms_norm", torch.nn.RMSNorm(6, eps=1e-5), {}),
            ("group_norm", torch.nn.GroupNorm(2, 4), {"groups": 2})]:
        for p in module.parameters():
            torch.nn.init.uniform_(p, -1, 1)
        config = {"type": name.split()[0], **config}
        cases.append(layer(name, config, x, module, module(x)))
    image = leaf(5, 3, 2, 4, low=-1, high=3)
    for training in (True, False):
        module = torch.nn.BatchNorm2d(3, momentum=0.25).train(training)
        for p in list(module.parameters()) + [module.running_mean]:
            torch.nn.init.uniform_(p, -1, 1)
        torch.nn.init.uniform_(module.running_var, 0.5, 2)
        before = [(k, getattr(module, k).clone()) for k in ("running_mean", "running_var")]
        case = layer("batch_norm", {"type": "batch_norm", "momentum": 0.25}, image, module,
                     module(image), before)
        case["statistics"] = {k: tensor(getattr(module, k)) for k, _ in before} if training else {}
        cases.append(case)
    return cases


def recurrent():
    cases = []
    x = leaf(3, 5, 4)
    for kind, make in (("rnn", torch.nn.RNN), ("lstm", torch.nn.LSTM), ("gru", torch.nn.GRU)):
        for layers, both, bias in ((1, False, True), (2, True, True), (1, True, False)):
            module = make(4, 3, num_layers=layers, bidirectional=both, bias=bias, batch_first=True)
            config = {"type": kind, "hidden": 3, "num_layers": layers, "bidirectional": both,
                      "bias": bias}
            y, state = module(x)
            name = "%s of %d%s" % (kind, layers, " both ways" if both else "")
            cases.append(layer(name, config, x, module, y))
            h = state[0] if kind == "lstm" else state
            last = torch.cat([h[-2], h[-1]], 1) if both else h[-1]
            cases.append(layer(name + ", last", {**config, "output": "last"}, x, module, last))
    return cases


json.dump({"ops": losses(), "layers": norms() + recurrent()}, sys.stdout, separators=(",", ":"))
print()
