"""The result of one worker on any number of workers, with everything in it that works across rows.

A convolutional model with synchronised batch norm, dropout, weighted classes, ignored labels, label
smoothing and clipping; even, uneven and empty shards; ragged batches; passes. Then what a run must
keep when it is resumed, and what precisions and recomputation may change.
"""

import json
import unittest

from tests.apps import netcl_cli
from tests.apps.replica_models import (
    IGNORED, SIDE, assert_near, image_rows, last_tensors, model, write)

DIGITS = netcl_cli.runfile("apps/examples/digits_mlp.json")


class Replicas(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.cli = netcl_cli.Cli()
        write(cls.cli, "images.csv", image_rows())

    def config(self, name, sync=True, **changes):
        content = {
            "model": model(sync),
            "data": {"format": "csv", "train": "images.csv", "label": -1},
            "loss": {"type": "cross_entropy", "class_weights": [1, 2, 0.5], "ignore_index": IGNORED,
                     "label_smoothing": 0.1},
            "optimizer": {"type": "sgd", "lr": 0.1, "momentum": 0.9, "clip_norm": 0.2},
            "batch_size": 8, "epochs": 3, "seed": 7}
        content.update(changes)
        return write(self.cli, name + ".json", json.dumps(content))

    def check_workers(self, config, *arguments):
        steps = ("--max-steps", "20", *arguments)
        one = self.cli.train(config, "--devices", "cpu:0", *steps)
        self.assertEqual(one["steps"], 20)
        want = last_tensors(one)
        for devices, shard in (("cpu:0/2", "even"), ("cpu:0/3", "even"), ("cpu:0/2", "3,1"),
                               ("cpu:0/3", "5,0,2")):
            other = self.cli.train(config, "--devices", devices, "--shard", shard, *steps)
            # Sums over shards in another order than over rows: rounding only.
            assert_near(self, want, last_tensors(other), 1e-5, (devices, shard))
            self.assertAlmostEqual(one["train_loss"], other["train_loss"], delta=1e-5)
        return one, want

    def test_one_result(self):
        one, tensors = self.check_workers(self.config("sync"))
        self.assertIn("layers.2.running_mean", tensors)
        norms = [l["grad_norm"] for l in netcl_cli.metrics_lines(one["run_dir"]) if "grad_norm" in l]
        self.assertGreater(min(norms), 0.2)  # clipping is at work
        losses = netcl_cli.step_losses(one["run_dir"])
        self.assertLess(sum(losses[-5:]), sum(losses[:5]))

    def test_one_result_in_passes(self):
        self.check_workers(self.config("passes", accumulate=2))

    def test_merged_statistics(self):
        """Without "sync" each worker has its own batch, and what is kept is the mean by samples."""
        rows = [[1, 2, 3, 5], [-2, 0, 1, 9], [4, 4, 0, -6], [0.5, 8, -3, 2]]
        write(self.cli, "four.csv", "".join(",".join(map(str, r)) + ",%d\n" % (i % 2) for i, r in enumerate(rows)))
        config = self.config("merge", model={"input": [4], "layers": [
            {"type": "reshape", "shape": [1, 2, 2]}, {"type": "batch_norm"}, {"type": "flatten"},
            {"type": "linear", "out": 2}]}, data={"format": "csv", "train": "four.csv", "label": -1},
            loss="cross_entropy", batch_size=4, epochs=1)
        result = self.cli.train(config, "--devices", "cpu:0/2", "--shard", "3,1")
        tensors = last_tensors(result)
        mean, var = tensors["layers.1.running_mean"][0], tensors["layers.1.running_var"][0]
        # One step from 0 and 1 with momentum 0.1. The mean is that of all rows; the variances
        # (unbiased, as running averages are) count 3 : 1, whichever row was alone.
        self.assertAlmostEqual(mean, 0.1 * sum(map(sum, rows)) / 16, places=5)

        def variance(values):
            middle = sum(values) / len(values)
            return sum((v - middle) ** 2 for v in values) / (len(values) - 1)

        possible = []
        for alone in range(4):
            others = [v for i, r in enumerate(rows) if i != alone for v in r]
            possible.append(0.9 + 0.1 * (0.75 * variance(others) + 0.25 * variance(rows[alone])))
        self.assertLess(min(abs(var - p) for p in possible), 1e-5, (var, possible))

    def test_own_statistics_train(self):
        for devices in ("cpu:0", "cpu:0/3"):
            result = self.cli.train(self.config("own", sync=False, epochs=12), "--devices", devices,
                                    "--shard", "even")
            losses = netcl_cli.step_losses(result["run_dir"])
            self.assertLess(sum(losses[-8:]), 0.8 * sum(losses[:8]), devices)

    def test_resume(self):
        config = self.config("resume", accumulate=2, ema={"decay": 0.9}, epochs=5, schedule={
            "type": "plateau", "patience": 1, "factor": 0.5, "threshold": 0.9})
        for devices in ("cpu:0", "cpu:0/2"):
            common = ("--devices", devices, "--shard", "even")
            whole = self.cli.train(config, *common)
            parts = self.cli.train(config, *common, "--max-steps", "13")  # inside an epoch of 8
            self.assertEqual(parts["steps"], 13)
            parts = self.cli.train(config, *common, "--resume", parts["run_dir"])
            want, got = last_tensors(whole), last_tensors(parts)
            if devices == "cpu:0":
                self.assertEqual(want, got)
            else:
                assert_near(self, want, got, 1e-5, devices)
            rates = [l["lr"] for l in netcl_cli.metrics_lines(whole["run_dir"]) if "lr" in l]
            self.assertLess(min(rates), max(rates))  # the plateau was found

    def test_recompute(self):
        again = model(True)
        again["layers"][1:5] = [{"type": "sequential", "layers": again["layers"][1:5], "recompute": True}]
        plain = model(True)
        plain["layers"][1:5] = [{"type": "sequential", "layers": plain["layers"][1:5]}]
        results = [last_tensors(self.cli.train(self.config(name, model=layers), "--devices", devices,
                                               "--shard", "even", "--max-steps", "12"))
                   for devices in ("cpu:0", "cpu:0/2")
                   for name, layers in (("plain", plain), ("again", again))]
        self.assertEqual(results[0], results[1])
        self.assertEqual(results[2], results[3])

    def test_precisions(self):
        for precision in ("bf16", "fp16"):
            result = self.cli.train(DIGITS, "--devices", "cpu:0", "--precision", precision)
            self.assertGreaterEqual(result["metrics"]["accuracy"], 0.93, precision)

    def test_precision_that_a_device_lacks(self):
        done = self.cli.run("train", DIGITS, "--devices", "cpu:0", "--precision", "tf32", "--json")
        self.assertEqual(done.returncode, 3)
        error = json.loads(done.stdout)["error"]
        for word in ("tf32", "cpu:0", "bf16"):
            self.assertIn(word, error)


class LossScale(unittest.TestCase):
    """fp16: steps whose gradients overflow are skipped, and the scale is part of a run."""

    NAME = "optimizer.loss_scale"  # in checkpoints: the scale and the good steps since it changed

    @classmethod
    def setUpClass(cls):
        cls.cli = netcl_cli.Cli()
        write(cls.cli, "images.csv", image_rows())

    def config(self, name, layers, **changes):
        content = {
            "model": {"input": [SIDE * SIDE], "layers": layers},
            "data": {"format": "csv", "train": "images.csv", "label": -1, "scale": 100},
            "loss": {"type": "cross_entropy", "ignore_index": IGNORED},
            "optimizer": {"type": "sgd", "lr": 1e-5, "momentum": 0.9, "clip_norm": 1000},
            "batch_size": 8, "epochs": 3, "seed": 7, "precision": "fp16"}
        content.update(changes)
        return write(self.cli, name + ".json", json.dumps(content))

    def test_overflow(self):
        """Inputs of hundreds times the first scale, 1024, leave the range of 16 bits."""
        config = self.config("overflow", [{"type": "linear", "out": 16}, {"type": "relu"},
                                          {"type": "linear", "out": 3}])
        for devices in ("cpu:0", "cpu:0/2"):
            common = ("--devices", devices, "--shard", "even")
            whole = self.cli.train(config, *common)
            self.assertEqual((whole["stopped"], whole["steps"]), ("finished", 24))
            lines = netcl_cli.metrics_lines(whole["run_dir"])
            self.assertGreater(sum(l.get("skipped_steps", 0) for l in lines), 0)
            self.assertTrue(all(l["grad_norm"] > 0 for l in lines if "grad_norm" in l))
            losses = netcl_cli.step_losses(whole["run_dir"])
            self.assertLess(sum(losses[-8:]), sum(losses[:8]))
            want = last_tensors(whole)
            self.assertLess(want[self.NAME][0], 1024)
            parts = self.cli.train(config, *common, "--max-steps", "10")
            scale = last_tensors(parts)[self.NAME]
            self.assertGreater(scale[1], 0)
            got = last_tensors(self.cli.train(config, *common, "--resume", parts["run_dir"]))
            self.assertEqual(want[self.NAME], got[self.NAME])
            if devices == "cpu:0":
                self.assertEqual(want, got)

    def check_failure(self, config, words):
        done = self.cli.run("train", config, "--devices", "cpu:0", "--json", "--quiet")
        self.assertEqual(done.returncode, 6, done.stderr)
        error = json.loads(done.stdout)["error"]
        for word in words:
            self.assertIn(word, error)

    def test_overflow_that_no_scale_helps(self):
        write(self.cli, "ones.csv", "1,1,1\n" + "1,1,0\n" * 39)
        config = self.config("hopeless", [], epochs=10, model={"input": [2], "layers": [
            {"type": "linear", "out": 2, "init": "zeros", "bias": False}]},
            data={"format": "csv", "train": "ones.csv", "label": -1, "scale": 60000})
        self.check_failure(config, ["overflowed 16 bits", "32 steps", "bf16", "data.scale"])

    def test_forward_overflow(self):
        """A loss that is no number is no matter of scale."""
        config = self.config("forward", [{"type": "linear", "out": 3}],
                             data={"format": "csv", "train": "images.csv", "label": -1, "scale": 1e6})
        self.check_failure(config, ["the loss is", "step 1"])


if __name__ == "__main__":
    unittest.main()
