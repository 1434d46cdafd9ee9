"""--kernels with a variant's settings: several of them, and several pins in one option."""

import json
import os
import unittest

from tests.apps import netcl_cli

SETTINGS = {"ROWS": 48, "PACK": 2}


class KernelPins(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.cli = netcl_cli.Cli()

    def chosen(self, *pins):
        arguments = [part for pin in pins for part in ("--kernels", pin)]
        done = self.cli.run("plugins", "why", "--op", "matmul", "--shape", "64,64,64", "--device", "cpu:0", "--json",
                            *arguments)
        self.assertEqual(done.returncode, 0, done.stderr)
        return json.loads(done.stdout)["chosen"]

    def test_settings_are_joined_by_commas_and_so_are_pins(self):
        names = ["%s=%d" % item for item in SETTINGS.items()]
        pinned = "matmul=generic:vec(%s)" % ",".join(names)
        for pins in ([pinned], [pinned + ",relu=generic"], ["relu=generic," + pinned], ["relu=generic", pinned]):
            with self.subTest(pins=pins):
                chosen = self.chosen(*pins)
                self.assertEqual(chosen["plugin"], "generic")
                self.assertEqual(chosen["variant"].split("(")[0], "vec")
                settings = chosen["variant"].split("(")[1].rstrip(")").split(",")
                self.assertEqual(sorted(settings), sorted(names))

    def test_a_setting_that_does_not_exist_is_named(self):
        done = self.cli.run("plugins", "why", "--op", "matmul", "--shape", "64,64,64", "--device", "cpu:0",
                            "--kernels", "matmul=generic:vec(ROWS=48,DEEP=2)")
        self.assertEqual(done.returncode, 4, done.stdout)
        self.assertIn('no tunable "DEEP"', done.stdout + done.stderr)

    def test_pins_of_ops_that_the_step_does_not_hold_are_checked(self):
        config = os.path.join(self.cli.folder, "config.json")
        with open(config, "w") as stream:
            json.dump({"model": {"input": [16], "layers": [{"type": "linear", "out": 4}]},
                       "data": {"format": "synthetic", "kind": "blobs", "samples": 64, "classes": 4},
                       "batch_size": 32, "epochs": 1}, stream)
        for pin, code, words in (
                ("softmax=nobody", 4, ["softmax=nobody", "no such kernel-set plugin"]),
                ("cumsum=cpu", 4, ["cpu has no kernels for cumsum; those that have: generic"]),
                ("softmax=generic:vex", 4, ['the step has no softmax', 'no variant "vex"', "Its variants: ", "group"]),
                ("conv2d=generic:tile(NO=3)", 4, ["conv2d=generic:tile(NO=3)", "the step has no conv2d"]),
                ("conv2d=generic:tile(PACK=x)", 2, ["(NAME=NUMBER,...)"]),
                ("conv2d=generic:tile(PACK=2", 2, ["(NAME=NUMBER,...)"]),
                ("matmul=generic:vec(DEEP=2)", 4, ['no tunable "DEEP"']),
                ("softmax=generic:group,relu=generic", 0, [])):
            with self.subTest(pin=pin):
                done = self.cli.run("train", config, "--devices", "cpu:0", "--kernels", pin, "--json", "--max-steps", "1")
                self.assertEqual(done.returncode, code, done.stdout + done.stderr)
                for word in words:
                    self.assertIn(word, json.loads(done.stdout)["error"])


if __name__ == "__main__":
    unittest.main()
