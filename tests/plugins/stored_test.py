"""Plugins that were built for earlier versions of the boundary go on working.

tests/plugins/stored holds, for every version so far, compiled plugins of each kind. A model that is
trained with them must have, step by step, the losses of today's.
"""

import json
import os
import shutil
import unittest

from tests.apps import netcl_cli
from tests.plugins import outside_plugin

STORED = os.path.dirname(netcl_cli.runfile("tests/plugins/stored/kernels.cc"))
LAYERS = [{"type": "linear", "out": 32}, {"type": "example.scaled_tanh", "slope": 0.5}, {"type": "relu"},
          {"type": "linear", "out": 10}]
VERSIONS = sorted(name for name in os.listdir(STORED) if name.startswith("0."))


def real_copy(source, target):
    """Copies what links point to: a plugin whose library is a link to elsewhere is refused."""
    shutil.copytree(source, target, symlinks=False)
    return target


class Stored(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.cli = netcl_cli.Cli()
        cls.today = outside_plugin.build(os.path.join(cls.cli.folder, "today"))
        cls.config = os.path.join(cls.cli.folder, "model.json")
        with open(cls.config, "w") as file:
            json.dump(outside_plugin.digits_config(LAYERS, optimizer={"type": "sgd", "lr": 0.1}, epochs=1), file)

    def losses(self, *options):
        result = self.cli.train(self.config, "--devices", "cpu:0/2", "--shard", "even", *options)
        self.assertEqual(result["stopped"], "finished", result)
        with open(os.path.join(result["run_dir"], "metrics.jsonl")) as file:
            rows = [json.loads(line) for line in file]
        with open(os.path.join(result["run_dir"], "environment.json")) as file:
            environment = file.read()
        losses = [row["loss"] for row in rows if "step" in row]
        self.assertGreater(len(losses), 5)
        return losses, environment

    def test_there_is_one_of_every_version(self):
        with open(netcl_cli.runfile("core/abi/netcl_plugin.h")) as file:
            minor = int(file.read().split("NETCL_ABI_MINOR ")[1].split("u")[0])
        self.assertEqual(VERSIONS, ["0.%d" % m for m in range(1, len(VERSIONS) + 1)])
        self.assertGreaterEqual(len(VERSIONS), minor - 1, "store the last version: tests/plugins/stored/build.sh")

    def test_they_train_as_todays_do(self):
        wanted, _ = self.losses("--plugin-path", self.today)
        for version in VERSIONS:
            with self.subTest(version=version):
                folder = real_copy(os.path.join(STORED, version), os.path.join(self.cli.folder, version))
                done = self.cli.run("plugins", "list", "--json", "--plugin-path", folder)
                rows = [row for row in json.loads(done.stdout)["plugins"] if row["path"].startswith(folder)]
                self.assertEqual({row["kind"]: row["state"] for row in rows},
                                 {"layer": "serving", "kernels": "serving", "transport": "serving"}, rows)
                transport = [row["id"] for row in rows if row["kind"] == "transport"][0]
                got, environment = self.losses("--plugin-path", folder, "--kernels", "relu=stored_kernels",
                                               "--transport", transport)
                self.assertEqual(got, wanted)
                self.assertIn("relu: stored_kernels/plain", environment)

    def test_a_newer_version_is_refused_with_both_numbers(self):
        for major, minor in ((0, 99), (1, 0), (99, 0)):
            with self.subTest(major=major, minor=minor):
                name = "newer-%d.%d" % (major, minor)
                folder = os.path.join(self.cli.folder, name)
                plugin = real_copy(os.path.join(STORED, VERSIONS[-1], "example"), os.path.join(folder, "example"))
                path = os.path.join(plugin, "plugin.json")
                with open(path) as file:
                    manifest = json.load(file)
                manifest["abi"] = {"major": major, "minor": minor}
                os.chmod(path, 0o644)
                with open(path, "w") as file:
                    json.dump(manifest, file)
                done = self.cli.run("plugins", "list", "--json", "--plugin-path", folder)
                row = [row for row in json.loads(done.stdout)["plugins"] if row["path"].startswith(folder)][0]
                self.assertEqual((row["state"], row["code"]), ("rejected", "NPL-04"), row)
                self.assertIn("boundary %d.%d" % (major, minor), row["detail"])
                self.assertRegex(row["detail"], r"this netcl has 0\.\d+; the plugin is newer: update netcl")


if __name__ == "__main__":
    unittest.main()
