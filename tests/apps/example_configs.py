"""The configurations of apps/examples, and what makes each small enough for a test."""

import gzip
import os
import random
import struct

from tests.apps import netcl_cli

FOLDER = os.path.dirname(netcl_cli.runfile("apps/examples/digits_mlp.json"))


def names():
    return sorted(n for n in os.listdir(FOLDER) if n.endswith(".json"))


def _write(cli, name, content):
    with open(os.path.join(cli.folder, name), "wb") as stream:
        stream.write(content)


def _write_mnist(cli):
    """The four files of MNIST, with 256 random images each."""
    images, labels = random.Random(1).randbytes(256 * 784), bytes(i % 10 for i in range(256))
    for part in ("train", "t10k"):
        _write(cli, part + "-images-idx3-ubyte.gz", gzip.compress(
            struct.pack(">4I", 0x803, 256, 28, 28) + images))
        _write(cli, part + "-labels-idx1-ubyte.gz", gzip.compress(
            struct.pack(">2I", 0x801, 256) + labels))


def changes(cli, name):
    """Options that bring a configuration its data, or make it small."""
    if name.startswith("mnist"):
        _write_mnist(cli)
        return ["--set", "data.dir=" + cli.folder]
    if name.startswith("text"):
        _write(cli, "text.txt", b"In the beginning was the word. " * 200)
        return ["--set", "data.train=" + os.path.join(cli.folder, "text.txt"),
                "--set", "batch_size=4", "--set", "data.samples_per_epoch=8"]
    if name.startswith("synthetic"):
        return ["--set", "data.samples=2", "--set", "batch_size=1", "--set", "model.input=[3,64,64]"]
    return []
