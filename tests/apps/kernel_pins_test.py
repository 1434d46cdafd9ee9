"""--kernels with a variant's settings: several of them, and several pins in one option."""

import json
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


if __name__ == "__main__":
    unittest.main()
