"""Bad inputs, one row of a table each: the command, its exit code, and what its message must say.

Every row also checks that there is one error, in words, in the document that --json prints.
"""

import copy
import json
import os
import shutil
import struct
import subprocess
import tempfile
import unittest

from tests.apps import netcl_cli

BASE = {
    "model": {"input": [4], "layers": [{"type": "linear", "out": 6}, {"type": "relu"},
                                       {"type": "linear", "out": 3}]},
    "data": {"format": "csv", "train": "good.csv", "label": -1},
    "optimizer": {"type": "sgd", "lr": 0.05},
    "batch_size": 8,
    "epochs": 1,
}
NO_OPENCL = r"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <string.h>
void* dlopen(const char* name, int flags) {
  void* (*real)(const char*, int) = (void* (*)(const char*, int))dlsym(RTLD_NEXT, "dlopen");
  return real(name != 0 && strstr(name, "libOpenCL") != 0 ? "libOpenCL.so.missing" : name, flags);
}
"""


class BadInputs(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.cli = netcl_cli.Cli()
        cls.folder = cls.cli.folder
        cls.write("good.csv", "".join("%g,%g,%g,%g,%d\n" % (i % 3, i % 2, 1, 0.5 * (i % 5), i % 3) for i in range(24)))
        cls.good = cls.config("good", {})
        cls.run_dir = cls.cli.train(cls.good, "--devices", "cpu:0", "--out", "good_run")["run_dir"]
        cls.checkpoint = os.path.join(cls.run_dir, "checkpoints/last.safetensors")

    @classmethod
    def path(cls, name):
        return os.path.join(cls.folder, name)

    @classmethod
    def write(cls, name, content):
        os.makedirs(os.path.dirname(cls.path(name)), exist_ok=True)
        with open(cls.path(name), "wb") as stream:
            stream.write(content if isinstance(content, bytes) else content.encode())
        return cls.path(name)

    @classmethod
    def config(cls, name, changes):
        """Writes BASE with {"key.key": value} changed (None: removed)."""
        content = copy.deepcopy(BASE)
        for path, value in changes.items():
            place = content
            *parents, last = path.split(".")
            for key in parents:
                place = place[key]
            if value is None:
                del place[last]
            else:
                place[last] = value
        return cls.write(name + ".json", json.dumps(content, indent=1))

    def train_on(self, name, rows, changes=None):
        """A configuration on a table of its own."""
        self.write(name + ".csv", rows)
        return self.config(name, dict({"data.train": name + ".csv"}, **(changes or {})))

    def check(self, arguments, code, words, env=None):
        with self.subTest(command=" ".join(arguments)):
            done = self.cli.run(*arguments, "--json", env=env, timeout=120)
            said = "exit code %d\n%s\n%s" % (done.returncode, done.stdout, done.stderr)
            self.assertEqual(done.returncode, code, said)
            document = json.loads(done.stdout)
            self.assertTrue(document["error"].strip(), said)
            self.assertEqual(done.stderr.count("error: "), 1, said)
            for bad in ("terminate called", "Traceback", "std::", "core dumped", "internal error"):
                self.assertNotIn(bad, done.stdout + done.stderr)
            for word in words:
                self.assertIn(word, document["error"], said)
            return document

    def check_train(self, config, code, words, *arguments, env=None):
        return self.check(["train", config, "--devices", "cpu:0", *arguments], code, words, env)

    def test_command_line(self):
        train = ["train", self.good]
        for arguments, words in (
                (["trian"], ["trian"]),
                ([], ["subcommand"]),
                ([*train, "--devcies", "cpu:0"], ["--devcies", "--help"]),
                ([*train, "--epochs", "-3"], ["--epochs", "-3"]),
                ([*train, "--devices", "cpu:0", "--shard", "3,1"], ["--shard", "3,1", "1"]),
                ([*train, "--devices", "cpu:0/2", "--shard", "3,x"], ["--shard", "3,x"]),
                ([*train, "--set", "epochs"], ["epochs", "key=value"]),
                ([*train, "--set", "bach_size=3"], ["bach_size", "batch_size"]),
                ([*train, "--devices", "gpu:7"], ["gpu:7", "cpu:0"]),
                ([*train, "--devices", "cpu:0,cpu:0"], ["cpu:0", "twice", "cpu:0/2"]),
                ([*train, "--devices", "cpu:0/none"], ["none", "number of workers"]),
                ([*train, "--devices", "cpu:0/1+0"], ["1+0", "compute units"]),
                ([*train, "--devices", "cpu:0/1+99999"], ["100000 compute units", "cpu:0", "has"])):
            self.check(arguments, 2, words)

    def test_no_opencl(self):
        source, library = self.write("no_opencl.c", NO_OPENCL), self.path("no_opencl.so")
        subprocess.run(["gcc", "-shared", "-fPIC", "-o", library, source, "-ldl"], check=True)
        for arguments in (["devices"], ["train", self.good], ["eval", self.checkpoint]):
            self.check(arguments, 3, ["libOpenCL", "Install"], env={"LD_PRELOAD": library})
            os.makedirs(self.path("no_vendors"), exist_ok=True)
            for vendors in (self.path("no_vendors"), "/nonexistent"):
                self.check(arguments, 3, ["OpenCL", "pocl-opencl-icd"], env={"OCL_ICD_VENDORS": vendors})
            broken = os.path.dirname(self.write("broken_vendors/broken.icd", "libthere_is_none.so\n"))
            self.check(arguments, 3, ["OpenCL"], env={"OCL_ICD_VENDORS": broken})

    def test_configuration(self):
        self.check_train(self.path("none.json"), 2, ["none.json", "No such file"])
        self.check_train(self.folder, 2, [self.folder, "directory"])
        self.check_train(self.write("comma.json", '{\n "epochs": 1\n "batch_size": 2 }'), 2, ["comma.json:3"])
        self.check_train(self.write("empty.json", ""), 2, ["empty.json"])
        for name, changes, words in (
                ("key", {"optimizer.lrr": 1}, ["optimizer", "lrr", '"lr"', ":"]),
                ("type", {"batch_size": "many"}, ["batch_size", "many", "expected"]),
                ("range", {"epochs": 0}, ["epochs", "0", "expected"]),
                ("optimizer", {"optimizer.type": "adamm"}, ["adamm", "adam"]),
                ("layer", {"model.layers": [{"type": "lienar", "out": 3}]}, ["lienar", "linear", "layers[0]"]),
                ("option", {"model.layers": [{"type": "linear", "outt": 3}]}, ["outt", "out", "layers[0]"]),
                ("model", {"model": None}, ["model"]),
                ("betas", {"optimizer": {"type": "adamw", "betas": [0.9, 1]}}, ["betas", "below 1"])):
            self.check_train(self.config("config_" + name, changes), 2, words)

    def test_data(self):
        good = "1,2,3,4,0\n2,1,4,3,1\n1,1,1,1,2\n"
        for name, rows, words in (
                ("few", good + "1,2,3,0\n", ["few.csv:4", "4", "5"]),
                ("text", good + "1,x,3,4,0\n", ["text.csv:4", "column 2", '"x"', "number"]),
                ("nan", good + "1,nan,3,4,0\n", ["nan.csv:4", "column 2", "number"]),
                ("missing", good + "1,,3,4,0\n", ["missing.csv:4", "column 2", "missing"]),
                ("empty", "", ["empty.csv", "empty"]),
                ("header_only", "a,b,c,d,label\n", ["header_only.csv"]),
                ("wide", "1,2,3,4,5,0\n1,1,1,1,1,1\n", ["wide.csv", "[5]", "[4]"]),
                ("range", good + "1,2,3,4,7\n", ["range.csv:4", "7", "3 outputs"]),
                ("one_based", "1,2,3,4,1\n1,1,1,1,2\n2,2,2,2,3\n", ["one_based.csv:3", "3", "1-based"])):
            self.check_train(self.train_on(name, rows), 5, words)
        self.check_train(self.config("no_data", {"data.train": "nowhere.csv"}), 5, ["nowhere.csv", "No such file"])
        self.check_train(self.train_on("split", "1,2,3,4,0\n", {"data.split": [0.5, 0.5]}), 5,
                         ["split.csv", "1 sample", "data.split"])
        images = self.write("images.idx", struct.pack(">IIII", 0x803, 3, 2, 2) + bytes(11))
        labels = self.write("labels.idx", struct.pack(">II", 0x801, 3) + bytes(3))
        idx = {"data": {"format": "idx", "train": images, "train_labels": labels}}
        self.check_train(self.config("idx", idx), 5, ["images.idx", "11", "12"])
        idx["data"]["train"] = self.write("text.idx", "no images here")
        self.check_train(self.config("idx_text", idx), 5, ["text.idx"])

    def test_losses_and_metrics(self):
        for name, changes, words in (
                ("loss", {"loss": "cross_entropi"}, ["loss", "cross_entropi", "cross_entropy"]),
                ("loss_key", {"loss": {"type": "mse", "smoothing": 1}}, ["loss.smoothing", "unknown key"]),
                ("weights", {"loss": {"type": "cross_entropy", "class_weights": [1, 2]}},
                 ["loss.class_weights", "2 class weights", "3 outputs"]),
                ("regression", {"loss": "mse"}, ["loss", "mse", "classes", "cross_entropy"]),
                ("metric", {"metrics": ["acuracy"]}, ["metrics[0]", "acuracy", "accuracy"]),
                ("top", {"metrics": ["top7"]}, ["metrics", "top7", "3"]),
                ("mse", {"metrics": ["mse"]}, ["metrics", "mse", "cross_entropy"])):
            self.check_train(self.config("loss_" + name, changes), 2, words)
        target = {"data.label": None, "data.target": [0, 1], "model.input": [3], "loss": "mse"}
        self.check_train(self.config("loss_width", target), 2, ["[B,3]", "[B,2]", "2 numbers"])

    def test_formats(self):
        npy = self.write("objects.npy", b"\x93NUMPY\x01\x00\x3a\x00{'descr': '|O', 'fortran_order': False, 'shape': (3,), }    \n")
        text = self.write("words.txt", "in the beginning\n" * 20)
        one = {"model.layers": [{"type": "linear", "out": 3}]}
        for name, data, words in (
                ("npy", {"format": "npy", "train": npy, "train_labels": npy}, ["objects.npy"]),
                ("no_npy", {"format": "npy", "train": text, "train_labels": text}, ["words.txt", "no NPY array"]),
                ("npz", {"format": "npz", "train": text}, ["words.txt", "no archive"]),
                ("cifar", {"format": "cifar", "train": text}, ["words.txt", "3073"]),
                ("empty_text", {"format": "text", "train": self.write("empty.txt", "")}, ["empty.txt", "empty"]),
                ("latin", {"format": "text", "train": self.write("latin.txt", b"gr\xfcn")}, ["latin.txt:1:3", "byte"]),
                ("short", {"format": "text", "train": text, "context": 500, "samples_per_epoch": 5},
                 ["words.txt", "500"])):
            self.check_train(self.config("format_" + name, dict(one, data=data)), 5, words)

    def test_predict_and_generate(self):
        predict = ["predict", self.run_dir]
        self.check([*predict, self.path("nowhere.csv")], 5, ["nowhere.csv"])
        self.check([*predict, self.write("two.csv", "1,2\n")], 5, ["two.csv:1", "2 columns", "4 features"])
        self.check([*predict, self.write("words.csv", "1,2,3,4\n1,x,3,4\n")], 5, ["words.csv:2", "column 2", '"x"'])
        self.check([*predict, self.path("good.csv"), "--format", "npy"], 2, ["--out"])
        self.check([*predict, self.path("good.csv"), "--device", "cpu:9"], 2, ["cpu:9"])
        self.check(["predict", self.path("none"), self.path("good.csv")], 7, ["none"])
        self.check(["generate", self.run_dir, "--length", "5"], 2, ["no language model", "predict"])

    def test_layers(self):
        """Each message names the layer's place, its type, the shapes and what to change."""
        reshape = {"type": "reshape", "shape": [1, 2, 2]}
        flat = [{"type": "flatten"}, {"type": "linear", "out": 3}]

        def conv(**keys):
            return [reshape, dict({"type": "conv2d", "out": 2, "kernel": 2}, **keys), *flat]

        heads = [{"type": "reshape", "shape": [2, 2]}, {"type": "multihead_attention", "heads": 3}, *flat]
        linear = {"type": "linear", "out": 3}
        for name, layers, words in (
                ("kernel", conv(kernel=3), ["layers[1] (conv2d", "[3,3]", "[2,2]", "[B,1,2,2]", "padding"]),
                ("kernel_zero", conv(kernel=0), ["layers[1]", "kernel", "at least 1", "found 0"]),
                ("kernel_list", conv(kernel=[1, 2, 3]), ["layers[1]", "kernel", "[1,2,3]"]),
                ("stride", conv(stride=0), ["layers[1]", "stride", "at least 1"]),
                ("padding", conv(padding=-1), ["layers[1]", "padding", "found -1"]),
                ("dilation", conv(dilation=1 << 23), ["layers[1]", "[8388609,8388609]", "larger"]),
                ("dilation_huge", conv(dilation=1 << 40), ["layers[1]", "dilation", "16777215"]),
                ("padding_huge", conv(padding=1 << 23), ["layers[", "beyond any memory"]),
                ("out_huge", conv(out=1 << 25), ["layers[1].out", "16777216", "33554432"]),
                ("groups", conv(groups=3), ["layers[1] (conv2d", "groups", "3", "1 input", "2 output"]),
                ("channels", [{"type": "conv2d", "out": 2, "kernel": 2}, *flat],
                 ["layers[0]", "[N,C,H,W]", "[B,4]", "reshape"]),
                ("heads", heads, ["layers[1]", "3 heads", "2 features", "[B,2,2]"]),
                ("group_norm", [reshape, {"type": "group_norm", "groups": 2}, *flat], ["layers[1]", "2 groups", "1"]),
                ("residual", [{"type": "residual", "layers": [{"type": "linear", "out": 5}]}, linear],
                 ["layers[0]", "[B,5]", "[B,4]", "shortcut"]),
                ("reshape", [{"type": "reshape", "shape": [3]}, linear], ["layers[0]", "4 elements", "3"]),
                ("weight_huge", [{"type": "linear", "out": 1 << 30}] * 2 + [linear],
                 ["layers[1]", "beyond any memory"]),
                ("transposed", [reshape, {"type": "conv_transpose2d", "out": 2, "kernel": 1, "padding": 5}, *flat],
                 ["layers[1]", "-8 x -8", "padding"]),
                ("list", [{"type": "sequential", "layers": 3}], ["layers[0].layers", "list", "3"]),
                ("nothing", [{"type": "relu"}], ["layers_nothing.json", "model.layers", "parameters"]),
                ("none", [], ["model.layers", "at least one"]),
                ("no_branch", [{"type": "sum", "layers": []}, linear], ["layers[0]", "empty"]),
                ("recompute", [dict(linear, recompute="yes")], ["layers[0].recompute", "true or false"]),
                ("dropout", [{"type": "dropout", "p": 1}, linear], ["layers[0].p", "found 1"]),
                ("tokens", [{"type": "embedding", "vocabulary": 5, "features": 2}, *flat],
                 ["layers[0]", "i32 tokens", "[B,4]"])):
            self.check_train(self.config("layers_" + name, {"model.layers": layers}), 2, words)

    def test_tokens(self):
        text = self.write("short.txt", "in the beginning\n" * 20)
        data = {"format": "text", "train": text, "context": 8}
        embedding = {"type": "embedding", "vocabulary": 30, "features": 4}

        def check(name, layers, code, words, size=8):
            changes = {"data": data, "model.input": [size], "model.layers": layers}
            self.check_train(self.config("tokens_" + name, changes), code, words)

        check("vocabulary", [dict(embedding, vocabulary=5), {"type": "linear", "out": 30}], 5,
              ["short.txt", "position", "token", "5 rows", "larger"])
        check("outputs", [embedding, {"type": "linear", "out": 5}], 5, ["short.txt", "5 outputs", "vocabulary"])
        check("positions", [embedding, {"type": "position_embedding", "length": 4}, {"type": "linear", "out": 30}], 2,
              ["layers[1]", "[B,8,4]", "4 positions", "length"])
        check("context", [embedding, {"type": "linear", "out": 30}], 5, ["short.txt", "[8]", "[9]"], size=9)
        check("linear", [{"type": "linear", "out": 30}], 2, ["layers[0]", "i32 tokens", "embedding"])
        config = self.config("tokens_model", {"data": data, "model.input": [8], "model.layers": [
            embedding, {"type": "linear", "out": 30}]})
        run_dir = self.cli.train(config, "--devices", "cpu:0", "--max-steps", "1")["run_dir"]
        self.check(["generate", run_dir, "--prompt", "in XYZ"], 5, ["X"])
        self.check(["generate", run_dir, "--temperature", "nan"], 2, ["--temperature nan"])
        three = dict(data, train=self.write("three.txt", "abc"), split=[0.9, 0.1])
        self.check_train(self.config("tokens_three", {"data": three, "model.input": [8], "model.layers": [
            embedding, {"type": "linear", "out": 30}]}), 5, ["three.txt", "data.split leaves 0 of 3"])

    def test_targets_and_test_files(self):
        rows = "".join("%d,%d,%d\n" % (i % 3, i % 2, i % 4) for i in range(24))
        targets = {"format": "csv", "train": self.write("targets.csv", rows), "task": "regression",
                   "target": 2, "header": "no"}
        layers = [{"type": "linear", "out": 1}]
        for name, loss, words in (
                ("bce", "bce_with_logits", ["targets.csv:3", "the target 2", "bce_with_logits", "0 to 1"]),):
            self.check_train(self.config("target_" + name, {
                "data": targets, "model.input": [2], "model.layers": layers, "loss": loss}), 5, words)
        # A test loss that is no number is told, and ends no run.
        wild = self.cli.train(self.config("wild", {
            "optimizer.lr": 1e6, "data.scale": 1e15, "data.split": [0.5, 0.5], "batch_size": 100}),
            "--devices", "cpu:0", "--max-steps", "1")
        self.assertEqual(wild["stopped"], "finished")
        self.assertIsNone(wild["metrics"]["loss"])
        # A test file of its own takes the place of a part of the training file.
        split = self.cli.train(self.config("split", {"data.split": [0.5, 0.5]}), "--devices", "cpu:0")
        self.check(["eval", split["run_dir"], "--set", "data.test=" + self.path("none.csv")], 5, ["none.csv"])

    def test_training_options(self):
        for name, changes, words in (
                ("smoothing", {"loss": {"type": "cross_entropy", "label_smoothing": 1.5}}, ["label_smoothing", "1.5"]),
                ("no_weight", {"loss": {"type": "cross_entropy", "class_weights": [0, 0, 0]}}, ["class_weights", "above 0"]),
                ("accumulate", {"accumulate": 9}, ["accumulate", "8", "9"]),
                ("schedule", {"schedule": {"type": "cosin"}}, ["schedule.type", "cosin", '"cosine"']),
                ("momentum", {"optimizer.momentum": 1.5}, ["optimizer.momentum", "1.5", "below 1"]),
                ("group", {"optimizer.groups": [{"match": "layer.0.weight", "lr_scale": 0}]},
                 ["optimizer.groups", "layer.0.weight", "layers.0.weight"]),
                ("frozen", {"optimizer.groups": [{"match": "*", "frozen": True}]}, ["optimizer.groups", "frozen"]),
                ("precision", {"precision": "bf61"}, ["precision", "bf61", '"bf16"'])):
            self.check_train(self.config("options_" + name, changes), 2, words)
        self.check_train(self.config("options_tf32", {"precision": "tf32"}), 3, ["tf32", "cpu:0", "bf16"])
        self.check_train(self.config("options_ignored", {"data.train": os.path.basename(self.write(
            "ignored.csv", "1,2,3,4,0\n" * 4)), "loss": {"type": "cross_entropy", "ignore_index": 0}}), 5,
            ["ignored.csv", "every label", "ignore_index"])
        self.check_train(self.config("options_from", {"init_from": "nowhere.safetensors"}), 7, ["nowhere.safetensors"])
        other = self.config("options_other", {"init_from": self.checkpoint, "model.layers": [
            {"type": "linear", "out": 5}, {"type": "relu"}, {"type": "linear", "out": 3}]})
        self.check_train(other, 7, ["layers.0", "[6,4]", "[5,4]"])

    def test_what_a_device_cannot_hold(self):
        """Said before anything is allocated: the tensor, its size, the device's limit, what to change."""
        done = self.cli.run("devices", "--json")
        limit = next(d for d in json.loads(done.stdout)["devices"] if d["selector"] == "cpu:0")["max_alloc_bytes"]
        floats = limit // 4 + 1
        for changes in ({}, {"accumulate": 2}, {"precision": "bf16"}):
            # One activation of [B, out, 64, 64], twice the limit in any of the three.
            out = min(1 << 23, 8 * floats // (4 * 4096))
            document = self.check_train(self.config("large_activation", dict({"model.layers": [
                {"type": "reshape", "shape": [1, 2, 2]},
                {"type": "conv2d", "out": out, "kernel": 1, "padding": 31},
                {"type": "global_avg_pool"}, {"type": "linear", "out": 3}]}, **changes)), 3, [
                    "the output of conv2d in model.layers[1] (conv2d)", ",%d,64,64]" % out, str(limit),
                    "max_alloc_bytes", "batch_size", "accumulate", "bf16", "cpu:0"])
            self.assertIn("rank 0", document["error"])
        rows = floats // 4 + 1
        for name, layer in (("linear", {"type": "linear", "out": rows}),
                            ("sequential", {"type": "sequential", "layers": [{"type": "linear", "out": rows}]})):
            slot = "layers.0.weight" if name == "linear" else "layers.0.layers.0.weight"
            self.check_train(self.config("large_" + name, {"model.layers": [
                layer, {"type": "reshape", "shape": [1, rows, 1]}, {"type": "global_avg_pool"},
                {"type": "linear", "out": 3}]}), 3,
                ["the parameters", slot, "[%d,4]" % rows, str(limit), "smaller"])

    def test_what_is_unusual_but_right(self):
        for name, rows, arguments in (("single", "1,2,3,4,0\n", ["--devices", "cpu:0/2"]),
                                      ("two", "1,2,3,4,0\n4,3,2,1,1\n", ["--devices", "cpu:0/3"])):
            result = self.cli.train(self.train_on(name, rows), *arguments)
            self.assertEqual(result["stopped"], "finished")

    def test_not_a_number(self):
        huge = "1,2,3,4,0\n1e38,3e38,1,1,1\n" * 8
        for devices in ("cpu:0", "cpu:0/2"):
            config = self.train_on("huge", huge, {"optimizer.lr": 1e6, "epochs": 50})
            document = self.check(["train", config, "--devices", devices], 6, ["the loss is", "at step", "not finite"])
            self.assertEqual(document["stopped"], "failed")
        # The scale turns a finite value into one that is not.
        config = self.train_on("scaled", "1,2,3,4,0\n1,3e38,1,1,1\n" * 8, {"data.scale": 1e10})
        self.check_train(config, 6, ["step 1", "sample ", "training data", "holds inf as value 1"])

    def plugin(self, name, manifest=None, library=b"no library", mode=0o755):
        """A folder to search with one copy of the host transport, renamed and spoilt."""
        source = os.path.join(netcl_cli.plugins_dir(), "host")
        place = self.path(os.path.join("search_" + name, name))
        shutil.rmtree(os.path.dirname(place), ignore_errors=True)
        os.makedirs(place)
        with open(os.path.join(source, "plugin.json")) as stream:
            content = json.load(stream)
        content.update({"id": name, "provides": [{"transport": name}]})
        content.update(manifest or {})
        with open(os.path.join(place, "plugin.json"), "w") as stream:
            json.dump(content, stream)
        if library is None:
            shutil.copy(os.path.join(source, "libhost.so"), place)
        else:
            with open(os.path.join(place, "libhost.so"), "wb") as stream:
                stream.write(library)
        os.chmod(place, mode)
        return place

    def check_plugin(self, place, words):
        """The plugin's row says why it does not serve, and a run that names it ends with 4 and the same words."""
        name, search = os.path.basename(place), os.path.dirname(place)
        done = self.cli.run("plugins", "list", "--json", "--plugin-path", search)
        self.assertEqual(done.returncode, 0, done.stderr)
        rows = [r for r in json.loads(done.stdout)["plugins"] if r["path"].startswith(place)]
        self.assertEqual([r["state"] for r in rows], ["rejected"], done.stdout)
        for word in words:
            self.assertIn(word, rows[0]["code"] + " " + rows[0]["detail"])
        self.check(["train", self.good, "--devices", "cpu:0/2", "--transport", name, "--plugin-path", search], 4,
                   [name, rows[0]["code"]])

    def test_plugins(self):
        with open(os.path.join(netcl_cli.plugins_dir(), "host", "libhost.so"), "rb") as stream:
            library = stream.read()
        self.check_plugin(self.plugin("other_abi", {"abi": {"major": 99, "minor": 0}}, None), ["99"])
        self.check_plugin(self.plugin("no_library"), ["libhost.so"])
        self.check_plugin(self.plugin("truncated", None, library[:len(library) // 2]), ["libhost.so"])
        self.check_plugin(self.plugin("outside", {"library": {"linux-x86_64": "../../elsewhere.so"}}, None),
                          ["elsewhere.so"])
        self.check_plugin(self.plugin("writable", None, None, 0o777), ["writ"])
        not_json = self.plugin("not_json", None, None)
        self.write(os.path.join(not_json, "plugin.json"), "{ this is no JSON")
        self.check_plugin(not_json, ["plugin.json"])

    def test_two_plugins_of_one_id(self):
        first, second = self.plugin("twin", {"id": "host"}, None), self.plugin("twin_2", {"id": "host"}, None)
        done = self.cli.run("plugins", "list", "--json", "--plugin-path", os.path.dirname(first), "--plugin-path",
                            os.path.dirname(second))
        rows = {r["path"]: r for r in json.loads(done.stdout)["plugins"] if r["id"] == "host"}
        self.assertEqual(sorted(r["state"] for r in rows.values()), ["serving", "shadowed", "shadowed"])
        self.assertTrue(any(first in r["detail"] for r in rows.values() if r["state"] == "shadowed"))

    def test_choices_that_do_not_exist(self):
        for devices in ("cpu:0", "cpu:0/2"):
            self.check(["train", self.good, "--devices", devices, "--transport", "hots"], 4, ["hots", "host"])
        self.check_train(self.good, 2, ["matmull", "matmul"], "--kernels", "matmull=generic")
        self.check_train(self.good, 2, ["OP=PLUGIN"], "--kernels", "matmul")
        self.check_train(self.good, 4, ["genric", "generic"], "--kernels", "matmul=genric")
        self.check_train(self.good, 4, ["matmul", "fast"], "--kernels", "matmul=generic:fast")
        self.check_train(self.good, 4, ["kernel"], "--only-plugins", "host,standard")
        self.check_train(self.good, 4, ["linear"], "--only-plugins", "host,generic")
        self.check_train(self.good, 4, ["nowhere"], env={"NETCL_PLUGIN_PATH": self.path("nowhere")})

    def check_checkpoint(self, file, words, config=None):
        for arguments in (["eval", file, "--devices", "cpu:0"],
                          ["train", config or self.good, "--devices", "cpu:0", "--resume", file]):
            self.check(arguments, 7, words)

    def test_checkpoints(self):
        with open(self.checkpoint, "rb") as stream:
            good = stream.read()
        (size,) = struct.unpack("<Q", good[:8])
        lying = good[8:8 + size].replace(b'"data_offsets":[0,', b'"data_offsets":[8,', 1)
        for name, content, words in (
                ("truncated", good[:len(good) - 100], ["truncated"]),
                ("header", good[:40], ["header"]),
                ("lying", good[:8] + lying + good[8 + size:], ["bytes"]),
                ("huge", struct.pack("<Q", 1 << 62) + good[8:], ["header"]),
                ("nothing", b"", ["nothing.safetensors"]),
                ("text", b"These are no tensors, but words.", ["text.safetensors"]),
                ("foreign", struct.pack("<Q", 2) + b"{}", ["foreign.safetensors", "no checkpoint of netcl"])):
            self.check_checkpoint(self.write(name + ".safetensors", content), [name + ".safetensors", *words])
        self.check_checkpoint(self.path("not_there.safetensors"), ["not_there.safetensors"])
        os.makedirs(self.path("no_run"), exist_ok=True)
        self.check_checkpoint(self.path("no_run"), ["no_run", "no checkpoint"])

    def test_resume_of_another_run(self):
        for name, changes, words in (
                ("batch", {"batch_size": 4}, ["batch_size was 8, now 4"]),
                ("optimizer", {"optimizer": {"type": "adamw"}}, ["optimizer.type", '"sgd"', '"adamw"']),
                ("model", {"model.layers": [{"type": "linear", "out": 3}]}, ["model.layers.0.out was 6, now 3", "model.layers.1", "now gone"])):
            self.check_train(self.config("resume_" + name, changes), 7, [self.checkpoint, *words], "--resume",
                             self.run_dir)
        more = self.train_on("resume_data", "1,2,3,4,0\n" * 30)
        self.check_train(more, 7, ["24", "30"], "--resume", self.run_dir)

    def test_output_directory(self):
        file = self.write("a_file", "")
        self.check_train(self.good, 7, [file, "--out"], "--out", file)
        self.check_train(self.good, 7, [file, "--out"], "--out", file + "/below")
        self.check_train(self.good, 7, ["/proc/none", "--out"], "--out", "/proc/none")
        self.check_train(self.good, 7, [self.run_dir, "holds a run", "--resume"], "--out", self.run_dir)


if __name__ == "__main__":
    unittest.main()
