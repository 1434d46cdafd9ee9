#!/usr/bin/env python3
"""Writes models.json and models/*.safetensors: small models by name, their initial parameters, a
batch, and the losses of ten training steps and of the evaluation after them, computed by PyTorch in
double precision. Needs torch, numpy and safetensors; netcl itself does not.

Usage: models.py DIRECTORY
"""
import json
import pathlib
import sys

import numpy
import torch
import torch.nn.functional as F
from safetensors.numpy import save_file
from torch import nn

STEPS = 10
# At these small sizes the deeper ResNets are chaotic: PyTorch's own losses in single and double precision
# differ by 10 % after ten steps. Two steps check the forward part and the gradients.
STEPS_OF_DEEP = 2


class Lenet5(nn.Module):
    def __init__(self, classes):
        super().__init__()
        self.conv1 = nn.Conv2d(1, 6, 5, padding=2)
        self.conv2 = nn.Conv2d(6, 16, 5)
        self.fc1 = nn.Linear(400, 120)
        self.fc2 = nn.Linear(120, 84)
        self.fc3 = nn.Linear(84, classes)

    def forward(self, x):
        x = F.max_pool2d(F.relu(self.conv1(x)), 2)
        x = F.max_pool2d(F.relu(self.conv2(x)), 2).flatten(1)
        return self.fc3(F.relu(self.fc2(F.relu(self.fc1(x)))))


class ResidualBlock(nn.Module):
    def __init__(self, inputs, width, stride, bottleneck):
        super().__init__()
        outputs = 4 * width if bottleneck else width
        sizes = [(inputs, width, 1, 1), (width, width, 3, stride), (width, outputs, 1, 1)]
        if not bottleneck:
            sizes = [(inputs, width, 3, stride), (width, width, 3, 1)]
        self.depth = len(sizes)
        for i, (a, b, kernel, step) in enumerate(sizes, 1):
            setattr(self, f"conv{i}", nn.Conv2d(a, b, kernel, step, kernel // 2, bias=False))
            setattr(self, f"bn{i}", nn.BatchNorm2d(b))
        if stride != 1 or inputs != outputs:
            self.downsample = nn.Sequential(
                nn.Conv2d(inputs, outputs, 1, stride, bias=False), nn.BatchNorm2d(outputs))

    def forward(self, x):
        y = x
        for i in range(1, self.depth + 1):
            y = getattr(self, f"bn{i}")(getattr(self, f"conv{i}")(y))
            if i < self.depth:
                y = F.relu(y)
        return F.relu(y + (self.downsample(x) if hasattr(self, "downsample") else x))


class ResNet(nn.Module):
    def __init__(self, classes, width, stem, blocks, bottleneck):
        super().__init__()
        self.stem = stem
        if stem == "cifar":
            self.conv1 = nn.Conv2d(3, width, 3, 1, 1, bias=False)
        else:
            self.conv1 = nn.Conv2d(3, width, 7, 2, 3, bias=False)
        self.bn1 = nn.BatchNorm2d(width)
        inputs = width
        for stage, count in enumerate(blocks):
            layers = []
            for i in range(count):
                layers.append(ResidualBlock(inputs, width << stage, 2 if stage and not i else 1,
                                            bottleneck))
                inputs = (4 if bottleneck else 1) * (width << stage)
            setattr(self, f"layer{stage + 1}", nn.Sequential(*layers))
        self.fc = nn.Linear(inputs, classes)

    def forward(self, x):
        x = F.relu(self.bn1(self.conv1(x)))
        if self.stem != "cifar":
            x = F.max_pool2d(x, 3, 2, 1)
        for stage in range(1, 5):
            x = getattr(self, f"layer{stage}")(x)
        return self.fc(x.mean((2, 3)))


class Block(nn.Module):
    def __init__(self, features, heads, causal):
        super().__init__()
        self.norm1 = nn.LayerNorm(features)
        self.attn = nn.MultiheadAttention(features, heads, batch_first=True)
        self.norm2 = nn.LayerNorm(features)
        self.fc1 = nn.Linear(features, 4 * features)
        self.fc2 = nn.Linear(4 * features, features)
        self.causal = causal

    def forward(self, x):
        y = self.norm1(x)
        t = x.shape[1]
        mask = torch.ones(t, t, dtype=torch.bool).triu(1) if self.causal else None
        x = x + self.attn(y, y, y, need_weights=False, attn_mask=mask)[0]
        return x + self.fc2(F.gelu(self.fc1(self.norm2(x))))


class Weight(nn.Module):
    def __init__(self, *shape):
        super().__init__()
        self.weight = nn.Parameter(0.02 * torch.randn(*shape))


class ClassToken(nn.Module):
    def __init__(self, features):
        super().__init__()
        self.class_token = nn.Parameter(0.02 * torch.randn(1, 1, features))


class Vit(nn.Module):
    def __init__(self, classes, patch, features, depth, heads, image):
        super().__init__()
        self.patch_embed = nn.Conv2d(image[0], features, patch, patch)
        self.cls_token = ClassToken(features)
        self.pos_embed = Weight((image[1] // patch) * (image[2] // patch) + 1, features)
        self.blocks = nn.ModuleList(Block(features, heads, False) for _ in range(depth))
        self.norm = nn.LayerNorm(features)
        self.head = nn.Linear(features, classes)

    def forward(self, x):
        x = self.patch_embed(x).flatten(2).transpose(1, 2)
        x = torch.cat([self.cls_token.class_token.expand(len(x), 1, -1), x], 1) + self.pos_embed.weight
        for block in self.blocks:
            x = block(x)
        return self.head(self.norm(x)[:, 0])


class Gpt(nn.Module):
    def __init__(self, vocabulary, features, depth, heads, length):
        super().__init__()
        self.token = nn.Embedding(vocabulary, features)
        self.position = Weight(length, features)
        self.blocks = nn.ModuleList(Block(features, heads, True) for _ in range(depth))
        self.norm = nn.LayerNorm(features)
        self.head = nn.Linear(features, vocabulary)

    def forward(self, x):
        x = self.token(x) + self.position.weight[: x.shape[1]]
        for block in self.blocks:
            x = block(x)
        return self.head(self.norm(x))


def optimizer_of(config, parameters):
    config = dict(config)
    kind = config.pop("type")
    return {"sgd": torch.optim.SGD, "adamw": torch.optim.AdamW}[kind](parameters, **config)


def make(directory, name, model, layer, x, labels, optimizer, steps=STEPS):
    prefix = "layers.0."
    state = {prefix + k: v.detach().numpy().astype(numpy.float32)
             for k, v in model.state_dict().items() if not k.endswith("num_batches_tracked")}
    tensors = dict(state, x=x, labels=labels.astype(numpy.int32))
    save_file({k: numpy.ascontiguousarray(v) for k, v in tensors.items()},
              directory / "models" / f"{name}.safetensors")
    model = model.double()
    inputs = torch.from_numpy(x)
    inputs = inputs.double() if inputs.is_floating_point() else inputs.long()
    targets = torch.from_numpy(labels).long().flatten()

    def loss_of():
        logits = model(inputs)
        return F.cross_entropy(logits.reshape(-1, logits.shape[-1]), targets)

    step = optimizer_of(optimizer, model.parameters())
    losses = []
    model.train()
    for _ in range(steps):
        step.zero_grad()
        loss = loss_of()
        loss.backward()
        step.step()
        losses.append(loss.item())
    model.eval()
    with torch.no_grad():
        evaluation = loss_of().item()
    return {"name": name, "layer": layer, "optimizer": optimizer, "losses": losses,
            "evaluation": evaluation}


def main():
    directory = pathlib.Path(sys.argv[1])
    (directory / "models").mkdir(exist_ok=True)
    random = numpy.random.default_rng(1)
    torch.manual_seed(1)

    def images(*shape):
        return random.standard_normal(shape).astype(numpy.float32)

    def classes(n, k):
        return random.integers(0, k, n).astype(numpy.int32)

    sgd = {"type": "sgd", "lr": 0.02, "momentum": 0.9}
    adamw = {"type": "adamw", "lr": 1e-3, "weight_decay": 0.05}
    out = []
    out.append(make(directory, "lenet5", Lenet5(10), {"type": "lenet5", "classes": 10},
                    images(24, 1, 28, 28), classes(24, 10), sgd))
    out.append(make(directory, "resnet18", ResNet(7, 8, "cifar", [2, 2, 2, 2], False),
                    {"type": "resnet18", "classes": 7, "width": 8, "stem": "cifar"},
                    images(12, 3, 16, 16), classes(12, 7), sgd))
    out.append(make(directory, "resnet34_imagenet", ResNet(5, 4, "imagenet", [3, 4, 6, 3], False),
                    {"type": "resnet34", "classes": 5, "width": 4}, images(6, 3, 48, 48),
                    classes(6, 5), {"type": "sgd", "lr": 1e-3}, STEPS_OF_DEEP))
    out.append(make(directory, "resnet50", ResNet(5, 4, "cifar", [3, 4, 6, 3], True),
                    {"type": "resnet50", "classes": 5, "width": 4, "stem": "cifar"},
                    images(8, 3, 16, 16), classes(8, 5), {"type": "sgd", "lr": 1e-4},
                    STEPS_OF_DEEP))
    out.append(make(directory, "vit_tiny", Vit(6, 4, 24, 3, 3, (3, 16, 16)),
                    {"type": "vit_tiny", "classes": 6, "patch": 4, "features": 24, "depth": 3,
                     "heads": 3}, images(10, 3, 16, 16), classes(10, 6), adamw))
    tokens = random.integers(0, 17, (6, 25)).astype(numpy.int32)
    out.append(make(directory, "gpt_mini", Gpt(17, 32, 2, 4, 24),
                    {"type": "gpt_mini", "vocabulary": 17, "features": 32, "depth": 2, "heads": 4},
                    tokens[:, :-1].copy(), tokens[:, 1:].copy(), adamw))
    (directory / "models.json").write_text(json.dumps(
        {"torch": torch.__version__.split("+")[0], "models": out}, indent=1) + "\n")


if __name__ == "__main__":
    main()
