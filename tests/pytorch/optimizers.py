"""Writes optimizers.json: what PyTorch's optimisers and schedulers do, for optimizers_test.

Usage: python tests/pytorch/optimizers.py > tests/pytorch/optimizers.json

Optimisers: twenty steps in float64 over two tensors with given gradients; lion and lamb, which
PyTorch lacks, follow their papers here. Schedules: fifty values of the factor.
"""
import json
import math

import torch

STEPS = 20
SHAPES = [(5, 3), (7,)]
NAMES = ["a.weight", "a.bias"]


def initial(k):
    n = math.prod(SHAPES[k])
    return [math.sin(1.3 * i + k) for i in range(n)]


def gradient(k, step):
    n = math.prod(SHAPES[k])
    return [math.sin(0.7 * step + 0.9 * i + 2 * k) * (0.1 + 0.3 * ((i + step) % 3)) for i in range(n)]


class Lion(torch.optim.Optimizer):
    def step(self):
        for group in self.param_groups:
            b1, b2 = group["betas"]
            for p in group["params"]:
                m = self.state[p].setdefault("m", torch.zeros_like(p))
                p.data.mul_(1 - group["lr"] * group["weight_decay"])
                p.data.add_(torch.sign(b1 * m + (1 - b1) * p.grad), alpha=-group["lr"])
                m.mul_(b2).add_(p.grad, alpha=1 - b2)


class Lamb(torch.optim.Optimizer):
    def step(self):
        for group in self.param_groups:
            b1, b2 = group["betas"]
            group["t"] = group.get("t", 0) + 1
            for p in group["params"]:
                m = self.state[p].setdefault("m", torch.zeros_like(p))
                v = self.state[p].setdefault("v", torch.zeros_like(p))
                m.mul_(b1).add_(p.grad, alpha=1 - b1)
                v.mul_(b2).addcmul_(p.grad, p.grad, value=1 - b2)
                m_hat, v_hat = m / (1 - b1 ** group["t"]), v / (1 - b2 ** group["t"])
                r = m_hat / (v_hat.sqrt() + group["eps"]) + group["weight_decay"] * p.data
                ratio = p.data.norm() / r.norm()
                p.data.add_(r * ratio, alpha=-group["lr"])


O = torch.optim
CASES = [
    ("sgd", O.SGD, {"lr": 0.1}, {}),
    ("sgd", O.SGD, {"lr": 0.1, "momentum": 0.9, "weight_decay": 0.05}, {}),
    ("sgd", O.SGD, {"lr": 0.1, "momentum": 0.9, "dampening": 0.3}, {}),
    ("sgd", O.SGD, {"lr": 0.1, "momentum": 0.8, "nesterov": True, "weight_decay": 0.01}, {}),
    ("sgd", O.SGD, {"lr": 0.1, "momentum": 0.9}, {"clip_norm": 0.5}),
    ("sgd", O.SGD, {"lr": 0.1}, {"clip_value": 0.2}),
    ("sgd", O.SGD, {"lr": 0.1, "weight_decay": 0.1}, {"groups": True}),
    ("adam", O.Adam, {"lr": 0.01}, {}),
    ("adam", O.Adam, {"lr": 0.02, "betas": [0.8, 0.95], "weight_decay": 0.1, "eps": 1e-4}, {}),
    ("adam", O.Adam, {"lr": 0.01, "amsgrad": True, "weight_decay": 0.1}, {}),
    ("adamw", O.AdamW, {"lr": 0.01}, {}),
    ("adamw", O.AdamW, {"lr": 0.02, "betas": [0.8, 0.95], "weight_decay": 0.2, "amsgrad": True}, {}),
    ("adamw", O.AdamW, {"lr": 0.01, "weight_decay": 0.1}, {"groups": True, "clip_norm": 0.3}),
    ("rmsprop", O.RMSprop, {"lr": 0.01}, {}),
    ("rmsprop", O.RMSprop, {"lr": 0.01, "alpha": 0.9, "momentum": 0.8, "weight_decay": 0.1}, {}),
    ("rmsprop", O.RMSprop, {"lr": 0.01, "centered": True, "eps": 1e-4}, {}),
    ("rmsprop", O.RMSprop, {"lr": 0.01, "centered": True, "momentum": 0.5, "eps": 1e-4}, {}),
    ("adagrad", O.Adagrad, {"lr": 0.1}, {}),
    ("adagrad", O.Adagrad, {"lr": 0.1, "lr_decay": 0.1, "weight_decay": 0.05,
                            "initial_accumulator_value": 0.2}, {}),
    ("lion", Lion, {"lr": 0.01, "betas": [0.9, 0.99], "weight_decay": 0.1}, {}),
    ("lamb", Lamb, {"lr": 0.01, "betas": [0.9, 0.999], "weight_decay": 0.01, "eps": 1e-6}, {}),
    ("lamb", Lamb, {"lr": 0.02, "betas": [0.8, 0.95], "weight_decay": 0.0, "eps": 1e-3}, {}),
]


def run(cls, settings, extra):
    params = [torch.nn.Parameter(torch.tensor(initial(k), dtype=torch.float64)) for k in range(2)]
    settings = dict(settings)
    if "betas" in settings:
        settings["betas"] = tuple(settings["betas"])
    groups = [{"params": [params[0]]}, {"params": [params[1]]}]
    if extra.get("groups"):  # {"match": "*.bias", "weight_decay": 0, "lr_scale": 0.5}
        groups[1].update(weight_decay=0.0, lr=0.5 * settings["lr"])
    optimizer = cls(groups, settings) if cls in (Lion, Lamb) else cls(groups, **settings)
    for step in range(1, STEPS + 1):
        for k, p in enumerate(params):
            p.grad = torch.tensor(gradient(k, step), dtype=torch.float64)
        if "clip_norm" in extra:
            torch.nn.utils.clip_grad_norm_(params, extra["clip_norm"])
        if "clip_value" in extra:
            torch.nn.utils.clip_grad_value_(params, extra["clip_value"])
        optimizer.step()
    return [p.detach().tolist() for p in params]


S = torch.optim.lr_scheduler
TOTAL = 50
SCHEDULES = [
    ({"type": "step", "step_size": 7, "gamma": 0.5}, lambda o: S.StepLR(o, 7, 0.5)),
    ({"type": "multistep", "milestones": [3, 10, 41], "gamma": 0.3},
     lambda o: S.MultiStepLR(o, [3, 10, 41], 0.3)),
    ({"type": "exponential", "gamma": 0.93}, lambda o: S.ExponentialLR(o, 0.93)),
    ({"type": "polynomial", "power": 2.5, "total": 40}, lambda o: S.PolynomialLR(o, 40, 2.5)),
    ({"type": "polynomial", "power": 1.0}, lambda o: S.PolynomialLR(o, TOTAL, 1.0)),
    ({"type": "cosine", "min_lr": 0.1}, lambda o: S.CosineAnnealingLR(o, TOTAL, 0.1)),
    ({"type": "linear", "min_lr": 0.25, "total": 30}, lambda o: S.LinearLR(o, 1.0, 0.25, 30)),
    ({"type": "one_cycle"}, lambda o: S.OneCycleLR(o, 1.0, TOTAL, cycle_momentum=False)),
    ({"type": "one_cycle", "pct_start": 0.4, "div_factor": 10, "final_div_factor": 100,
      "anneal": "linear"},
     lambda o: S.OneCycleLR(o, 1.0, TOTAL, pct_start=0.4, div_factor=10, final_div_factor=100,
                            anneal_strategy="linear", cycle_momentum=False)),
]
PLATEAUS = [
    ({"type": "plateau", "factor": 0.5, "patience": 2}, dict(factor=0.5, patience=2)),
    ({"type": "plateau", "factor": 0.3, "patience": 1, "cooldown": 3, "threshold": 0.01,
      "threshold_mode": "abs", "min_lr": 0.02},
     dict(factor=0.3, patience=1, cooldown=3, threshold=0.01, threshold_mode="abs", min_lr=0.02)),
]
LOSSES = [math.exp(-0.2 * e) + 0.05 * math.sin(2.0 * e) for e in range(TOTAL)]


def one():
    return torch.optim.SGD([torch.nn.Parameter(torch.zeros(1))], lr=1.0)


def rates(make):
    optimizer = one()
    schedule = make(optimizer)
    out = []
    for _ in range(TOTAL):
        out.append(optimizer.param_groups[0]["lr"])
        optimizer.step()
        if len(out) < TOTAL:
            schedule.step()
    return out


def plateau_rates(settings):
    optimizer = one()
    schedule = S.ReduceLROnPlateau(optimizer, **settings)
    out = []
    for loss in LOSSES:
        schedule.step(loss)
        out.append(optimizer.param_groups[0]["lr"])
    return out


def main():
    optimizers = []
    for name, cls, settings, extra in CASES:
        config = {"type": name, **settings}
        for key in ("clip_norm", "clip_value"):
            if key in extra:
                config[key] = extra[key]
        if extra.get("groups"):
            config["groups"] = [{"match": "*.bias", "weight_decay": 0, "lr_scale": 0.5}]
        optimizers.append({"config": config, "parameters": run(cls, settings, extra)})
    print(json.dumps({
        "torch": torch.__version__, "names": NAMES, "shapes": SHAPES,
        "initial": [initial(k) for k in range(2)],
        "gradients": [[gradient(k, s) for k in range(2)] for s in range(1, STEPS + 1)],
        "optimizers": optimizers,
        "schedules": [{"config": c, "rates": rates(f)} for c, f in SCHEDULES],
        "losses": LOSSES,
        "plateaus": [{"config": c, "rates": plateau_rates(s)} for c, s in PLATEAUS],
    }, indent=1))


if __name__ == "__main__":
    main()
