"""The example of a layer with its own kernels, from the archive alone: it builds with make, passes its
check, and fails it when a kernel is wrong; pins, reasons and reports of its fused op."""

import json
import os
import shutil
import unittest

from tests.dist import unpacked

OP = "example.gated_norm"
LAYERS = [{"type": "linear", "out": 64}, {"type": OP}, {"type": "linear", "out": 30}, {"type": OP},
          {"type": "linear", "out": 8}]


class ExamplePlugin(unpacked.Unpacked):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.example = os.path.join(cls.prefix, "share/netcl/examples/plugins/fused_layer")
        cls.plugins = os.path.join(cls.example, "build")

    def setUp(self):
        super().setUp()
        self.must("make", cwd=self.example)

    def config(self, **changes):
        content = {"model": {"input": [16], "layers": LAYERS},
                   "data": {"format": "synthetic", "samples": 200, "classes": 8},
                   "optimizer": {"type": "sgd", "lr": 0.1}, "batch_size": 64, "epochs": 2, "seed": 3}
        content.update(changes)
        path = os.path.join(self.place, "config.json")
        with open(path, "w") as stream:
            json.dump(content, stream)
        return path

    def train(self, config, *arguments):
        return json.loads(self.must(self.app, "train", config, "--plugin-path", self.plugins, "--json", "--quiet",
                                    "--devices", "cpu:0", *arguments))

    def worker(self, result):
        with open(os.path.join(result["run_dir"], "environment.json")) as stream:
            return json.load(stream)["workers"][0]

    def ask(self, command, *arguments, code=0):
        done = self.run_command(self.app, *command, "--plugin-path", self.plugins, "--device", "cpu:0", *arguments)
        self.assertEqual(done.returncode, code, done.stdout)
        return done.stdout

    def test_its_own_check(self):
        exports = self.must("nm", "-D", "--defined-only",
                            os.path.join(self.plugins, "fused_layer/libfused_layer.so")).split()
        self.assertEqual(exports[2:], ["netcl_plugin_open_v1"])
        self.assertIn("check: passed", self.must("make", "check", cwd=self.example))

    def test_its_check_fails_for_wrong_kernels(self):
        source = os.path.join(self.example, "gated_norm.cl")
        with open(source) as stream:
            right = stream.read()
        for words, others in (("di * ai * r * wi * s * (1.0f + gi * (1.0f - s))", "di * ai * r * wi * s"),
                              ("sum += partial", "sum = partial"),
                              ("vload2(i, w) * gi * sigmoid2(gi), i, y", "gi * sigmoid2(gi), i, y")):
            self.assertIn(words, right)
            with open(source, "w") as stream:
                stream.write(right.replace(words, others))
            done = self.run_command("make", "check", cwd=self.example)
            with open(source, "w") as stream:
                stream.write(right)
            self.assertNotEqual(done.returncode, 0, done.stdout)
            self.assertIn("is wrong by", done.stdout)

    def test_a_training_with_wrong_kernels_has_other_losses(self):
        other = os.path.join(self.place, "wrong")
        shutil.copytree(self.plugins, other)
        source = os.path.join(other, "fused_layer/gated_norm.cl")
        with open(source) as stream:
            text = stream.read()
        with open(source, "w") as stream:
            stream.write(text.replace("const float r = 1.0f / sqrt(all", "const float r = 1.1f / sqrt(all"))
        losses = []
        for plugins in (self.plugins, other):
            result = json.loads(self.must(self.app, "train", self.config(), "--plugin-path", plugins, "--json",
                                          "--quiet", "--devices", "cpu:0"))
            losses.append(result["train_loss"])
        self.assertGreater(abs(losses[0] - losses[1]), 1e-3 * losses[0])

    def test_the_run_tells_what_was_chosen(self):
        kernels = self.worker(self.train(self.config()))
        ops = self.worker(self.train(self.config(), "--kernels", OP + "=trace"))
        chosen = lambda worker: [k for k in worker["kernels"] if k.startswith("example.")]
        self.assertEqual(chosen(ops), [OP + ".grad: trace", OP + ": trace"])
        # The second layer has an odd number of columns.
        self.assertEqual(chosen(kernels), [OP + ".grad: fused_layer/group16", OP + ".grad: trace",
                                           OP + ": fused_layer/group16", OP + ": trace"])
        self.assertLess(kernels["launches_per_step"], ops["launches_per_step"] - 5)

    def test_equal_bits_on_any_number_of_workers(self):
        config = self.config(batch_size=32)
        contents = []
        for devices in ("cpu:0", "cpu:0/2"):
            result = json.loads(self.must(self.app, "train", config, "--plugin-path", self.plugins, "--json", "--quiet",
                                          "--devices", devices, "--reproducible"))
            self.assertIn(OP + ": fused_layer/group16", self.worker(result)["kernels"])
            with open(os.path.join(result["run_dir"], "checkpoints/last.safetensors"), "rb") as stream:
                contents.append(stream.read())
        self.assertEqual(contents[0], contents[1])

    def test_mixed_precision_runs_the_ops(self):
        result = self.train(self.config(precision="bf16"))
        self.assertEqual(result["stopped"], "finished")
        self.assertIn(OP + ": trace", self.worker(result)["kernels"])
        self.assertNotIn(OP + ": fused_layer/group16", self.worker(result)["kernels"])

    def test_reports(self):
        rows = json.loads(self.must(self.app, "plugins", "list", "--json", "--plugin-path", self.plugins))["plugins"]
        row = next(row for row in rows if row["id"] == "fused_layer")
        self.assertEqual((row["state"], row["kind"]), ("serving", "layer+kernels"))
        text = self.must(self.app, "plugins", "inspect", "fused_layer", "--plugin-path", self.plugins)
        for words in (OP, OP + ".grad", "eps"):
            self.assertIn(words, text)
        why = ("plugins", "why", "--op", OP + ".grad", "--layer", OP, "--attr", "eps=0.001")
        answer = json.loads(self.ask(why, "--shape", "8,64", "--json"))
        self.assertEqual(answer["chosen"], {"plugin": "fused_layer", "variant": "group16"})
        self.assertEqual([c["variant"] for c in answer["candidates"] if c["verdict"] == "able"], ["group128"])
        answer = json.loads(self.ask(why, "--shape", "8,30", "--json"))
        self.assertIsNone(answer["chosen"])
        self.assertIn("two columns at a time", json.dumps(answer["candidates"]))
        self.assertIn("chosen  trace", self.ask(why, "--shape", "8,30"))
        self.assertIn("max_rel_err", self.ask(("bench", "op", "--op", OP, "--layer", OP), "--shape", "8,64"))

    def test_questions_without_an_answer(self):
        self.assertIn("--layer TYPE", self.ask(("plugins", "why", "--op", OP), "--shape", "8,64", code=2))
        self.assertIn("has no such op; it has " + OP + ", " + OP + ".grad",
                      self.ask(("plugins", "why", "--op", OP + "s", "--layer", OP), "--shape", "8,64", code=2))
        self.assertIn("has no op for which there may be kernels",
                      self.ask(("plugins", "why", "--op", OP, "--layer", "relu"), "--shape", "8,64", code=2))
        self.assertIn("must be even, not [B,7]",
                      self.ask(("plugins", "why", "--op", OP, "--layer", OP), "--shape", "8,7", code=2))
        self.assertIn('did you mean "eps"',
                      self.ask(("plugins", "why", "--op", OP, "--layer", OP), "--shape", "8,8", "--attr", "epz=1", code=2))

    def test_pins_that_cannot_be_kept(self):
        for pin, code, words in (
                (OP + "=fused_layer", 4, "two columns at a time, and there are 15"),
                (OP + "=fused_layer:group32", 4, 'no variant "group32"'),
                (OP + "=generic", 4, "is pinned to generic"),
                (OP + "=nobody", 4, "there is no such kernel-set plugin"),
                ("example.gated_nrm=trace", 2, "did you mean \"%s\"" % OP),
                ("matmul=trace", 2, "matmul is an op of its own")):
            done = self.run_command(self.app, "train", self.config(), "--plugin-path", self.plugins, "--quiet",
                                    "--devices", "cpu:0", "--kernels", pin)
            self.assertEqual(done.returncode, code, pin + "\n" + done.stdout)
            self.assertIn(words, done.stdout, pin)


if __name__ == "__main__":
    unittest.main()
