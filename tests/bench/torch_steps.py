"""Training steps of PyTorch on the processor, for cpu_steps.sh: the same models, batches and
optimisers as in cpu_steps/*.json, on random data that lies in memory.

  torch_steps.py MODEL [--threads N] [--ranks R] [--seconds S]     MODEL: mlp lenet5 resnet18_cifar
                                                                   resnet18_imagenet gpt_mini

With --ranks R the batch is shared by R processes of N threads each, which DistributedDataParallel
joins through Gloo. Prints one JSON line: {"model", "step_ms": median of the steps (of rank 0),
"samples_per_second", "batch"}.
"""

import argparse
import json
import math
import os
import statistics
import tempfile
import time

import torch
from torch import distributed, multiprocessing, nn
from torch.nn import functional as F


class Block(nn.Module):
    def __init__(self, c_in, c_out, stride):
        super().__init__()
        self.a = nn.Sequential(nn.Conv2d(c_in, c_out, 3, stride, 1, bias=False), nn.BatchNorm2d(c_out), nn.ReLU(),
                               nn.Conv2d(c_out, c_out, 3, 1, 1, bias=False), nn.BatchNorm2d(c_out))
        self.b = nn.Identity() if stride == 1 and c_in == c_out else nn.Sequential(
            nn.Conv2d(c_in, c_out, 1, stride, bias=False), nn.BatchNorm2d(c_out))

    def forward(self, x):
        return F.relu(self.a(x) + self.b(x))


def resnet18(stem, classes):
    layers = [nn.Conv2d(3, 64, 3, 1, 1, bias=False) if stem == "cifar" else nn.Conv2d(3, 64, 7, 2, 3, bias=False),
              nn.BatchNorm2d(64), nn.ReLU()]
    if stem == "imagenet":
        layers.append(nn.MaxPool2d(3, 2, 1))
    c = 64
    for width, stride in ((64, 1), (128, 2), (256, 2), (512, 2)):
        layers += [Block(c, width, stride), Block(width, width, 1)]
        c = width
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(512, classes))


def causal_attention(q, k, v):
    if hasattr(F, "scaled_dot_product_attention"):
        return F.scaled_dot_product_attention(q, k, v, is_causal=True)
    scores = q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1])
    later = torch.ones(scores.shape[-2:], dtype=torch.bool).triu(1)
    return F.softmax(scores.masked_fill(later, float("-inf")), -1) @ v


class GptBlock(nn.Module):
    def __init__(self, features, heads):
        super().__init__()
        self.heads = heads
        self.n1, self.n2 = nn.LayerNorm(features), nn.LayerNorm(features)
        self.qkv, self.out = nn.Linear(features, 3 * features), nn.Linear(features, features)
        self.up, self.down = nn.Linear(features, 4 * features), nn.Linear(4 * features, features)

    def forward(self, x):
        b, t, f = x.shape
        q, k, v = self.qkv(self.n1(x)).view(b, t, 3, self.heads, f // self.heads).permute(2, 0, 3, 1, 4)
        y = causal_attention(q, k, v)
        x = x + self.out(y.transpose(1, 2).reshape(b, t, f))
        return x + self.down(F.gelu(self.up(self.n2(x))))


class Gpt(nn.Module):
    def __init__(self, vocabulary=128, features=128, depth=4, heads=4, context=64):
        super().__init__()
        self.token, self.place = nn.Embedding(vocabulary, features), nn.Embedding(context, features)
        self.blocks = nn.Sequential(*[GptBlock(features, heads) for _ in range(depth)])
        self.norm, self.head = nn.LayerNorm(features), nn.Linear(features, vocabulary)

    def forward(self, x):
        return self.head(self.norm(self.blocks(self.token(x) + self.place.weight))).flatten(0, 1)


def lenet5():
    return nn.Sequential(nn.Conv2d(1, 6, 5, padding=2), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(6, 16, 5), nn.ReLU(),
                         nn.MaxPool2d(2), nn.Flatten(), nn.Linear(400, 120), nn.ReLU(), nn.Linear(120, 84), nn.ReLU(),
                         nn.Linear(84, 10))


def mlp():
    return nn.Sequential(nn.Linear(784, 256), nn.ReLU(), nn.Linear(256, 128), nn.ReLU(), nn.Linear(128, 10))


def adamw(parameters):
    return torch.optim.AdamW(parameters, lr=1e-3, foreach=True)


def sgd(parameters):
    return torch.optim.SGD(parameters, lr=0.01, momentum=0.9, foreach=True)


# model: (module, batch, shape of a sample, classes, optimiser)
MODELS = {
    "mlp": (mlp, 128, (784,), 10, adamw),
    "lenet5": (lenet5, 128, (1, 28, 28), 10, adamw),
    "resnet18_cifar": (lambda: resnet18("cifar", 10), 32, (3, 32, 32), 10, sgd),
    "resnet18_imagenet": (lambda: resnet18("imagenet", 10), 32, (3, 32, 32), 10, sgd),
    "gpt_mini": (Gpt, 32, (64,), 128, adamw),
}


def worker(rank, arguments, store):
    """Runs the steps of one rank; rank 0 prints the line."""
    torch.set_num_threads(arguments.threads)
    torch.manual_seed(0)
    make, batch, shape, classes, optimiser = MODELS[arguments.model]
    model = make()
    if arguments.ranks > 1:
        distributed.init_process_group("gloo", "file://" + store, rank=rank, world_size=arguments.ranks)
        model = nn.parallel.DistributedDataParallel(model)
    update = optimiser(model.parameters())
    mine = batch // arguments.ranks
    if arguments.model == "gpt_mini":
        x = torch.randint(classes, (mine, *shape))
        y = torch.randint(classes, (mine * shape[0],))
    else:
        x = torch.rand(mine, *shape)
        y = torch.randint(classes, (mine,))

    def step():
        update.zero_grad(set_to_none=True)
        F.cross_entropy(model(x), y).backward()
        if arguments.model == "gpt_mini":
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        update.step()

    def another(end):
        """Whether a further step is to follow, which rank 0 decides for all."""
        go_on = torch.tensor([int(time.perf_counter() < end)])
        if arguments.ranks > 1:
            distributed.broadcast(go_on, 0)
        return go_on.item()

    for _ in range(3):
        step()
    times = []
    end = time.perf_counter() + arguments.seconds
    while len(times) < 5 or another(end):
        for _ in range(5):
            begin = time.perf_counter()
            step()
            times.append(time.perf_counter() - begin)
    if rank == 0:
        median = statistics.median(times)
        print(json.dumps({"model": arguments.model, "torch": torch.__version__, "batch": batch,
                          "step_ms": median * 1e3, "samples_per_second": batch / median}))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("model", choices=MODELS)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--ranks", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=3)
    arguments = parser.parse_args()
    if arguments.ranks == 1:
        worker(0, arguments, None)
        return
    with tempfile.TemporaryDirectory() as folder:
        multiprocessing.spawn(worker, (arguments, os.path.join(folder, "store")), arguments.ranks)


if __name__ == "__main__":
    main()
