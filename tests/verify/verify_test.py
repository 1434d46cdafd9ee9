"""netcl-app plugins verify: every planted fault is found by the check that is named for it, and the right twin passes.

usage: verify_test.py NETCL_APP FAULTY.so FAULTY_TRANSPORT.so EXPORTING.so
"""

import json
import os
import shutil
import stat
import subprocess
import sys
import tempfile
import unittest

RUNFILES = os.path.join(os.environ["TEST_SRCDIR"], os.environ["TEST_WORKSPACE"])
APP, FAULTY, TRANSPORT, EXPORTING = (os.path.join(RUNFILES, path) for path in sys.argv[1:5])
del sys.argv[1:5]

MANIFEST = {
    "manifest": "netcl-plugin/1", "id": "faulty", "version": "1.0.0", "kinds": ["kernels", "layer"],
    "library": {"linux-x86_64": "libfaulty.so"}, "abi": {"major": 0, "minor": 4},
    "provides": [{"op": op, "dtypes": ["f32"]} for op in ("relu", "relu_grad", "faulty.gain", "faulty.gain.grad")] + [
        {"layer": "faulty.gain"}],
}
TRANSPORT_MANIFEST = dict(MANIFEST, kinds=["transport"], version="0.1.0", provides=[{"transport": "faulty"}])

# The fault, the check that is named for it, words of its detail.
BOUNDARY_FAULTS = (
    ("crash_at_load", "opens", "NPL-11: crashed (signal 11 (SIGSEGV))"),
    ("crash_in_open", "opens", "NPL-11: crashed (signal 11 (SIGSEGV))"),
    ("abort_in_open", "opens", "NPL-11: crashed (signal 6 (SIGABRT))"),
    ("exit_in_open", "opens", "NPL-11: it ended the process, with exit code 0"),
    ("hang_in_open", "opens", "NPL-11: timed out: no sign of progress for 2 s"),
    ("exception_in_open", "abi.exceptions", "let out of open"),
    ("wrong_id", "opens", "NPL-13: the library says other 1.0.0, the manifest faulty 1.0.0"),
    ("wrong_version", "opens", "NPL-13: the library says faulty 2.0.0"),
    ("no_kernels_table", "tables", "NPL-13: plugin faulty has no interface netcl.kernels/1"),
    ("opens_once", "opens.again", "NPL-12"),
    ("frees_twice", "close.twice", "NPL-11: crashed"),
    ("prints", "quiet", "standard output (opens): \"hello from the plugin\""),
    ("prints_errors", "quiet", "standard error (opens): \"an error of the plugin\""),
    ("writes_beyond_api", "abi.sizes", "it wrote to byte"),
    ("reads_beyond_host", "abi.sizes", "NPL-11: crashed (signal 11 (SIGSEGV))"),
    ("old_hosts_only", "abi.sizes", "a newer host"),
    ("forgets_errors", "abi.host_fails", "the host's op failed, and the plugin says that all is well"),
    ("exception_let_out", "abi.exceptions", "an exception left the plugin: let out of trace"),
    ("terminates", "abi.exceptions", "an exception ended the process"),
    ("any_interface", "abi.exceptions", "it answers with a table"),
)
KERNEL_FAULTS = (
    ("wrong_in_one_shape", "kernels.results", "plain, relu(f32[1031]): output 0: element 1030: got 9"),
    ("past_the_end", "kernels.bounds", "written beyond output 0"),
    ("wrong_sign", "kernels.results", "plain, relu_grad("),
    ("input_modified", "kernels.inputs", "input 0 was written"),
    ("wrong_knob", "kernels.results", "plain(WIDTH=4), relu("),
    ("hang_in_kernel", "kernels.results", "NPL-11: timed out: no sign of progress for 2 s, while running plain"),
    ("hang_in_plan", "kernels.plans", "NPL-11: timed out: no sign of progress for 2 s, while planning relu"),
    ("crash_in_plan", "kernels.plans", "NPL-11: crashed (signal 11 (SIGSEGV)) while planning relu"),
    ("exit_in_plan", "kernels.plans", "NPL-11: it ended the process, with exit code 0"),
    ("exception_in_plan", "abi.exceptions", "an exception left the plugin: let out of plan"),
    ("bad_index", "kernels.plans", "argument"),
    ("another_plan", "kernels.plans", "asked again, the plan is another"),
    ("any_variant", "kernels.unknown_variant", "it plans a variant \"no_such_variant\""),
    ("declines_all", "kernels.offers", "relu: every case is declined"),
)
LAYER_FAULTS = (
    ("mixes_samples", "layer.faulty.gain.shapes", "differs from the same samples' in a batch of 5"),
    ("unused_parameter", "layer.faulty.gain.gradients", "gain has no gradient"),
    ("misused_op", "layer.faulty.gain.gradients", "finite differences say"),
    ("another_trace", "layer.faulty.gain.replay", "traced again it is another layer"),
    ("parameter_in_evaluation", "layer.faulty.gain.replay", "they must be the same"),
    ("crash_on_a_key", "layer.faulty.gain.attributes", "NPL-11: crashed (signal 11 (SIGSEGV)) while layer faulty.gain"),
)
FUSED_FAULTS = (
    ("wrong_fused", "layer.faulty.gain.kernels", "plain, faulty.gain of "),
    ("wrong_sign", "layer.faulty.gain.kernel_gradients", "plain, faulty.gain.grad of "),
    ("declines_all", "kernels.offers", "faulty.gain: no layer of this plugin"),
)
TRANSPORT_FAULTS = (
    ("order_of_arrival", "transport.order", "the sum has other bits than in order"),
    ("wrong_chunk", "transport.matrix", "got 0x"),
    ("crash_in_wait", "transport.matrix", "NPL-11: rank 1 crashed (signal 11 (SIGSEGV))"),
    ("declines_all", "transport.accept", "no group of two ranks or more on this machine is served: not today"),
    ("ignores_mismatch", "transport.mismatch", "expected NETCL_E_STATE"),
    ("ignores_dead_peer", "transport.peer", "still waits 5 s after rank 1 has died"),
    ("ignores_limit", "transport.stall", "still waits 5 s after rank 1 has stopped"),
    ("ignores_abort", "transport.abort", "still waits 5 s after it was aborted"),
)


class Verify(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.mkdtemp(dir=os.environ.get("TEST_TMPDIR"))
        cls.env = dict(os.environ, HOME=cls.folder, NETCL_CACHE_DIR=os.path.join(cls.folder, "netcl-cache"),
                       POCL_CACHE_DIR=os.path.join(cls.folder, "pocl-cache"))

    def plugin(self, manifest=MANIFEST, library=FAULTY, fault=""):
        directory = tempfile.mkdtemp(dir=self.folder)
        shutil.copyfile(library, os.path.join(directory, "libfaulty.so"))
        with open(os.path.join(directory, "plugin.json"), "w") as file:
            json.dump(manifest, file)
        with open(os.path.join(directory, "fault"), "w") as file:
            file.write(fault)
        return directory

    def run_verify(self, directory, *options):
        """Returns exit code, the result's rows by name, and the whole document."""
        done = subprocess.run([APP, "plugins", "verify", directory, "--json", *options], env=self.env,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, universal_newlines=True, timeout=300)
        document = json.loads(done.stdout)
        if "checks" not in document:
            return done.returncode, {}, document
        self.assertEqual(document["passed"], done.returncode == 0, done.stdout)
        return done.returncode, {row["name"]: row for row in document["checks"]}, document

    def find(self, directory, check, words, *options):
        """The check, and it alone of those that are run, fails with the words."""
        code, rows, document = self.run_verify(directory, "--only", check, *options)
        self.assertEqual(code, 4, document)
        self.assertIn(check, rows, document)
        self.assertFalse(rows[check]["passed"], document)
        self.assertIn(words, rows[check]["detail"])

    def find_all(self, faults, *options, **plugin):
        for fault, check, words in faults:
            with self.subTest(fault=fault):
                timeout = ("--timeout", "2" if "hang" in fault else "60")
                self.find(self.plugin(fault=fault, **plugin), check, words, *timeout, *options)

    def passes(self, directory, *options):
        code, rows, document = self.run_verify(directory, *options)
        self.assertEqual((code, [row for row in rows.values() if not row["passed"]]), (0, []), document)
        self.assertEqual(document["not_run"], [], document)
        return rows

    def test_the_right_twin_passes(self):
        rows = self.passes(self.plugin())
        for faults in (BOUNDARY_FAULTS, KERNEL_FAULTS, LAYER_FAULTS, FUSED_FAULTS):
            for _, check, _ in faults:
                self.assertIn(check, rows)

    def test_the_right_transport_passes(self):
        rows = self.passes(self.plugin(TRANSPORT_MANIFEST, TRANSPORT), "--quick")
        for _, check, _ in TRANSPORT_FAULTS:
            self.assertIn(check, rows)

    def test_boundary_faults(self):
        self.find_all(BOUNDARY_FAULTS)

    def test_kernel_faults(self):
        self.find_all(KERNEL_FAULTS)

    def test_layer_faults(self):
        self.find_all(LAYER_FAULTS + FUSED_FAULTS)

    def test_transport_faults(self):
        self.find_all(TRANSPORT_FAULTS, "--quick", manifest=TRANSPORT_MANIFEST, library=TRANSPORT)

    def test_more_exports_than_the_entry(self):
        self.find(self.plugin(library=EXPORTING), "exports", "NPL-16: ")
        code, rows, _ = self.run_verify(self.plugin(library=EXPORTING), "--only", "exports")
        self.assertIn("exports 1 more than netcl_plugin_open_v1: a_name_that_others_may_have", rows["exports"]["detail"])

    def test_gates_come_before_any_code(self):
        """A manifest or file that is refused is the one row that fails, and nothing is opened."""
        cases = (
            (dict(MANIFEST, abi={"major": 0, "minor": 999}), "manifest", "NPL-04"),
            (dict(MANIFEST, manifest="netcl-plugin/9"), "manifest", "NPL-02"),
            (dict(MANIFEST, kinds=["colours"]), "manifest", "NPL-01"),
            (dict(MANIFEST, library={"linux-x86_64": "libnone.so"}), "files", "NPL-03"),
            (dict(MANIFEST, sha256={"libfaulty.so": "0" * 64}), "files", "NPL-06"),
        )
        for manifest, check, words in cases:
            with self.subTest(words=words):
                code, rows, document = self.run_verify(self.plugin(manifest, fault="crash_at_load"))
                self.assertEqual((code, [n for n, row in rows.items() if not row["passed"]]), (4, [check]), document)
                self.assertIn(words, rows[check]["detail"])
                self.assertNotIn("opens", rows)
        directory = self.plugin(fault="crash_at_load")
        os.chmod(os.path.join(directory, "libfaulty.so"), 0o666)
        self.find(directory, "files", "NPL-07")

    def test_no_device_matches(self):
        manifest = dict(MANIFEST, provides=[{"op": "relu", "match": [{"vendor": "nobody"}]}], kinds=["kernels"])
        code, rows, document = self.run_verify(self.plugin(manifest))
        self.assertEqual(code, 4, document)
        self.assertIn("NPL-08", rows["device"]["detail"])
        self.assertIn("kernels.results", document["not_run"])

    def test_an_op_that_is_none(self):
        manifest = dict(MANIFEST, provides=[{"op": "reluu"}, {"layer": "faulty.gain"}])
        self.find(self.plugin(manifest), "kernels.offers", "relu")

    def test_layers_of_the_manifest_and_the_library(self):
        for layers, words in ((["faulty.other"], "the library does not have it"),
                              ([], "which the manifest does not name")):
            provides = [{"layer": name} for name in layers]
            self.find(self.plugin(dict(MANIFEST, provides=provides)), "tables", words)

    def test_an_example_that_the_author_gives(self):
        directory = self.plugin()
        with open(os.path.join(directory, "verify.json"), "w") as file:
            json.dump({"layers": [{"type": "faulty.gain", "input": [9], "factor": 2.5}]}, file)
        self.passes(directory, "--only", "layer.*")
        with open(os.path.join(directory, "verify.json"), "w") as file:
            json.dump({"layers": [{"type": "faulty.gain", "input": [9], "factor": 99}]}, file)
        self.find(directory, "layer.faulty.gain.shapes", "factor")

    def test_after_a_crash_the_other_checks_run(self):
        code, rows, document = self.run_verify(self.plugin(fault="crash_on_a_key"))
        self.assertEqual([name for name, row in rows.items() if not row["passed"]], ["layer.faulty.gain.attributes"],
                         document)
        self.assertIn("kernels.results", rows)

    def test_listed(self):
        done = subprocess.run([APP, "plugins", "verify", self.plugin(fault="crash_at_load"), "--list", "--json"],
                              env=self.env, stdout=subprocess.PIPE, check=True)
        names = [check["name"] for check in json.loads(done.stdout)["checks"]]
        self.assertEqual(names[:3], ["manifest", "files", "exports"])
        self.assertIn("layer.faulty.gain.replay", names)
        self.assertNotIn("transport.matrix", names)

    def test_bad_usage(self):
        for arguments in ((os.path.join(self.folder, "nowhere"),), (self.plugin(), "--only", "no.such.check"),
                          (self.plugin(), "--device", "gpu:77"), (self.plugin(), "--timeout", "0"), ()):
            with self.subTest(arguments=arguments):
                done = subprocess.run([APP, "plugins", "verify", *arguments], env=self.env, stdout=subprocess.PIPE,
                                      stderr=subprocess.PIPE, universal_newlines=True)
                self.assertEqual(done.returncode, 2, done.stderr)
                self.assertEqual(done.stdout, "")

    def test_for_people(self):
        done = subprocess.run([APP, "plugins", "verify", self.plugin(fault="prints"), "--only", "opens*"], env=self.env,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, universal_newlines=True)
        self.assertIn("passed  opens", done.stdout)
        done = subprocess.run([APP, "plugins", "verify", self.plugin(fault="crash_in_open")], env=self.env,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, universal_newlines=True)
        self.assertIn("FAILED  opens\n          NPL-11", done.stdout)
        self.assertIn("checks FAILED", done.stderr)


if __name__ == "__main__":
    unittest.main()
