"""netcl-app trains with a layer plugin from outside of the tree: one file, compiled by plain g++ against
copies of the headers; its folder is given with --plugin-path."""

import json
import os
import unittest

from tests.apps import netcl_cli
from tests.plugins import outside_plugin

LAYERS = [{"type": "linear", "out": 32}, {"type": "example.scaled_tanh", "slope": 0.5}, {"type": "linear", "out": 10}]


class OutsideTrain(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.cli = netcl_cli.Cli()
        cls.plugins = outside_plugin.build(os.path.join(cls.cli.folder, "outside"))
        cls.config = os.path.join(cls.cli.folder, "tanh.json")
        with open(cls.config, "w") as file:
            json.dump(outside_plugin.digits_config(LAYERS, optimizer={"type": "adamw", "lr": 0.02}, epochs=6), file)

    def test_the_plugin_serves(self):
        done = self.cli.run("plugins", "list", "--json", "--plugin-path", self.plugins)
        self.assertEqual(done.returncode, 0, done.stderr)
        rows = {row["id"]: row for row in json.loads(done.stdout)["plugins"]}
        self.assertEqual(rows["example"]["state"], "serving", rows["example"])
        self.assertEqual(rows["example"]["kind"], "layer")

    def test_trains_on_two_workers(self):
        result = self.cli.train(self.config, "--devices", "cpu:0/2", "--plugin-path", self.plugins)
        self.assertEqual(result["stopped"], "finished")
        self.assertGreater(result["metrics"]["accuracy"], 0.9)
        tensors = netcl_cli.read_safetensors(os.path.join(result["run_dir"], "checkpoints/last.safetensors"))
        self.assertIn("layers.1.gain", tensors)
        self.assertNotAlmostEqual(tensors["layers.1.gain"][0], 1.7159, places=3)

    def test_without_the_plugin_the_error_names_the_layer(self):
        done = self.cli.run("train", self.config, "--devices", "cpu:0", "--json")
        self.assertEqual(done.returncode, 2, done.stdout)
        self.assertIn("example.scaled_tanh", json.loads(done.stdout)["error"])


if __name__ == "__main__":
    unittest.main()
