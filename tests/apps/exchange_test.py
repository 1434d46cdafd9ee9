"""How gradients become one update: buckets of any size, sharded updates, uneven and empty shards."""

import json
import os
import unittest

from tests.apps import netcl_cli
from tests.apps.replica_models import (
    IGNORED, assert_near, image_rows, last_tensors, model, write)

SAMPLES = 77  # in batches of 32 the last one has 13


def file_bytes(result, name="last"):
    with open(os.path.join(result["run_dir"], "checkpoints", name + ".safetensors"), "rb") as stream:
        return stream.read()


class Exchange(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.cli = netcl_cli.Cli()
        write(cls.cli, "images.csv", image_rows(SAMPLES))

    def config(self, name, sync=True, **changes):
        content = {
            "model": model(sync),
            "data": {"format": "csv", "train": "images.csv", "label": -1},
            "loss": {"type": "cross_entropy", "class_weights": [1, 2, 0.5], "ignore_index": IGNORED},
            "optimizer": {"type": "sgd", "lr": 0.1, "momentum": 0.9},
            "batch_size": 32, "epochs": 7, "seed": 7}
        content.update(changes)
        return write(self.cli, name + ".json", json.dumps(content))

    def test_the_full_batch(self):
        """Gradients within 1e-6 of the full batch, parameters after 20 steps within 1e-5."""
        # One step at rate 1 from the same parameters: their difference is that of the gradients.
        gradient = self.config("gradient", optimizer={"type": "sgd", "lr": 1})
        sgd = {"type": "sgd", "lr": 0.05, "clip_norm": 0.2}
        cases = [(gradient, "1", 1e-6),
                 (self.config("clipped", optimizer=sgd), "20", 1e-5),
                 (self.config("passes", optimizer=sgd, accumulate=3), "20", 1e-5)]
        for config, steps, most in cases:
            one = self.cli.train(config, "--devices", "cpu:0", "--max-steps", steps)
            want = last_tensors(one)
            for devices, shard in (("cpu:0/3", "7,2,1"), ("cpu:0/3", "8,0,2")):
                for update in ("replicated", "sharded"):
                    other = self.cli.train(config, "--devices", devices, "--shard", shard,
                                           "--update", update, "--max-steps", steps)
                    assert_near(self, want, last_tensors(other), most, (config, shard, update))
                    self.assertAlmostEqual(one["train_loss"], other["train_loss"], delta=1e-5)

    def test_bucket_sizes_change_no_bit(self):
        for update in ("replicated", "sharded"):
            config = self.config("buckets", optimizer={"type": "adamw", "lr": 0.01, "clip_norm": 1})
            common = ("--devices", "cpu:0/3", "--shard", "5,0,2", "--update", update, "--max-steps", "8")
            want = file_bytes(self.cli.train(config, *common))
            for size in ("1", "1024", "4096"):
                got = self.cli.train(config, *common, "--bucket-bytes", size)
                self.assertEqual(want, file_bytes(got), (update, size))

    def test_a_sharded_update_changes_no_bit(self):
        """Without a norm, whose sum comes in parts, it is the replicated update, averages and all."""
        for optimizer in ({"type": "sgd", "lr": 0.05}, {"type": "adamw", "lr": 0.01, "amsgrad": True},
                          {"type": "lion", "lr": 0.001}):
            config = self.config("sharded-" + optimizer["type"], optimizer=optimizer, epochs=2,
                                 ema={"decay": 0.8}, data={"format": "csv", "train": "images.csv",
                                                           "test": "images.csv", "label": -1})
            for devices in ("cpu:0/2", "cpu:0/3"):
                common = ("--devices", devices, "--shard", "even")
                want = self.cli.train(config, *common, "--update", "replicated")
                got = self.cli.train(config, *common, "--update", "sharded")
                self.assertEqual(want["metrics"], got["metrics"])
                for name in ("last", "best"):
                    self.assertEqual(file_bytes(want, name), file_bytes(got, name), devices)

    def test_more_workers_than_blocks(self):
        write(self.cli, "few.csv", "".join("%d,%d,%d\n" % (i % 5, i % 3, i % 2) for i in range(16)))
        config = self.config("few", model={"input": [2], "layers": [{"type": "linear", "out": 2}]},
                             data={"format": "csv", "train": "few.csv", "label": -1},
                             loss="cross_entropy", batch_size=8,
                             optimizer={"type": "adam", "lr": 0.1, "clip_norm": 0.5})
        common = ("--devices", "cpu:0/3", "--shard", "even")
        want = last_tensors(self.cli.train(config, *common, "--update", "replicated"))
        got = last_tensors(self.cli.train(config, *common, "--update", "sharded"))
        assert_near(self, want, got, 1e-6, "few")

    def test_resume_across_updates(self):
        config = self.config("resume", optimizer={"type": "adamw", "lr": 0.01}, ema={"decay": 0.8})
        common = ("--devices", "cpu:0/2", "--shard", "even")
        whole = file_bytes(self.cli.train(config, *common))
        for first, then in (("sharded", "replicated"), ("replicated", "sharded")):
            parts = self.cli.train(config, *common, "--update", first, "--max-steps", "4")
            parts = self.cli.train(config, *common, "--update", then, "--resume", parts["run_dir"])
            # A worker's statistics since the last merge are not in a file; the model has "sync".
            self.assertEqual(whole, file_bytes(parts), (first, then))

    def test_fp16_skips_on_all(self):
        config = self.config("fp16", precision="fp16", optimizer={"type": "adamw", "lr": 0.001},
                             epochs=3, data={"format": "csv", "train": "images.csv", "label": -1,
                                             "scale": 100})
        common = ("--devices", "cpu:0/2", "--shard", "even")
        want = last_tensors(self.cli.train(config, *common, "--update", "replicated"))
        got = last_tensors(self.cli.train(config, *common, "--update", "sharded"))
        self.assertEqual(want["optimizer.loss_scale"], got["optimizer.loss_scale"])

    def check_refused(self, words, *arguments):
        done = self.cli.run("train", *arguments, "--json", "--quiet")
        self.assertEqual(done.returncode, 2, done.stderr)
        error = json.loads(done.stdout)["error"]
        for word in words:
            self.assertIn(word, error)

    def test_refused(self):
        lamb = self.config("lamb", optimizer={"type": "lamb", "lr": 0.01})
        self.check_refused(["--update sharded", "lamb", "replicated"], lamb, "--devices", "cpu:0/2",
                           "--update", "sharded")
        self.check_refused(["--update", "some", "auto"], lamb, "--devices", "cpu:0", "--update", "some")


if __name__ == "__main__":
    unittest.main()
