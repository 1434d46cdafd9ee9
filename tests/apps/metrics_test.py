"""Losses and metrics: the values that eval prints are those that predict's output gives by hand, on
any number of workers; ignored labels and class weights do not depend on the shards; regression,
multi-label, text models, predict and generate as a user runs them."""

import csv
import io
import json
import math
import os
import random
import struct
import unittest

from tests.apps import netcl_cli

WORKERS = ("cpu:0", "cpu:0/2", "cpu:0/3")


class Metrics(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.cli = netcl_cli.Cli()
        draw = random.Random(7)
        cls.rows = []
        for _ in range(97):
            label = draw.choice((0, 0, 0, 1, 1, 2, 3))
            cls.rows.append([draw.gauss(1.5 if d % 4 == label else 0, 1) for d in range(6)] + [label])
        cls.write("points.csv", "".join(",".join("%.6g" % v for v in row) + "\n" for row in cls.rows))

    @classmethod
    def write(cls, name, content):
        path = os.path.join(cls.cli.folder, name)
        with open(path, "wb") as stream:
            stream.write(content if isinstance(content, bytes) else content.encode())
        return path

    def config(self, name, **changes):
        content = {"model": {"input": [6], "layers": [{"type": "linear", "out": 8}, {"type": "tanh"},
                                                      {"type": "linear", "out": 4}]},
                   "data": {"format": "csv", "train": "points.csv", "split": [0.5, 0.5]},
                   "optimizer": {"type": "sgd", "lr": 0.2, "momentum": 0.9}, "batch_size": 13, "epochs": 3, "seed": 3}
        content.update(changes)
        return self.write(name + ".json", json.dumps(content))

    def run_json(self, *arguments):
        done = self.cli.run(*arguments, "--json")
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        return json.loads(done.stdout)

    def by_hand(self, probabilities, labels, k):
        classes = len(probabilities[0])
        confusion = [[0] * classes for _ in range(classes)]
        top = 0
        for row, label in zip(probabilities, labels):
            confusion[label][max(range(classes), key=lambda c: row[c])] += 1
            top += sum(1 for c in range(classes) if (row[c], -c) > (row[label], -label)) < k
        per_class = []
        for c in range(classes):
            hits, support = confusion[c][c], sum(confusion[c])
            guessed = sum(row[c] for row in confusion)
            per_class.append((hits / guessed if guessed else 0, hits / support if support else 0,
                              2 * hits / (support + guessed) if support + guessed else 0, support))
        return confusion, top / len(labels), per_class

    def test_equal_to_hand_computed_ones(self):
        config = self.config("classes", metrics=["accuracy", {"type": "top_k", "k": 2}, "confusion", "f1",
                                                 "perplexity"])
        run = self.cli.train(config, "--devices", "cpu:0")["run_dir"]
        # Everything as one test set, so that predict sees the same samples.
        whole = ["--set", 'data={"format":"csv","train":"%s"}' % os.path.join(self.cli.folder, "points.csv")]
        predictions = self.run_json("predict", run, os.path.join(self.cli.folder, "points.csv"), "--device", "cpu:0")
        rows = [p["probabilities"] for p in predictions["predictions"]]
        labels = [row[6] for row in self.rows]
        confusion, top2, per_class = self.by_hand(rows, labels, 2)
        loss = -sum(math.log(row[label]) for row, label in zip(rows, labels)) / len(labels)
        for devices in WORKERS:
            result = self.run_json("eval", run, "--devices", devices, *whole)
            self.assertEqual(result["samples"], len(labels))
            metrics = result["metrics"]
            self.assertEqual(metrics["confusion"], confusion)
            self.assertAlmostEqual(metrics["accuracy"], sum(confusion[c][c] for c in range(4)) / len(labels), 12)
            self.assertAlmostEqual(metrics["top2"], top2, 12)
            self.assertAlmostEqual(metrics["loss"], loss, 5)
            self.assertAlmostEqual(metrics["perplexity"], math.exp(loss), 4)
            for row, (precision, recall, f1, support) in zip(metrics["per_class"], per_class):
                self.assertAlmostEqual(row["precision"], precision, 12)
                self.assertAlmostEqual(row["recall"], recall, 12)
                self.assertAlmostEqual(row["f1"], f1, 12)
                self.assertEqual(row["support"], support)
            self.assertAlmostEqual(metrics["macro_f1"], sum(r[2] for r in per_class) / 4, 12)
        table = self.cli.run("eval", run, "--devices", "cpu:0").stdout
        self.assertIn("confusion matrix", table)
        self.assertIn("precision", table)

    def check_same_on_any_workers(self, name, **changes):
        config = self.config(name, **changes)
        first = None
        for devices in WORKERS:
            shard = {"cpu:0": "even", "cpu:0/2": "3,1", "cpu:0/3": "5,1,2"}[devices]
            result = self.cli.train(config, "--devices", devices, "--shard", shard)
            tensors = netcl_cli.read_safetensors(os.path.join(result["run_dir"], "checkpoints/last.safetensors"))
            if first is None:
                first = (result, tensors)
                continue
            self.assertAlmostEqual(result["train_loss"], first[0]["train_loss"], 4)
            for key, value in first[0]["metrics"].items():
                if isinstance(value, float):
                    self.assertAlmostEqual(result["metrics"][key], value, 4, key)
            for key, values in first[1].items():
                worst = max(abs(a - b) for a, b in zip(values, tensors[key]))
                self.assertLessEqual(worst, 1e-5, (name, devices, key))
        return first[0]

    def test_ignored_labels_on_uneven_shards(self):
        result = self.check_same_on_any_workers(
            "ignored", loss={"type": "cross_entropy", "ignore_index": 0}, metrics=["accuracy", "top2"])
        self.assertGreater(result["metrics"]["accuracy"], 0.3)

    def test_class_weights_on_uneven_shards(self):
        for name, weights in (("weights", [0.25, 1, 2, 4]), ("balanced", "balanced")):
            self.check_same_on_any_workers(
                name, loss={"type": "cross_entropy", "class_weights": weights, "label_smoothing": 0.1})

    def test_regression(self):
        for loss in ("mse", "l1", {"type": "huber", "delta": 0.5}, {"type": "smooth_l1", "beta": 0.5}):
            config = dict(loss=loss, data={"format": "csv", "train": "points.csv", "target": [0, 5], "split": [0.5, 0.5]},
                          model={"input": [5], "layers": [{"type": "linear", "out": 2}]},
                          optimizer={"type": "sgd", "lr": 0.02})
            result = self.check_same_on_any_workers("regression", **config)
            self.assertGreater(result["metrics"]["mse"], 0)
        predictions = self.run_json("predict", result["run_dir"], os.path.join(self.cli.folder, "points.csv"))
        error = [(a - row[c]) ** 2 for p, row in zip(predictions["predictions"], self.rows)
                 for a, c in zip(p["values"], (0, 5))]
        whole = 'data={"format":"csv","train":"%s","target":[0,5]}' % os.path.join(self.cli.folder, "points.csv")
        metrics = self.run_json("eval", result["run_dir"], "--devices", "cpu:0/2", "--set", whole)["metrics"]
        self.assertAlmostEqual(metrics["mse"], sum(error) / len(error), 4)

    def test_multi_label(self):
        y = [1.0 if v > 0 else 0.0 for row in self.rows for v in row[:3]]
        x = [v for row in self.rows for v in row[:6]]
        for name, values, width in (("x", x, 6), ("y", y, 3)):
            header = "{'descr': '<f4', 'fortran_order': False, 'shape': (97, %d), }\n" % width
            self.write(name + ".npy", b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header.encode() +
                       struct.pack("<%df" % len(values), *values))
        result = self.check_same_on_any_workers(
            "labels", loss="bce_with_logits",
            data={"format": "npy", "train": "x.npy", "train_labels": "y.npy", "split": [0.7, 0.3]},
            model={"input": [6], "layers": [{"type": "linear", "out": 3}]})
        self.assertGreater(result["metrics"]["accuracy"], 0.7)
        done = self.cli.run("predict", result["run_dir"], os.path.join(self.cli.folder, "x.npy"), "--format", "npy",
                            "--out", "p.npy")
        self.assertEqual(done.returncode, 0, done.stderr)
        with open(os.path.join(self.cli.folder, "p.npy"), "rb") as stream:
            content = stream.read()
        self.assertEqual(len(content) % 64, (97 * 3 * 4) % 64)

    def test_predict_formats(self):
        run = self.cli.train(self.config("formats"), "--devices", "cpu:0")["run_dir"]
        features = self.write("features.csv", "".join(",".join("%.6g" % v for v in row[:6]) + "\n" for row in self.rows))
        labelled = self.cli.run("predict", run, os.path.join(self.cli.folder, "points.csv"))
        plain = self.cli.run("predict", run, features)
        self.assertEqual(plain.returncode, 0, plain.stderr)
        self.assertEqual(plain.stdout, labelled.stdout)
        rows = list(csv.reader(io.StringIO(plain.stdout)))
        self.assertEqual(rows[0], ["class", "p(0)", "p(1)", "p(2)", "p(3)"])
        self.assertEqual(len(rows), 98)
        for row in rows[1:]:
            values = [float(v) for v in row[1:]]
            self.assertAlmostEqual(sum(values), 1, 5)
            self.assertEqual(int(row[0]), values.index(max(values)))

    def test_text(self):
        """A text in which each character says the next: the model must learn it, and write it."""
        self.write("abcd.txt", "abcd" * 150)
        result = self.cli.train(self.config(
            "text", data={"format": "text", "train": "abcd.txt", "context": 8, "split": [0.8, 0.2]},
            model={"input": [8], "layers": [{"type": "embedding", "vocabulary": 4, "features": 8},
                                            {"type": "linear", "out": 4}]},
            metrics=["accuracy", "perplexity"], optimizer={"type": "adamw", "lr": 0.1}, epochs=20),
            "--devices", "cpu:0/2")
        self.assertEqual(result["metrics"]["accuracy"], 1)
        self.assertLess(result["metrics"]["perplexity"], 1.05)
        evaluated = self.run_json("eval", result["run_dir"], "--devices", "cpu:0/3")
        self.assertEqual(evaluated["samples"], 15)  # 120 characters, 8 a window, the last filled up
        self.assertAlmostEqual(evaluated["metrics"]["loss"], result["metrics"]["loss"], 5)

        def generate(*arguments):
            return self.run_json("generate", result["run_dir"], "--device", "cpu:0", "--prompt", "a", *arguments)["text"]

        self.assertTrue(generate("--length", "11", "--temperature", "0").endswith("bcdabcdabcd"))
        drawn = [generate("--length", "40", "--temperature", "5", "--seed", seed) for seed in ("1", "1", "2")]
        self.assertEqual(drawn[0], drawn[1])
        self.assertNotEqual(drawn[0], drawn[2])

    def test_synthetic(self):
        result = self.cli.train(self.config("synthetic", data={"format": "synthetic", "samples": 200, "classes": 4,
                                                               "split": [0.8, 0.2]}), "--devices", "cpu:0/2")
        self.assertGreater(result["metrics"]["accuracy"], 0.8)


if __name__ == "__main__":
    unittest.main()
