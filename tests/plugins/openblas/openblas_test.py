"""The kernel set `openblas` in netcl-app: who is chosen, what is said where the library is missing or of
another kind, records, training. With a fake library that every machine has, and with OpenBLAS itself
where it is installed."""

import ctypes
import json
import os
import shutil
import tempfile
import unittest

from tests.apps import netcl_cli

FAKES = "tests/plugins/openblas/"
PRODUCT = ("--op", "matmul", "--device", "cpu:0")
MODEL = {
    "model": {"input": [24], "layers": [{"type": "linear", "out": 40}, {"type": "relu"},
                                        {"type": "linear", "out": 24}, {"type": "tanh"},
                                        {"type": "linear", "out": 8}]},
    "data": {"format": "synthetic", "samples": 192, "classes": 8},
    "loss": "cross_entropy", "optimizer": {"type": "sgd", "lr": 0.1}, "batch_size": 32, "epochs": 2, "seed": 3,
}


def installed():
    """Whether the loader finds OpenBLAS here."""
    try:
        ctypes.CDLL("libopenblas.so.0")
        return True
    except OSError:
        return False


class WithLibrary(unittest.TestCase):
    """Runs netcl-app with one of the fake libraries in place of OpenBLAS; none: with the machine's."""
    fake = ""

    def setUp(self):
        self.cli = netcl_cli.Cli(tempfile.mkdtemp(dir=os.environ.get("TEST_TMPDIR")))
        self.addCleanup(shutil.rmtree, self.cli.folder)
        if self.fake:
            self.use(self.fake)

    def use(self, fake):
        folder = os.path.join(self.cli.folder, fake)
        os.makedirs(folder, exist_ok=True)
        shutil.copy(netcl_cli.runfile(FAKES + fake), os.path.join(folder, "libopenblas.so.0"))
        self.cli.env["LD_LIBRARY_PATH"] = folder

    def must(self, *arguments):
        done = self.cli.run(*arguments)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        return json.loads(done.stdout)

    def candidates(self, *arguments):
        document = self.must("plugins", "why", *PRODUCT, "--shape", "64,48", "--shape", "48,40", "--json", *arguments)
        return document["chosen"], [c for c in document["candidates"] if c["plugin"] == "openblas"]

    def train(self, *arguments, devices="cpu:0"):
        path = os.path.join(self.cli.folder, "config.json")
        with open(path, "w") as stream:
            json.dump(MODEL, stream)
        result = self.cli.train(path, "--devices", devices, "--out",
                                os.path.join(tempfile.mkdtemp(dir=self.cli.folder), "run"), *arguments)
        with open(os.path.join(result["run_dir"], "environment.json")) as stream:
            kernels = json.load(stream)["workers"][0]["kernels"]
        return result["run_dir"], [k for k in kernels if k.startswith("matmul: ")]

    def check_products(self):
        for shapes in (("64,48", "48,40"), ("33,17", "17,65"), ("1,1", "1,1"), ("3,20,30", "3,30,10"), ("5,0", "0,7"),
                       ("0,5", "5,7"), ("300,20", "20,600")):
            result = self.bench(shapes)
            self.assertTrue(result["correct"], result)
            self.assertEqual(result["kernel_set"], "openblas")
        for transposes in (("1", "0"), ("0", "1"), ("1", "1")):
            a = "48,64" if transposes[0] == "1" else "64,48"
            b = "40,48" if transposes[1] == "1" else "48,40"
            for activation in ("none", "relu", "tanh", "sigmoid"):
                result = self.bench((a, b, "40"), "transpose_a=" + transposes[0], "transpose_b=" + transposes[1],
                                    "activation=" + activation)
                self.assertTrue(result["correct"], result)

    def bench(self, shapes, *attributes):
        arguments = [part for shape in shapes for part in ("--shape", shape)]
        arguments += [part for one in attributes for part in ("--attr", one)]
        return self.must("bench", "op", *PRODUCT, *arguments, "--kernels", "matmul=openblas", "--repeats", "1",
                         "--json")["results"][0]

    def check_training(self):
        usual, chosen = self.train()
        self.assertTrue(all(c.startswith("matmul: cpu/") for c in chosen), chosen)
        pinned, chosen = self.train("--kernels", "matmul=openblas")
        self.assertTrue(chosen and all(c.startswith("matmul: openblas/blocks") for c in chosen), chosen)
        for a, b in zip(netcl_cli.step_losses(usual), netcl_cli.step_losses(pinned)):
            self.assertAlmostEqual(a, b, delta=1e-4 * (1 + abs(a)))


class FakeLibrary(WithLibrary):
    fake = "fake.so"

    def test_it_is_asked_after_the_set_for_processors(self):
        chosen, own = self.candidates()
        self.assertEqual(chosen["plugin"], "cpu")
        self.assertEqual(sorted(c["variant"] for c in own),
                         sorted("blocks%d-1.2.3-Fake" % side for side in (64, 128, 256, 512, 1024)))
        self.assertEqual({c["verdict"] for c in own}, {"able"})
        self.assertEqual(self.candidates("--kernels", "matmul=openblas:blocks64-1.2.3-Fake")[0],
                         {"plugin": "openblas", "variant": "blocks64-1.2.3-Fake"})

    def test_products(self):
        self.check_products()

    def test_training(self):
        self.check_training()
        done = self.cli.run("train", os.path.join(self.cli.folder, "config.json"), "--devices", "cpu:0", "--explain",
                            "--kernels", "matmul=openblas")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("openblas/blocks", done.stdout)

    def test_a_record_is_of_one_version_of_the_library(self):
        # Without the set that would win: the fake library is slow.
        alone = ("--disable-plugins", "cpu")
        question = PRODUCT + ("--shape", "64,48", "--shape", "48,40")
        result = self.must("tune", *question, "--kernels", "openblas", *alone, "--json")
        self.assertNotIn("skipped", result["results"][0], result)
        chosen, own = self.candidates(*alone)
        self.assertEqual(chosen["plugin"], "openblas")
        self.assertIn("tuned record, exact", own[0]["reason"])
        self.use("fake_newer.so")
        chosen, own = self.candidates(*alone)
        self.assertIn("blocks1024-1.2.4-Fake", [c["variant"] for c in own])
        refused = [c["reason"] for c in own if c["verdict"] == "declined"]
        self.assertTrue(any("no variant" in reason and "1.2.3-Fake" in reason for reason in refused), own)


class NoLibrary(WithLibrary):
    def expect(self, words):
        chosen, own = self.candidates()
        self.assertEqual(chosen["plugin"], "cpu")
        self.assertEqual([(c["verdict"], c["variant"]) for c in own], [("declined", "")])
        self.assertIn(words, own[0]["reason"])
        done = self.cli.run("bench", "op", *PRODUCT, "--shape", "8,8", "--shape", "8,8", "--kernels", "matmul=openblas")
        self.assertEqual(done.returncode, 4, done.stdout + done.stderr)
        self.assertIn(words, done.stdout + done.stderr)

    def test_missing(self):
        # Nothing can be taken from the loader's default folders; a file that is no library can be put before.
        folder = os.path.join(self.cli.folder, "broken")
        os.makedirs(folder)
        with open(os.path.join(folder, "libopenblas.so.0"), "w") as stream:
            stream.write("nothing")
        self.cli.env["LD_LIBRARY_PATH"] = folder
        self.expect("the library OpenBLAS cannot be opened")

    def test_integers_of_64_bits(self):
        self.use("fake_wide.so")
        self.expect("takes integers of 64 bits")

    def test_without_the_interface(self):
        self.use("fake_without.so")
        self.expect("has no function cblas_sgemm")


@unittest.skipUnless(installed(), "OpenBLAS (libopenblas.so.0) is not installed")
class RealLibrary(WithLibrary):
    def test_products(self):
        self.check_products()

    def test_training(self):
        self.check_training()

    def test_the_conformance_kit(self):
        done = self.cli.run("plugins", "verify", os.path.join(netcl_cli.plugins_dir(), "openblas"), "--quick", "--json")
        failed = [row for row in json.loads(done.stdout)["checks"] if not row["passed"]]
        self.assertEqual((done.returncode, failed), (0, []), done.stderr)

    def test_the_number_of_workers_changes_no_bit(self):
        contents = []
        for devices in ("cpu:0", "cpu:0/2"):
            run, chosen = self.train("--kernels", "matmul=openblas", "--reproducible", devices=devices)
            self.assertTrue(chosen and all("openblas" in c for c in chosen), chosen)
            with open(os.path.join(run, "checkpoints/last.safetensors"), "rb") as stream:
                contents.append(stream.read())
        self.assertEqual(contents[0], contents[1])


if __name__ == "__main__":
    unittest.main()
