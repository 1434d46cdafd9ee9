"""A run that is stopped inside an epoch and resumed ends as one that was never stopped."""

import os
import unittest

from tests.apps import netcl_cli
from tests.faults import watched_run

EPOCHS = 10
STOP_AT = 41  # of 120 steps; inside the fourth epoch


class Resume(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.cli = netcl_cli.Cli()

    def train(self, devices, *arguments):
        return self.cli.train(watched_run.CONFIG, "--devices", devices, "--shard", "even", "--epochs", str(EPOCHS),
                              *arguments)

    def tensors(self, result):
        return netcl_cli.read_safetensors(os.path.join(result["run_dir"], "checkpoints/last.safetensors"))

    def check(self, devices, tolerance):
        straight = self.train(devices)
        stopped = self.train(devices, "--max-steps", str(STOP_AT))
        self.assertEqual((stopped["stopped"], stopped["steps"]), ("max_steps", STOP_AT))
        resumed = self.train(devices, "--resume", stopped["run_dir"])
        self.assertEqual((resumed["stopped"], resumed["epochs"], resumed["steps"]),
                         ("finished", straight["epochs"], straight["steps"]))
        self.assertEqual(resumed["run_dir"], stopped["run_dir"])  # it goes on where it was
        first, second = self.tensors(straight), self.tensors(resumed)
        self.assertEqual(sorted(first), sorted(second))  # the optimiser's state, too
        for name in first:
            worst = max(abs(a - b) for a, b in zip(first[name], second[name]))
            self.assertLessEqual(worst, tolerance, name)
        losses = [netcl_cli.step_losses(r["run_dir"]) for r in (straight, resumed)]
        self.assertEqual([len(l) for l in losses], [straight["steps"]] * 2)
        for a, b in zip(*losses):
            self.assertLessEqual(abs(a - b), tolerance)

    def test_one_device_bit_for_bit(self):
        self.check("cpu:0", 0)

    def test_two_workers(self):
        self.check("cpu:0/2", 1e-6)

    def test_a_checkpoint_file_makes_a_new_run(self):
        stopped = self.train("cpu:0", "--max-steps", "13")
        file = os.path.join(stopped["run_dir"], "checkpoints/last.safetensors")
        other = os.path.join(self.cli.folder, "other")
        resumed = self.train("cpu:0", "--resume", file, "--max-steps", "15", "--out", other)
        self.assertEqual((resumed["steps"], resumed["run_dir"]), (15, other))
        self.assertEqual(len(netcl_cli.step_losses(other)), 2)

    def test_nothing_left_to_do(self):
        done = self.train("cpu:0", "--max-steps", "13")
        again = self.train("cpu:0", "--resume", done["run_dir"], "--max-steps", "13")
        self.assertEqual((again["steps"], again["metrics"]), (done["steps"], done["metrics"]))


if __name__ == "__main__":
    unittest.main()
