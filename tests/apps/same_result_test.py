"""The promise of data-parallel training: any number of workers gives the result of one.

digits_mlp (dropout on) on one, two and three workers, full and ragged batches: test accuracy, the
parameters under SGD, the first losses under AdamW.
"""

import os
import unittest

from tests.apps import netcl_cli

CONFIG = netcl_cli.runfile("apps/examples/digits_mlp.json")
DEVICES = ["cpu:0", "cpu:0/2", "cpu:0/3"]


class SameResult(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.cli = netcl_cli.Cli()

    def train(self, devices, *arguments):
        return self.cli.train(CONFIG, "--devices", devices, "--shard", "even", *arguments)

    def test_accuracy(self):
        for devices in DEVICES:
            result = self.train(devices)
            self.assertGreaterEqual(result["metrics"]["accuracy"], 0.95, devices)
            self.assertEqual(result["stopped"], "finished")
            self.assertEqual(sum(w["samples"] for w in result["workers"]), 20 * 1438)

    def test_sgd_parameters(self):
        for batch in (128, 100):
            runs = [
                self.train(d, "--set", "batch_size=%d" % batch, "--set",
                           'optimizer={"type": "sgd", "lr": 0.1, "momentum": 0.9}') for d in DEVICES
            ]
            tensors = [
                netcl_cli.read_safetensors(os.path.join(r["run_dir"], "checkpoints/last.safetensors"))
                for r in runs
            ]
            for devices, other in zip(DEVICES[1:], tensors[1:]):
                for name, values in tensors[0].items():
                    self.assertEqual(len(values), len(other[name]))
                    worst = max(abs(a - b) for a, b in zip(values, other[name]))
                    # Shards are added in another order than one device adds rows: rounding only.
                    self.assertLessEqual(worst, 1e-5, (devices, batch, name))
            self.assertGreaterEqual(runs[0]["metrics"]["accuracy"], 0.95)

    def test_adamw_losses(self):
        for batch in (128, 100):
            losses = []
            for devices in DEVICES:
                result = self.train(devices, "--set", "batch_size=%d" % batch, "--max-steps", "20")
                self.assertEqual(result["stopped"], "max_steps")
                losses.append(netcl_cli.step_losses(result["run_dir"]))
            self.assertEqual([len(l) for l in losses], [20] * 3)
            for other in losses[1:]:
                for step, (a, b) in enumerate(zip(losses[0], other)):
                    self.assertLessEqual(abs(a - b), 1e-4 * abs(a), (batch, step))


if __name__ == "__main__":
    unittest.main()
