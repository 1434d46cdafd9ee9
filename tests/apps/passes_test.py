"""The step compiler's passes: the same training with each of them left out, and what they save.

Run alone with --table it prints launches and memory of a step of every example before and after the
passes, and without each of them."""

import json
import os
import sys
import unittest

from tests.apps import example_configs, netcl_cli

# Plain SGD, so that a step is linear in the gradient and rounding stays rounding.
SGD = ["--set", 'optimizer={"type": "sgd", "lr": 0.05}', "--set", 'schedule={"type": "constant"}']


def plan(cli, name, *arguments):
    done = cli.run("train", os.path.join(example_configs.FOLDER, name), "--explain", "--json",
                   "--devices", "cpu:0", *example_configs.changes(cli, name), *arguments)
    if done.returncode != 0:
        raise AssertionError(done.stdout + done.stderr)
    return json.loads(done.stdout)["plans"][0]


def row_of(plan_of_step):
    return (len(plan_of_step["nodes"]) + len(plan_of_step["update"]), plan_of_step["launches"],
            plan_of_step["workspace_bytes"], plan_of_step["temporaries_bytes"])


class Passes(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.cli = netcl_cli.Cli()
        cls.passes = [p["name"] for p in plan(cls.cli, "digits_mlp.json")["passes"]]

    def parameters(self, name, *arguments):
        """Of the state after three steps."""
        out = os.path.join(self.cli.folder, "run-%s-%s" % (name, "-".join(arguments)))
        self.cli.train(os.path.join(example_configs.FOLDER, name), "--devices", "cpu:0",
                       "--max-steps", "3", "--out", out, *SGD,
                       *example_configs.changes(self.cli, name), *arguments)
        return netcl_cli.read_safetensors(os.path.join(out, "checkpoints", "last.safetensors"))

    def compare(self, name, *arguments):
        want = self.parameters(name, "--no-pass", "all", *arguments)
        for left_out in [None] + self.passes:
            with self.subTest(name, left_out=left_out):
                got = self.parameters(name, *arguments,
                                      *(["--no-pass", left_out] if left_out else []))
                self.assertEqual(set(got), set(want))
                for tensor, values in want.items():
                    # Three steps of sums in another order; sixteen bits have a thousandth.
                    allowed = (2e-2 if "--precision" in arguments else 2e-4)
                    scale = max(abs(v) for v in values) or 1
                    worst = max(abs(a - b) for a, b in zip(values, got[tensor]))
                    self.assertLessEqual(worst, allowed * scale, tensor)

    def test_training_is_the_same(self):
        for name in ("digits_mlp.json", "digits_residual.json", "digits_lstm.json",
                     "digits_vit_tiny.json", "mnist_lenet5.json", "regression.json",
                     "text_gpt_mini.json"):
            self.compare(name)

    def test_training_in_sixteen_bits_is_the_same(self):
        for name in ("digits_residual.json", "text_gpt_mini.json"):
            self.compare(name, "--precision", "bf16")

    def test_they_save_launches(self):
        for name in ("digits_mlp.json", "mnist_lenet5.json", "text_gpt_mini.json"):
            without, on = plan(self.cli, name, "--no-pass", "all"), plan(self.cli, name)
            self.assertLess(on["launches"], without["launches"], name)
            self.assertTrue(all(p["left_out"] for p in without["passes"]))
            self.assertFalse(any(p["left_out"] for p in on["passes"]))
            # A loss that makes its gradient at once holds a few numbers a sample longer.
            self.assertLessEqual(on["workspace_bytes"], 1.05 * without["workspace_bytes"], name)

    def test_explain_is_for_people_too(self):
        done = self.cli.run("train", os.path.join(example_configs.FOLDER, "digits_mlp.json"),
                            "--explain", "--devices", "cpu:0")
        self.assertEqual(done.returncode, 0, done.stderr)
        for word in ("cpu:0: a pass of", "matmul(", "launches; temporaries", "fuse_elementwise"):
            self.assertIn(word, done.stdout)
        self.assertFalse(os.path.exists(os.path.join(self.cli.folder, "runs")))

    def test_unknown_passes_are_named(self):
        done = self.cli.run("train", os.path.join(example_configs.FOLDER, "digits_mlp.json"),
                            "--no-pass", "fuse_elementwyse", "--explain", "--devices", "cpu:0")
        self.assertEqual(done.returncode, 2)
        self.assertIn("fuse_elementwise", done.stderr)


def print_table():
    cli = netcl_cli.Cli()
    passes = [p["name"] for p in plan(cli, "digits_mlp.json")["passes"]]
    print("| example | passes | nodes | launches | temporaries, MB | without sharing, MB |")
    print("| --- | --- | --- | --- | --- | --- |")
    for name in example_configs.names():
        for what, arguments in [("none", ["--no-pass", "all"]), ("all", [])] + [
                ("all but " + p, ["--no-pass", p]) for p in passes]:
            nodes, launches, shared, unshared = row_of(plan(cli, name, *arguments))
            print("| %s | %s | %d | %d | %.2f | %.2f |" % (
                name[:-5], what, nodes, launches, shared / 1e6, unshared / 1e6), flush=True)


if __name__ == "__main__":
    if "--table" in sys.argv:
        print_table()
    else:
        unittest.main()
