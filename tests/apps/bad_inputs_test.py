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
                ([*train, "--devices", "cpu:0/none"], ["none", "number of workers"])):
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
