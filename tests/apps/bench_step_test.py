"""bench step: each device alone and all together, and the numbers that belong together."""

import json
import unittest

from tests.apps import netcl_cli

CONFIG = netcl_cli.runfile("apps/examples/digits_mlp.json")


class BenchStep(unittest.TestCase):
    def bench(self, *arguments):
        done = netcl_cli.Cli().run("bench", "step", CONFIG, "--quiet", *arguments)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        return done.stdout

    def test_two_workers(self):
        result = json.loads(self.bench("--devices", "cpu:0/2", "--steps", "5", "--rounds", "2", "--json"))
        self.assertEqual([d["device"] for d in result["devices"]], ["cpu:0#0", "cpu:0#1"])
        self.assertGreaterEqual(result["steps"], 5)
        self.assertGreater(result["launches_per_step"], 0)
        for row in [result] + result["devices"]:
            self.assertGreater(row["samples_per_second"], 0)
            self.assertGreater(row["step_ms"], 0)
        self.assertAlmostEqual(result["sum_samples_per_second"],
                               sum(d["samples_per_second"] for d in result["devices"]))
        self.assertAlmostEqual(result["ratio_to_sum"],
                               result["samples_per_second"] / result["sum_samples_per_second"])
        self.assertEqual(len(result["rounds"]), 2)
        for row in result["rounds"]:
            self.assertEqual(len(row["alone"]), 2)
        # Whole batches only: a run's samples over its steps are the batch.
        for round_ in result["rounds"]:
            self.assertGreater(round_["together"], 0)
        self.assertNotIn("trace", result)

    def test_one_device_as_text(self):
        text = self.bench("--devices", "cpu:0", "--steps", "3", "--rounds", "1",
                          "--set", "batch_size=64")
        self.assertIn("samples/s", text)
        self.assertIn("ratio to the sum of the devices: 1.00", text)

    def test_refuses_what_train_refuses(self):
        done = netcl_cli.Cli().run("bench", "step", CONFIG, "--json", "--set", "batch_sice=3")
        self.assertEqual(done.returncode, 2)
        self.assertIn("batch_size", json.loads(done.stdout)["error"])


if __name__ == "__main__":
    unittest.main()
