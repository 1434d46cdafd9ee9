"""Devices of different vendors train one network together, and the result is that of one device.

PoCL and Oclgrind are two OpenCL implementations that any machine can have; Oclgrind simulates, so
the network and the data are small. NETCL_TEST_ICDS names further drivers, as key=library joined by
commas; each then trains together with PoCL too.
"""

import glob
import os
import unittest

from tests.apps import netcl_cli

CONFIG = netcl_cli.runfile("apps/examples/digits_mlp.json")
OCLGRIND = "/usr/lib/oclgrind/liboclgrind-rt-icd.so"
# Two epochs of SGD on 359 samples and 8 hidden units: what a simulator does in seconds.
SMALL = [
    "--set", 'model.layers=[{"type": "linear", "out": 8}, {"type": "relu"}, {"type": "linear", "out": 10}]',
    "--set", "data.split=[0.2, 0.1]",
    "--set", "batch_size=32",
    "--set", 'optimizer={"type": "sgd", "lr": 0.5}',
    "--set", 'schedule={"type": "constant"}',
    "--max-steps", "24",
]  # yapf: disable


def vendors(folder):
    """A directory of ICD files: this machine's, Oclgrind, and those of NETCL_TEST_ICDS."""
    os.makedirs(folder, exist_ok=True)
    libraries = {}
    for path in glob.glob("/etc/OpenCL/vendors/*.icd"):
        with open(path) as stream:
            libraries[os.path.basename(path)[:-len(".icd")]] = stream.read().strip()
    libraries["oclgrind"] = OCLGRIND
    extra = [entry.split("=", 1) for entry in os.environ.get("NETCL_TEST_ICDS", "").split(",") if entry]
    libraries.update(extra)
    for key, library in libraries.items():
        with open(os.path.join(folder, key + ".icd"), "w") as stream:
            stream.write(library + "\n")
    return [key for key, _ in extra]


class MixedVendors(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.cli = netcl_cli.Cli()
        folder = os.path.join(cls.cli.folder, "vendors")
        cls.more = vendors(folder)
        cls.cli.env["OCL_ICD_VENDORS"] = folder
        cls.alone = cls.train("pocl:0")

    @classmethod
    def train(cls, devices, *arguments):
        result = cls.cli.train(CONFIG, "--devices", devices, *SMALL, *arguments)
        checkpoint = os.path.join(result["run_dir"], "checkpoints/last.safetensors")
        return result, netcl_cli.read_safetensors(checkpoint)

    def check_pair(self, vendor):
        result, tensors = self.train("pocl:0,%s:0" % vendor, "--shard", "3,1")
        expected, expected_tensors = self.alone
        self.assertEqual(result["stopped"], "max_steps")
        samples = [worker["samples"] for worker in result["workers"]]
        self.assertEqual(sum(samples), sum(worker["samples"] for worker in expected["workers"]))
        self.assertGreater(samples[1], 0)
        self.assertAlmostEqual(samples[0] / samples[1], 3, delta=0.1)
        self.assertEqual(sorted(tensors), sorted(expected_tensors))
        for name, values in expected_tensors.items():
            worst = max(abs(a - b) for a, b in zip(values, tensors[name]))
            self.assertLessEqual(worst, 1e-5, (vendor, name))
        self.assertAlmostEqual(result["metrics"]["accuracy"], expected["metrics"]["accuracy"], delta=1 / 179 + 1e-9)

    def test_network_learns(self):
        self.assertGreater(self.alone[0]["metrics"]["accuracy"], 0.3)  # chance is 0.1

    @unittest.skipUnless(os.path.exists(OCLGRIND), "Oclgrind is not installed (package oclgrind)")
    def test_pocl_and_oclgrind(self):
        self.check_pair("oclgrind")

    def test_pocl_and_further_vendors(self):
        for vendor in self.more:
            with self.subTest(vendor=vendor):
                self.check_pair(vendor)


if __name__ == "__main__":
    unittest.main()
