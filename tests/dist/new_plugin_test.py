"""plugins new, from the archive: each kind is written, built and passes its own check.

Nothing of the build is used but the archive; make has g++ and the headers that the command wrote.
"""

import json
import os
import shlex
import shutil
import unittest

from tests.dist import unpacked


class NewPlugin(unpacked.Unpacked):
    def refused(self, *arguments, code=2):
        """Runs `plugins new` in vain; returns its words. Nothing may have been written."""
        before = sorted(os.listdir(self.place))
        done = self.run_command(self.app, "plugins", "new", *arguments)
        self.assertEqual(done.returncode, code, done.stdout)
        self.assertEqual(sorted(os.listdir(self.place)), before)
        return done.stdout

    def new(self, kind, name):
        """Writes a plugin; returns its directory."""
        document = json.loads(self.must(self.app, "plugins", "new", kind, name, "--json"))
        directory = os.path.join(self.place, name)
        self.assertEqual((document["kind"], document["name"], document["directory"]),
                         (kind, name, os.path.realpath(directory)))
        found = [os.path.relpath(os.path.join(top, file), directory)
                 for top, _, files in os.walk(directory) for file in files]
        self.assertEqual(sorted(document["files"]), sorted(found))
        for file in found:
            with open(os.path.join(directory, file)) as stream:
                self.assertNotRegex(stream.read(), "@[A-Z_]+@", file)
        return directory

    def check(self, kind, name, changes):
        """Builds and checks a new plugin of the kind. Each of `changes` (file, words, other words) breaks it,
        and must then fail its check."""
        directory = self.new(kind, name)
        self.must("make", "NETCL_APP=" + self.app, cwd=directory)
        rows = json.loads(self.must(self.app, "plugins", "list", "--json", "--plugin-path", "build", cwd=directory))
        row = next(row for row in rows["plugins"] if row["id"] == name)
        self.assertEqual((row["state"], row["kind"]), ("serving", kind), row)
        library = os.path.join(directory, "build", name, "lib%s.so" % name)
        exports = self.must("nm", "-D", "--defined-only", library).split()
        self.assertEqual(exports[2:], ["netcl_plugin_open_v1"])
        self.assertIn("check: passed", self.must("make", "check", "NETCL_APP=" + self.app, cwd=directory))
        for file, words, others in changes:
            path = os.path.join(directory, file)
            with open(path) as stream:
                text = stream.read()
            self.assertIn(words, text)
            with open(path, "w") as stream:
                stream.write(text.replace(words, others))
            done = self.run_command("make", "check", "NETCL_APP=" + self.app, cwd=directory)
            self.assertNotEqual(done.returncode, 0, done.stdout)
            self.assertNotIn("check: passed", done.stdout)
            with open(path, "w") as stream:
                stream.write(text)
        self.must("make", "NETCL_APP=" + self.app, cwd=directory)
        return directory

    def test_layer(self):
        directory = self.check("layer", "my-layers_2", [("layer.cc", "t.output(0, ", 't.output(0, t.op("scale", {x}, '
                                '{netcl::plugin::attr_float("factor", 0)})); if (false) t.output(0, ')])
        # Without netcl-app in PATH the check says what to do; with it no variable is needed.
        done = self.run_command("make", "check", cwd=directory)
        self.assertNotEqual(done.returncode, 0)
        self.assertIn("NETCL_APP=/path/to/netcl-app", done.stdout)
        path = os.path.dirname(self.app) + ":" + self.env["PATH"]
        self.must("make", "check", cwd=directory, env={"PATH": path})
        self.must("make", "install", cwd=directory)
        try:
            self.assertIn("my-layers_2.swish", self.must(self.app, "plugins", "inspect", "my-layers_2"))
            self.assertIn("there is a plugin of this name", self.refused("layer", "my-layers_2", "--dir", "again"))
        finally:
            shutil.rmtree(os.path.join(self.folder, ".local"))

    def test_kernels(self):
        directory = self.check("kernels", "my-kernels", [
            ("softmax.cl", "sum += y[i];", "sum += 1.001f * y[i];"),  # a wrong result
            ("plugin.json", '"match": [{"type": ["cpu", "gpu"]}]', '"match": [{"vendor": "nobody"}]'),
            ("variants.json", '"inner == 1"', '"inner == 2"'),  # declines
        ])
        why = json.loads(self.must(self.app, "plugins", "why", "--op", "softmax", "--shape", "8,100", "--device", "cpu:0",
                                   "--plugin-path", "build", "--json", cwd=directory))
        self.assertEqual(why["chosen"], {"plugin": "my-kernels", "variant": "rows"})
        bench = json.loads(self.must(self.app, "bench", "op", "--op", "softmax", "--shape", "8,100", "--device", "cpu:0",
                                     "--plugin-path", "build", "--json", cwd=directory))
        (row,) = bench["results"]
        self.assertEqual((row["kernel_set"], row["variant"], row["correct"]), ("my-kernels", "rows", True))
        self.assertLess(row["max_rel_err"], 1e-6)
        self.assertGreater(row["time_us"], 0)

    def test_faults_in_kernels_are_the_plugins(self):
        for file, words, others, said in (
                ("variants.json", '"global": ["', '"global": ["1 / (outer - outer) + ', "division by zero"),
                ("softmax.cl", "__kernel", "no word of OpenCL; __kernel", "of plugin faulty, variant ")):
            directory = self.new("kernels", "faulty")
            path = os.path.join(directory, file)
            with open(path) as stream:
                text = stream.read()
            self.assertIn(words, text)
            with open(path, "w") as stream:
                stream.write(text.replace(words, others, 1))
            self.must(self.app, "plugins", "seal", directory)
            done = self.run_command(self.app, "bench", "op", "--op", "softmax", "--shape", "8,100", "--device", "cpu:0",
                                    "--plugin-path", directory)
            self.assertEqual(done.returncode, 4, done.stdout)
            self.assertIn(said, done.stdout)
            shutil.rmtree(directory)

    def test_seal(self):
        directory = self.new("kernels", "sealed")
        document = json.loads(self.must(self.app, "plugins", "seal", directory, "--sha256", "--json"))
        self.assertEqual((document["id"], document["library"]), ("sealed", "libsealed.so"))
        state = lambda: next(row for row in json.loads(self.must(
            self.app, "plugins", "list", "--plugin-path", directory, "--json"))["plugins"] if row["id"] == "sealed")
        self.assertEqual(state()["state"], "serving")
        with open(os.path.join(directory, "softmax.cl"), "a") as stream:
            stream.write("// changed\n")
        self.assertEqual((state()["state"], state()["code"]), ("rejected", "NPL-06"))
        self.must(self.app, "plugins", "seal", directory)  # without hashes: those of before are gone
        self.assertEqual(state()["state"], "serving")
        os.remove(os.path.join(directory, "variants.json"))
        done = self.run_command(self.app, "plugins", "seal", directory)
        self.assertEqual(done.returncode, 2, done.stdout)
        self.assertIn("variants.json is missing", done.stdout)
        done = self.run_command(self.app, "plugins", "seal", self.new("layer", "compiled"))
        self.assertEqual(done.returncode, 2, done.stdout)
        self.assertIn("plugins of other kinds are compiled, not sealed", done.stdout)

    def test_seal_checks_before_it_writes(self):
        def cut(path):
            with open(path, "r+") as stream:
                stream.truncate(os.path.getsize(path) - 5)

        def pipe(path):
            os.remove(path)
            os.mkfifo(path)

        def rename(key, path):
            with open(path) as stream:
                text = stream.read()
            self.assertIn(key, text)
            with open(path, "w") as stream:
                stream.write(text.replace(key, key[:-1] + "s" + key[-1], 1))

        for file, damage, code, words in (
                ("plugin.json", pipe, 2, "plugin.json is no regular file"),
                ("variants.json", pipe, 2, "variants.json is no regular file"),
                ("softmax.cl", pipe, 2, "softmax.cl is no regular file"),
                ("variants.json", cut, 4, "variants.json: not JSON"),
                ("variants.json", lambda path: rename('"launches"', path), 4, "unknown member"),
                ("softmax.cl", os.remove, 4, "softmax.cl: cannot be opened"),
                ("plugin.json", lambda path: rename('"type"', path), 4, "NPL-01: ")):
            with self.subTest(file=file, words=words):
                directory = self.new("kernels", "unsealed")
                damage(os.path.join(directory, file))
                files = sorted(os.listdir(directory))
                try:
                    before = open(os.path.join(directory, "plugin.json")).read() if damage is not pipe else ""
                    done = self.run_command(self.app, "plugins", "seal", directory)
                    self.assertEqual(done.returncode, code, done.stdout)
                    self.assertIn(words, done.stdout)
                    self.assertEqual(sorted(os.listdir(directory)), files)
                    if before:
                        self.assertEqual(open(os.path.join(directory, "plugin.json")).read(), before)
                finally:
                    shutil.rmtree(directory)

    def test_another_name_for_variants(self):
        directory = self.new("kernels", "renamed")
        manifest = os.path.join(directory, "plugin.json")
        with open(manifest) as stream:
            text = stream.read()
        with open(manifest, "w") as stream:
            stream.write(text.replace('"variants.json"', '"ways.json"'))
        done = self.run_command(self.app, "plugins", "seal", directory)
        self.assertEqual(done.returncode, 2, done.stdout)
        self.assertIn("ways.json is missing", done.stdout)
        os.rename(os.path.join(directory, "variants.json"), os.path.join(directory, "ways.json"))
        self.must(self.app, "plugins", "seal", directory)
        why = json.loads(self.must(self.app, "plugins", "why", "--op", "softmax", "--shape", "8,100", "--device", "cpu:0",
                                   "--plugin-path", directory, "--json"))
        self.assertEqual(why["chosen"], {"plugin": "renamed", "variant": "rows"})

    def test_bench_op_runs_what_needs_tables(self):
        for op, shapes in (("adamw_step", ["100"] * 5), ("sgd_step", ["100"] * 5), ("max_pool2d_grad", ["1,1,4,4"] * 2)):
            with self.subTest(op=op):
                arguments = [part for shape in shapes for part in ("--shape", shape)]
                done = self.run_command(self.app, "bench", "op", "--op", op, "--device", "cpu:0", *arguments)
                self.assertEqual(done.returncode, 2, done.stdout)
                said = done.stdout[done.stdout.index("--op"):done.stdout.index("; bench step")]
                self.assertIn("max_rel_err", self.must(self.app, "bench", "op", "--device", "cpu:0", "--repeats", "1",
                                                       *shlex.split(said)))

    def test_bench_op_makes_inputs_of_many_kinds(self):
        for op, shapes in (("matmul", ["33,65,17"]), ("cross_entropy", ["16,10"]), ("add", ["7,5"]),
                           ("embedding", ["6", "9,4"]), ("cumsum", ["5,6"]), ("max_reduce", ["5,6"])):
            arguments = [part for shape in shapes for part in ("--shape", shape)]
            with self.subTest(op=op):
                self.assertIn("max_rel_err", self.must(self.app, "bench", "op", "--op", op, "--device", "cpu:0",
                                                       "--repeats", "1", *arguments))

    def test_kernels_with_cmake(self):
        if shutil.which("cmake") is None:
            self.skipTest("cmake is not installed")
        directory = self.new("kernels", "kernels_by_cmake")
        self.must("cmake", "-B", "build", "-DNETCL_APP=" + self.app, cwd=directory)
        self.must("cmake", "--build", "build", cwd=directory)
        self.assertIn("passed", self.must("ctest", "--test-dir", "build", cwd=directory))

    def test_transport(self):
        self.check("transport", "my_transport", [
            ("reduce.cc", "redop == NETCL_PROD ? a * b : a + b;", "redop == NETCL_PROD ? a * b : a + b + a * 1e-3f;"),
            ("transport.cc", "at = p.what.offset_bytes + first * size;", "at = p.what.offset_bytes;"),  # later chunks
        ])

    def test_layer_with_cmake(self):
        if shutil.which("cmake") is None:
            self.skipTest("cmake is not installed")
        directory = self.new("layer", "by_cmake")
        self.must("cmake", "-B", "build", cwd=directory)
        self.must("cmake", "--build", "build", cwd=directory)
        self.assertIn("passed", self.must("ctest", "--test-dir", "build", cwd=directory, env={"NETCL_APP": self.app}))

    def test_refusals(self):
        self.assertIn("letters, digits", self.refused("layer", "a/b"))
        self.assertIn("letters, digits", self.refused("layer", ".hidden"))
        self.assertIn("letters, digits", self.refused("layer", ""))
        self.assertIn("letters, digits", self.refused("layer", "x" * 65))
        self.assertRegex(self.refused("layer", "generic"), "there is a plugin of this name in .*plugins/generic")
        self.assertIn('did you mean "layer"', self.refused("layr", "mine"))
        self.assertIn("NAME is required", self.refused("layer"))
        taken = os.path.join(self.place, "mine")
        os.mkdir(taken)
        with open(os.path.join(taken, "layer.cc"), "w") as stream:
            stream.write("mine")
        self.assertIn("is no empty directory", self.refused("layer", "mine"))
        self.assertEqual(os.listdir(taken), ["layer.cc"])
        with open(os.path.join(taken, "layer.cc")) as stream:
            self.assertEqual(stream.read(), "mine")
        self.assertIn("is no empty directory", self.refused("layer", "other", "--dir", "mine/layer.cc"))

    def test_into_an_empty_directory_and_below_new_ones(self):
        os.mkdir(os.path.join(self.place, "empty"))
        for place in ("empty", "a/b/c", "slash/"):
            self.must(self.app, "plugins", "new", "layer", "mine", "--dir", place)
            self.assertTrue(os.path.isfile(os.path.join(self.place, place, "sdk/netcl_plugin.hpp")))
        here = os.path.join(self.place, "here")
        os.mkdir(here)
        self.must(self.app, "plugins", "new", "layer", "mine", "--dir", ".", cwd=here)
        self.assertIn("README.md", os.listdir(here))
        self.assertEqual(sorted(os.listdir(self.place)), ["a", "empty", "here", "slash"])

    def test_without_templates(self):
        lonely = os.path.join(self.place, "bin")
        os.mkdir(lonely)
        shutil.copy(self.app, lonely)
        done = self.run_command(os.path.join(lonely, "netcl-app"), "plugins", "new", "layer", "mine")
        self.assertEqual(done.returncode, 4, done.stdout)
        self.assertRegex(done.stdout, "the templates are missing: .*share/netcl/templates")


if __name__ == "__main__":
    unittest.main()
