"""--reproducible: the same checkpoint bytes on one, two and three workers, also when resumed."""

import json
import os
import unittest

from tests.apps import netcl_cli
from tests.apps.replica_models import IGNORED, image_rows, model, write

DIGITS = netcl_cli.runfile("apps/examples/digits_mlp.json")
DEVICES = ("cpu:0", "cpu:0/2", "cpu:0/3")


def file_bytes(result, name="last"):
    with open(os.path.join(result["run_dir"], "checkpoints", name + ".safetensors"), "rb") as stream:
        return stream.read()


class Reproducible(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.cli = netcl_cli.Cli()
        devices = json.loads(cls.cli.run("devices", "--json").stdout)["devices"]
        cls.cores = next(d["compute_units"] for d in devices if d["selector"] == "cpu:0")
        write(cls.cli, "images.csv", image_rows(77))
        write(cls.cli, "test.csv", image_rows(101, seed=2))

    def config(self, name, **changes):
        content = {
            "model": model(False),
            "data": {"format": "csv", "train": "images.csv", "test": "test.csv", "label": -1},
            "loss": {"type": "cross_entropy", "class_weights": [1, 2, 0.5], "ignore_index": IGNORED},
            "optimizer": {"type": "sgd", "lr": 0.05, "momentum": 0.9, "clip_norm": 0.5},
            "batch_size": 32, "epochs": 3, "seed": 7}
        content.update(changes)
        return write(self.cli, name + ".json", json.dumps(content))

    def check_equal(self, config, *arguments):
        """One file on any number of workers; returns the result of one."""
        results = [self.cli.train(config, "--reproducible", "--devices", devices, *arguments)
                   for devices in DEVICES]
        for result, devices in zip(results, DEVICES):
            self.assertEqual(results[0]["metrics"], result["metrics"])
            self.assertEqual(results[0]["train_loss"], result["train_loss"])
            for name in ("last", "best"):
                self.assertEqual(file_bytes(results[0], name), file_bytes(result, name), devices)
        return results[0]

    def test_digits(self):
        """Dropout, adamw, and 20 epochs' worth of chances to differ."""
        result = self.check_equal(DIGITS)
        self.assertGreaterEqual(result["metrics"]["accuracy"], 0.93)

    def test_batch_norm(self):
        """Statistics of micro-shards become one, in order; ragged batches, clipping, an average."""
        self.check_equal(self.config("norm", ema={"decay": 0.8}))

    def test_large_parts(self):
        """A weight gradient is cut by compute units where a part of the batch has samples enough."""
        write(self.cli, "many.csv", image_rows(250, seed=3))
        config = self.config("large", batch_size=120, epochs=2, data={
            "format": "csv", "train": "many.csv", "test": "test.csv", "label": -1})
        want = self.check_equal(config)
        if self.cores > 1:
            uneven = self.cli.train(config, "--reproducible", "--devices", "cpu:0/1+%d" % (self.cores - 1))
            self.assertEqual(file_bytes(want), file_bytes(uneven))

    def test_shares(self):
        """The plan is over micro-shards; which rank has which changes nothing."""
        config = self.config("shares")
        common = ("--reproducible", "--devices")
        want = self.cli.train(config, *common, "cpu:0")
        for devices, shard in (("cpu:0/2", "3,1"), ("cpu:0/3", "8,0,2"), ("cpu:0/2", "auto")):
            got = self.cli.train(config, *common, devices, "--shard", shard)
            self.assertEqual(file_bytes(want), file_bytes(got), shard)

    def test_resume(self):
        config = self.config("resume", ema={"decay": 0.8})
        whole = file_bytes(self.cli.train(config, "--reproducible", "--devices", "cpu:0"))
        for first, then in (("cpu:0", "cpu:0/3"), ("cpu:0/2", "cpu:0"), ("cpu:0/3", "cpu:0/2")):
            parts = self.cli.train(config, "--reproducible", "--devices", first, "--max-steps", "6")
            parts = self.cli.train(config, "--reproducible", "--devices", then,
                                   "--resume", parts["run_dir"])
            self.assertEqual(whole, file_bytes(parts), (first, then))

    def test_its_number_is_recorded(self):
        """It is part of the configuration, and a run goes on with the number that it had."""
        result = self.cli.train(self.config("small", batch_size=8, epochs=1), "--reproducible",
                                "--devices", "cpu:0")
        with open(os.path.join(result["run_dir"], "config.json")) as stream:
            self.assertEqual(json.load(stream)["micro_shards"], 8)
        config = self.config("four", batch_size=8, epochs=1, micro_shards=4)
        other = self.cli.train(config, "--devices", "cpu:0")
        self.assertNotEqual(file_bytes(result), file_bytes(other))
        done = self.cli.run("train", config, "--devices", "cpu:0", "--json", "--resume", result["run_dir"])
        self.assertEqual(done.returncode, 7, done.stderr)
        self.assertIn("micro_shards", json.loads(done.stdout)["error"])

    def test_refused(self):
        for words, config, arguments in (
                (["accumulate", "micro_shards"], self.config("passes", accumulate=2), ()),
                (["sync", "batch_norm"], self.config("sync", model=model(True)), ()),
                (["scale_lr_by_devices"],
                 self.config("rate", schedule={"type": "constant", "scale_lr_by_devices": True}), ()),
                (["--update replicated"], self.config("sharded"), ("--update", "sharded")),
                (["workers", "micro_shards"], self.config("two", micro_shards=2), ())):
            done = self.cli.run("train", config, "--reproducible", "--devices", "cpu:0/3", "--json",
                                *arguments)
            self.assertEqual(done.returncode, 2, (words, done.stderr))
            error = json.loads(done.stdout)["error"]
            for word in words:
                self.assertIn(word, error)


if __name__ == "__main__":
    unittest.main()
