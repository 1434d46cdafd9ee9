"""Every configuration of apps/examples trains two steps; README.md there lists them all."""

import os
import unittest

from tests.apps import example_configs, netcl_cli

FOLDER = example_configs.FOLDER


class Examples(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.cli = netcl_cli.Cli()

    def test_two_steps_of_each(self):
        names = example_configs.names()
        self.assertGreater(len(names), 10)
        for name in names:
            with self.subTest(name):
                done = self.cli.train(
                    os.path.join(FOLDER, name), "--devices", "cpu:0", "--max-steps", "2",
                    "--out", os.path.join(self.cli.folder, "run-" + name), *example_configs.changes(self.cli, name))
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
