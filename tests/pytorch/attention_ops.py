#!/usr/bin/env python3
"""Makes attention_ops.json: values and gradients as PyTorch computes them, in double precision.

Run with a Python that has PyTorch: python3 attention_ops.py > attention_ops.json. Nothing of netcl
needs PyTorch; attention_ops_test.cc reads the file. An op has inputs, attributes, its first output,
a seed for it and the gradients of the float inputs. A layer has its configuration, its input, the
parameters by name, and the same.
"""
import json
import sys

import torch
import torch.nn.functional as F

torch.manual_seed(20240611)
torch.set_default_dtype(torch.float64)


def tensor(x):
    names = {torch.float64: "f32", torch.int64: "i32", torch.bool: "bool"}
    if x.dtype == torch.float64:
        # JSON has no infinity: the text stands for it.
        data = [float("%.6g" % v) if v != float("-inf") else "-inf"
                for v in x.detach().flatten().tolist()]
    else:
        data = [int(v) for v in x.flatten().tolist()]
    return {"dtype": names[x.dtype], "shape": list(x.shape), "data": data}


def leaf(*shape, low=-1.0, high=1.0):
    # Numbers that f32 holds exactly, so that both sides begin with the same.
    x = torch.rand(*shape) * (high - low) + low
    return (torch.round(x * 64) / 64).requires_grad_()


def finish(case, y, leaves):
    seed = leaf(*y.shape, low=0.5, high=1.5).detach()
    grads = torch.autograd.grad(y, leaves, seed)
    case.update(output=tensor(y), seed=tensor(seed))
    return [tensor(g) for g in grads]


def op(name, what, attrs, inputs, y):
    case = {"name": name, "op": what, "attrs": attrs, "inputs": [tensor(x) for x in inputs]}
    leaves = [x for x in inputs if x.requires_grad]
    case["gradients"] = finish(case, y, leaves)
    return case


def layer(name, config, x, parameters, y):
    case = {"name": name, "config": config, "input": tensor(x),
            "slots": {key: tensor(p) for key, p in parameters.items()}}
    leaves = ([x] if x.requires_grad else []) + list(parameters.values())
    grads = finish(case, y, leaves)
    case["input_gradient"] = grads.pop(0) if x.requires_grad else None
    case["slot_gradients"] = dict(zip(parameters, grads))
    return case


def attention_ops():
    name = "scaled_dot_product_attention"
    out = []
    for label, causal, scale in (("plain", False, None), ("causal", True, None),
                                 ("scaled", False, 0.3)):
        q, k, v = leaf(2, 2, 9, 5), leaf(2, 2, 9, 5), leaf(2, 2, 9, 5)
        y = F.scaled_dot_product_attention(q, k, v, is_causal=causal, scale=scale)
        out.append(op("attention_" + label, name, {"causal": int(causal), "scale": scale or 0.0},
                      [q, k, v], y))
    q, k, v = leaf(2, 2, 5, 6), leaf(2, 2, 19, 6), leaf(2, 2, 19, 6)
    mask = leaf(2, 1, 5, 19)
    out.append(op("attention_float_mask", name, {}, [q, k, v, mask],
                  F.scaled_dot_product_attention(q, k, v, attn_mask=mask)))
    q, k, v = leaf(2, 2, 5, 6), leaf(2, 2, 19, 6), leaf(2, 2, 19, 6)
    allowed = torch.rand(5, 19) < 0.5
    allowed[:, 3] = True
    out.append(op("attention_bool_mask", name, {}, [q, k, v, allowed],
                  F.scaled_dot_product_attention(q, k, v, attn_mask=allowed)))
    forbidden = torch.zeros(5, 19)
    forbidden[:, 7:] = float("-inf")
    q, k, v = leaf(1, 2, 5, 6), leaf(1, 2, 19, 6), leaf(1, 2, 19, 6)
    out.append(op("attention_infinite_mask", name, {}, [q, k, v, forbidden],
                  F.scaled_dot_product_attention(q, k, v, attn_mask=forbidden)))
    return out


def index_ops():
    out = []
    x, index = leaf(3, 7), torch.randint(0, 7, (3, 11))
    out.append(op("gather", "gather", {"axis": 1}, [x, index], torch.gather(x, 1, index)))
    x, index = leaf(3, 11), torch.randint(0, 7, (3, 11))
    out.append(op("scatter_add", "scatter_add", {"axis": 1, "size": 7}, [x, index],
                  torch.zeros(3, 7).scatter_add(1, index, x)))
    x, index = leaf(3, 7, 2), torch.randint(0, 7, (9,))
    out.append(op("index_select", "index_select", {"axis": 1}, [x, index],
                  torch.index_select(x, 1, index)))
    index, weight = torch.randint(0, 6, (4, 5)), leaf(6, 9)
    out.append(op("embedding", "embedding", {}, [index, weight], F.embedding(index, weight)))
    x = leaf(4, 7, 3)
    out.append(op("slice", "slice", {"axes": [1, 2], "start": [1, -2], "stop": [6, 3],
                                     "step": [2, 1]}, [x], x[:, 1:6:2, -2:3]))
    x = leaf(2, 3, 4)
    out.append(op("pad", "pad", {"low": [0, 1, 2], "high": [0, 2, 1], "value": 0.5}, [x],
                  F.pad(x, (2, 1, 1, 2), value=0.5)))
    x, y, z = leaf(2, 3), leaf(2, 1), leaf(2, 4)
    out.append(op("concat", "concat", {"axis": 1}, [x, y, z], torch.cat([x, y, z], 1)))
    return out


def matmul_ops():
    out = []
    a, b = leaf(2, 3, 4, 5), leaf(2, 3, 5, 6)
    out.append(op("matmul_batched", "matmul", {}, [a, b], a @ b))
    a, b, c = leaf(3, 4, 5), leaf(6, 5), leaf(6)
    out.append(op("matmul_shared", "matmul", {"transpose_b": 1}, [a, b, c], F.linear(a, b, c)))
    a, b = leaf(3, 5, 4), leaf(5, 6)
    out.append(op("matmul_shared_transposed", "matmul", {"transpose_a": 1}, [a, b],
                  a.transpose(1, 2) @ b))
    return out


def layers():
    out = []
    for label, causal, bias in (("plain", False, True), ("causal", True, True),
                                ("no_bias", False, False)):
        module = torch.nn.MultiheadAttention(8, 2, bias=bias, batch_first=True)
        parameters = dict(module.named_parameters())
        for p in parameters.values():
            with torch.no_grad():
                p.copy_(leaf(*p.shape))
        x = leaf(3, 7, 8)
        mask = torch.ones(7, 7).triu(1).bool() if causal else None
        y, _ = module(x, x, x, attn_mask=mask, need_weights=False)
        config = {"type": "multihead_attention", "heads": 2, "causal": causal, "bias": bias}
        out.append(layer("multihead_" + label, config, x, parameters, y))
    x, weight = torch.randint(0, 6, (3, 5)), leaf(6, 4)
    out.append(layer("embedding", {"type": "embedding", "vocabulary": 6, "features": 4}, x,
                     {"weight": weight}, F.embedding(x, weight)))
    x, weight = leaf(3, 5, 4), leaf(7, 4)
    out.append(layer("positions", {"type": "position_embedding", "length": 7}, x,
                     {"weight": weight}, x + weight[:5]))
    x, token = leaf(3, 5, 4), leaf(1, 1, 4)
    out.append(layer("class_token", {"type": "class_token"}, x, {"class_token": token},
                     torch.cat([token.expand(3, 1, 4), x], 1)))
    x = leaf(3, 5, 4)
    out.append(layer("select", {"type": "select", "axis": 1, "index": -2}, x, {}, x[:, -2] * 1))
    x = leaf(3, 5, 4)
    out.append(layer("permute", {"type": "permute", "axes": [0, 2, 1]}, x, {},
                     x.transpose(1, 2) * 1))
    x, w1, w2 = leaf(4, 5), leaf(6, 5), leaf(6, 5)
    inner = {"type": "linear", "out": 6, "bias": False}
    out.append(layer("residual", {"type": "residual", "layers": [inner], "shortcut": [inner],
                                  "activation": "tanh"}, x,
                     {"layers.0.weight": w1, "shortcut.0.weight": w2},
                     torch.tanh(x @ w1.T + x @ w2.T)))
    x, w = leaf(4, 5), leaf(5, 5)
    square = {"type": "linear", "out": 5, "bias": False}
    out.append(layer("residual_identity", {"type": "residual", "layers": [square]}, x,
                     {"layers.0.weight": w}, x + x @ w.T))
    x, w = leaf(4, 5), leaf(6, 5)
    out.append(layer("concat", {"type": "concat", "axis": 1,
                                "layers": [inner, {"type": "tanh"}]}, x, {"layers.0.weight": w},
                     torch.cat([x @ w.T, torch.tanh(x)], 1)))
    x, w1, w2 = leaf(4, 5), leaf(6, 5), leaf(6, 5)
    out.append(layer("sum", {"type": "sum", "layers": [inner, {
        "type": "sequential", "layers": [{"type": "tanh"}, inner]}]}, x,
                     {"layers.0.weight": w1, "layers.1.layers.1.weight": w2},
                     x @ w1.T + torch.tanh(x) @ w2.T))
    return out


def main():
    ops = matmul_ops() + index_ops() + attention_ops()
    made_by = "attention_ops.py, PyTorch " + torch.__version__.split("+")[0]
    sys.stdout.write('{"made_by": %s,\n"ops": [\n' % json.dumps(made_by))
    sys.stdout.write(",\n".join(json.dumps(case) for case in ops))
    sys.stdout.write('\n],\n"layers": [\n')
    sys.stdout.write(",\n".join(json.dumps(case) for case in layers()))
    sys.stdout.write("\n]}\n")


if __name__ == "__main__":
    main()
