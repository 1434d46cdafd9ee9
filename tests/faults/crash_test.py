"""What ends a process in a plugin or its kernel is told with the plugin's name; a signal from outside ends a worker
at once."""

import json
import os
import shutil
import signal
import unittest

from tests.apps import netcl_cli, tuned_pack
from tests.faults import watched_run

FAULTY = netcl_cli.runfile("tests/verify/faults/faulty.so")
MANIFEST = {
    "manifest": "netcl-plugin/1", "id": "faulty", "version": "1.0.0", "kinds": ["kernels", "layer"],
    "library": {"linux-x86_64": "libfaulty.so"}, "abi": {"major": 0, "minor": 4},
    "provides": [{"op": op, "dtypes": ["f32"], "priority": 9} for op in ("relu", "relu_grad")] + [
        {"layer": "faulty.gain"}],
}
RELU = ("bench", "op", "--op", "relu", "--shape", "32,1024", "--device", "cpu:0")


class Crashes(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.cli = netcl_cli.Cli()
        cls.packs = tuned_pack.write(cls.cli.folder)

    def plugin(self, fault):
        """A directory with the plugin that has this fault."""
        directory = os.path.join(self.cli.folder, fault)
        os.makedirs(directory)
        shutil.copyfile(FAULTY, os.path.join(directory, "libfaulty.so"))
        for name, text in (("plugin.json", json.dumps(MANIFEST)), ("fault", fault)):
            with open(os.path.join(directory, name), "w") as stream:
                stream.write(text)
        return directory

    def config(self, *layers):
        path = os.path.join(self.cli.folder, "config.json")
        with open(path, "w") as stream:
            json.dump({"model": {"input": [16], "layers": [{"type": "linear", "out": 1024}, *layers,
                                                           {"type": "linear", "out": 4}]},
                       "data": {"format": "synthetic", "kind": "blobs", "samples": 64, "classes": 4},
                       "batch_size": 32, "epochs": 1}, stream)
        return path

    def crashes(self, words, *arguments):
        done = self.cli.run(*arguments, "--json")
        said = "exit code %d\n%s\n%s" % (done.returncode, done.stdout, done.stderr)
        self.assertEqual(done.returncode, 6, said)
        self.assertIn(words, json.loads(done.stdout)["error"], said)
        self.assertIn(words, done.stderr, said)
        self.assertIn("SIGSEGV", done.stderr, said)
        return json.loads(done.stdout)

    def train(self, *layers):
        return ("train", self.config(*layers), "--devices", "cpu:0", "--quiet")

    def test_a_kernel(self):
        words = "in kernel relu_tuned_steps of plugin tuned_pack, variant steps(MODE=2)"
        pin = ("--plugin-path", self.packs, "--kernels", "relu=tuned_pack:steps(MODE=2)")
        self.crashes(words, *RELU, *pin)
        result = self.crashes(words, *self.train({"type": "relu"}), *pin)
        self.assertIn("rank 0 (cpu:0)", result["error"])
        self.assertEqual(result["stopped"], "failed")

    def test_a_plan(self):
        where = ("--plugin-path", self.plugin("crash_in_plan"))
        self.crashes("in plugin faulty, planning relu", *RELU, *where)
        self.crashes("in plugin faulty, planning relu", *self.train({"type": "relu"}), *where)

    def test_opening(self):
        self.crashes("in plugin faulty, being opened", *RELU, "--plugin-path", self.plugin("crash_in_open"))

    def test_a_layer(self):
        layer = {"type": "faulty.gain", "order": -1}
        self.crashes("in plugin faulty, layer faulty.gain", *self.train(layer), "--plugin-path",
                     self.plugin("crash_on_a_key"))

    def test_a_signal_from_outside(self):
        with watched_run.WatchedRun("--devices", "cpu:0/2", "--epochs", "1000000", "--quiet", "--shard", "even",
                                    cli=self.cli) as run:
            run.wait_for_epochs(1)
            workers = run.workers()
            watched_run.send(workers[1], signal.SIGSEGV)
            code, result = run.finish()
            self.assertEqual((code, result["stopped"]), (6, "failed"))
            text = run.error_line()[1]
            for words in ("rank 1 (cpu:0#1)", "killed by signal 11 (SIGSEGV)"):
                self.assertIn(words, text)
            run.check_nothing_left(workers)


if __name__ == "__main__":
    unittest.main()
