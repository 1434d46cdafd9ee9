"""Every configuration of apps/examples trains two steps; README.md there lists them all."""

import gzip
import os
import random
import struct
import unittest

from tests.apps import netcl_cli

FOLDER = os.path.dirname(netcl_cli.runfile("apps/examples/digits_mlp.json"))


class Examples(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.cli = netcl_cli.Cli()

    def write(self, name, content):
        with open(os.path.join(self.cli.folder, name), "wb") as stream:
            stream.write(content)

    def write_mnist(self):
        """The four files of MNIST, with 256 random images each."""
        images, labels = random.Random(1).randbytes(256 * 784), bytes(i % 10 for i in range(256))
        for part in ("train", "t10k"):
            self.write(part + "-images-idx3-ubyte.gz", gzip.compress(
                struct.pack(">4I", 0x803, 256, 28, 28) + images))
            self.write(part + "-labels-idx1-ubyte.gz", gzip.compress(
                struct.pack(">2I", 0x801, 256) + labels))

    def changes(self, name):
        """Options that bring a configuration its data, or make it small."""
        if name.startswith("mnist"):
            self.write_mnist()
            return ["--set", "data.dir=" + self.cli.folder]
        if name.startswith("text"):
            self.write("text.txt", b"In the beginning was the word. " * 200)
            return ["--set", "data.train=" + os.path.join(self.cli.folder, "text.txt"),
                    "--set", "batch_size=4", "--set", "data.samples_per_epoch=8"]
        if name.startswith("synthetic"):
            return ["--set", "data.samples=2", "--set", "batch_size=1", "--set", "model.input=[3,64,64]"]
        return []

    def test_two_steps_of_each(self):
        names = sorted(n for n in os.listdir(FOLDER) if n.endswith(".json"))
        self.assertGreater(len(names), 10)
        for name in names:
            with self.subTest(name):
                done = self.cli.train(
                    os.path.join(FOLDER, name), "--devices", "cpu:0", "--max-steps", "2",
                    "--out", os.path.join(self.cli.folder, "run-" + name), *self.changes(name))
                self.assertEqual(done["steps"], 2)
                self.assertGreater(done["metrics"]["loss"], 0)

    def test_readme_lists_them_all(self):
        with open(os.path.join(FOLDER, "README.md"), encoding="utf-8") as stream:
            readme = stream.read()
        for name in os.listdir(FOLDER):
            if name.endswith(".json"):
                self.assertIn("| `%s` |" % name, readme)


if __name__ == "__main__":
    unittest.main()
