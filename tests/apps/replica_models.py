"""Data, models and comparisons of the tests in which several workers must give the result of one."""

import os
import random

from tests.apps import netcl_cli

SIDE, SAMPLES, IGNORED = 6, 61, 3  # in batches of 8 the last one has 5 samples


def image_rows(samples=SAMPLES, seed=1):
    """Bars in noise: classes 0 to 2, and some rows of the class that is ignored."""
    numbers = random.Random(seed)
    lines = []
    for i in range(samples):
        label = IGNORED if i % 7 == 3 else i % 3
        pixels = [numbers.gauss(0, 0.5) for _ in range(SIDE * SIDE)]
        for k in range(SIDE):
            place = {0: k * SIDE + 2, 1: 3 * SIDE + k, 2: k * SIDE + k}.get(label)
            if place is not None:
                pixels[place] += 1.5
        lines.append(",".join("%.4f" % p for p in pixels) + ",%d" % label)
    return "\n".join(lines) + "\n"


def model(sync):
    return {"input": [SIDE * SIDE], "layers": [
        {"type": "reshape", "shape": [1, SIDE, SIDE]},
        {"type": "conv2d", "out": 4, "kernel": 3, "padding": 1},
        {"type": "batch_norm", "sync": sync},
        {"type": "relu"},
        {"type": "dropout", "p": 0.2},
        {"type": "max_pool2d", "kernel": 2},
        {"type": "flatten"},
        {"type": "linear", "out": 3}]}


def write(cli, name, text):
    path = os.path.join(cli.folder, name)
    with open(path, "w") as stream:
        stream.write(text)
    return path


def last_tensors(result):
    return netcl_cli.read_safetensors(os.path.join(result["run_dir"], "checkpoints/last.safetensors"))


def assert_near(test, one, other, most, what):
    test.assertEqual(sorted(one), sorted(other))
    for name, values in one.items():
        worst = max(abs(a - b) for a, b in zip(values, other[name]))
        test.assertLessEqual(worst, most, (what, name))
