"""The example programs train on one device and on two shares of it, and say how well."""

import gzip
import os
import random
import re
import struct
import subprocess
import tempfile
import unittest


def runfile(path):
    return os.path.join(os.environ["TEST_SRCDIR"], os.environ["TEST_WORKSPACE"], path)


DIGITS = runfile("apps/examples/data/digits.csv.gz")


class Examples(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.mkdtemp(dir=os.environ["TEST_TMPDIR"])
        # The real directory: files that lead out of a plugin's directory are refused.
        plugins = os.path.dirname(os.path.dirname(os.path.realpath(runfile("plugins/dir/generic/plugin.json"))))
        cls.env = dict(
            os.environ, HOME=cls.folder, NETCL_PLUGIN_PATH=plugins,
            NETCL_CACHE_DIR=os.path.join(cls.folder, "netcl-cache"),
            POCL_CACHE_DIR=os.path.join(cls.folder, "pocl-cache"))

    def run_program(self, name, *arguments, code=0):
        """What the program prints, after it ended with the code."""
        done = subprocess.run(
            [runfile("apps/examples/cpp/" + name), *arguments], env=self.env, cwd=self.folder,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, universal_newlines=True, timeout=280)
        self.assertEqual(done.returncode, code, done.stdout + done.stderr)
        return done.stdout + done.stderr

    def accuracy(self, text):
        return float(re.search(r"accuracy ([0-9.]+)", text).group(1))

    def losses(self, text):
        return [float(loss) for loss in re.findall(r"epoch \d+: loss ([0-9.]+)", text)]

    def test_ten_lines(self):
        for devices in ("cpu:0", "cpu:0/2"):
            self.assertGreaterEqual(self.accuracy(self.run_program("ten_lines", DIGITS, devices)), 0.92)

    def test_tutorial(self):
        runs = [self.run_program("tutorial", DIGITS, devices, "5") for devices in ("cpu:0", "cpu:0/2")]
        self.assertIn("1 replicas of 4810 parameters", runs[0])
        self.assertIn("2 replicas of 4810 parameters", runs[1])
        for text in runs:
            self.assertIn("found cpu:0", text)
            self.assertGreaterEqual(self.accuracy(text), 0.92)
        # The same training: the same first losses, before rounding has been multiplied by Adam.
        one, two = [self.losses(text) for text in runs]
        self.assertAlmostEqual(one[0], two[0], delta=2e-3)
        self.assertLess(one[-1], 0.3 * one[0])

    def test_lenet(self):
        runs = [self.run_program("lenet", DIGITS, devices, "15") for devices in ("cpu:0", "cpu:0/2")]
        for text in runs:
            self.assertGreaterEqual(self.accuracy(text), 0.9)
        one, two = [self.losses(text) for text in runs]
        self.assertAlmostEqual(one[0], two[0], delta=5e-3)

    def test_lenet_reads_mnist(self):
        folder = os.path.join(self.folder, "mnist")
        os.makedirs(folder)
        images, labels = random.Random(1).randbytes(128 * 784), bytes(i % 10 for i in range(128))
        for part in ("train", "t10k"):
            with open(os.path.join(folder, part + "-images-idx3-ubyte.gz"), "wb") as stream:
                stream.write(gzip.compress(struct.pack(">4I", 0x803, 128, 28, 28) + images))
            with open(os.path.join(folder, part + "-labels-idx1-ubyte"), "wb") as stream:
                stream.write(struct.pack(">2I", 0x801, 128) + labels)
        text = self.run_program("lenet", folder, "cpu:0/2", "1")
        self.assertIn("LeNet for 28x28 images on 2 replicas", text)
        self.assertEqual(len(self.losses(text)), 1)

    def test_mistakes(self):
        self.assertIn("usage: tutorial", self.run_program("tutorial", code=2))
        self.assertIn("there is no device", self.run_program("tutorial", DIGITS, "tpu", code=2))
        self.assertIn("missing.csv", self.run_program("lenet", "missing.csv", code=5))


if __name__ == "__main__":
    unittest.main()
