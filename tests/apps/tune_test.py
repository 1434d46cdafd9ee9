"""netcl-app tune: finds planted settings, survives candidates that crash, hang and lie, and its
records are used as they may be."""

import hashlib
import json
import os
import shutil
import signal
import subprocess
import tempfile
import unittest

from tests.apps import netcl_cli, tuned_pack

QUESTION = ("--op", "relu", "--shape", "32,1024", "--device", "cpu:0")
BEST = "steps(WORK=1)"


def content_of_elementwise(plugin):
    """The hash that records of a pack's elementwise ops carry, as plugins/README.md says it."""
    directory = os.path.join(netcl_cli.plugins_dir(), plugin)
    with open(os.path.join(directory, "elementwise.json")) as stream:
        variants = json.load(stream)["families"]["elementwise"]
    text = json.dumps(variants, separators=(",", ":"), ensure_ascii=False) + "\n"
    for name in sorted({name for v in variants for launch in v["launches"] for name in launch["sources"]}):
        with open(os.path.join(directory, name), "rb") as stream:
            text += name + "\n" + hashlib.sha256(stream.read()).hexdigest() + "\n"
    return hashlib.sha256(text.encode()).hexdigest()


class Tune(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.first = netcl_cli.Cli()
        packs = tuned_pack.write(cls.first.folder)
        cls.packs = packs
        done = cls.first.run("tune", *QUESTION, "--plugin-path", packs, "--kernels", "tuned_pack",
                             "--candidate-timeout", "6s", "--json")
        cls.said = done.stderr
        cls.code = done.returncode
        cls.document = json.loads(done.stdout)

    def setUp(self):
        """Each test has a copy of the home and the packs after the first search."""
        self.folder = tempfile.mkdtemp(dir=os.environ.get("TEST_TMPDIR"))
        shutil.copytree(os.path.join(self.first.folder, ".local"), os.path.join(self.folder, ".local"))
        shutil.copytree(self.packs, os.path.join(self.folder, "packs"))
        self.cli = netcl_cli.Cli(self.folder)
        self.pack = os.path.join(self.folder, "packs", "tuned_pack")
        self.tuned = os.path.join(self.folder, ".local/share/netcl/tuned")
        (name,) = [n for n in os.listdir(self.tuned) if n.endswith(".jsonl")]
        self.file = os.path.join(self.tuned, name)

    def tearDown(self):
        shutil.rmtree(self.folder)

    def run_app(self, *arguments, code=0, env=None):
        done = self.cli.run(*arguments, "--plugin-path", os.path.dirname(self.pack), env=env)
        self.assertEqual(done.returncode, code, done.stdout + done.stderr)
        return done

    def tune(self, *arguments, code=0):
        done = self.run_app("tune", *QUESTION, "--kernels", "tuned_pack", "--json", *arguments, code=code)
        return json.loads(done.stdout), done.stderr

    def why(self, *arguments, shape="32,1024", env=None):
        """The chosen variant with its reason, all reasons, and what was said beside."""
        done = self.run_app("plugins", "why", "--op", "relu", "--shape", shape, "--device", "cpu:0",
                            "--json", *arguments, env=env)
        candidates = json.loads(done.stdout)["candidates"]
        (chosen,) = [c for c in candidates if c["verdict"] == "chosen"]
        return chosen, "\n".join(c["reason"] for c in candidates), done.stderr

    def record(self):
        with open(self.file) as lines:
            return json.loads(lines.read().splitlines()[-1])

    def checks(self):
        """Key and state of each line of the file of verdicts."""
        with open(os.path.join(self.tuned, "checks.txt")) as lines:
            return [tuple(line.split()[:2]) for line in lines]

    def write_record(self, record, file=None):
        with open(file or self.file, "w") as stream:
            stream.write(json.dumps(record, separators=(",", ":")) + "\n")

    def test_the_planted_best_is_found(self):
        self.assertEqual(self.code, 0, self.said)
        (result,) = self.document["results"]
        self.assertEqual((result["best"]["plugin"], result["best"]["variant"]), ("tuned_pack", BEST))
        self.assertEqual(result["default"]["variant"], "steps")
        self.assertGreater(result["best"]["speedup"], 2)
        self.assertEqual((result["candidates"], result["failed"]), (12, 3))
        self.assertFalse(result["from_record"])
        self.assertIn("searching 12 candidates of relu 32x1024 on cpu:0, at most 120 s", self.said)
        record = self.record()
        self.assertEqual(record["variant"], BEST)
        self.assertIn("reference: 32x1024; ", record["check"])
        self.assertGreater(record["default"]["median_us"], 2 * record["median_us"])

    def test_bad_candidates_are_named(self):
        for words in ("MODE=1): skipped: 32x1024: output 0: element 16384",
                      "MODE=2): skipped: killed by signal 11 (SIGSEGV)",
                      "MODE=3): skipped: no answer within 6 s"):
            self.assertIn("tuned_pack/steps(" + words, self.said)

    def test_the_record_is_used(self):
        chosen, _, said = self.why()
        self.assertEqual((chosen["plugin"], chosen["variant"]), ("tuned_pack", BEST))
        self.assertRegex(chosen["reason"], r"^tuned record, exact: \d+\.\d+x the default \(user record .*jsonl:1\)$")
        self.assertEqual(said, "")
        self.assertEqual(self.why("--no-tuned")[0]["variant"], "steps")
        self.assertEqual(self.why("--kernels", "relu=tuned_pack:steps(WORK=8)")[0]["variant"], "steps(WORK=8)")
        self.assertEqual(self.why("--kernels", "relu=generic")[0]["plugin"], "generic")
        self.assertEqual(self.why(env={"NETCL_SAFE_MODE": "1"})[0]["plugin"], "cpu")
        for arguments, variant in (((), BEST), (("--no-tuned",), "steps")):
            done = self.run_app("bench", "op", *QUESTION, "--json", *arguments)
            self.assertEqual(json.loads(done.stdout)["results"][0]["variant"], variant)

    def test_the_second_start_does_not_search(self):
        document, said = self.tune()
        (result,) = document["results"]
        self.assertTrue(result["from_record"])
        self.assertEqual(result["best"]["variant"], BEST)
        self.assertIn("tuned before", said)
        self.assertNotIn("searching", said)
        with open(self.file) as lines:
            self.assertEqual(len(lines.readlines()), 1)

    def test_what_failed_is_not_tried_again(self):
        os.remove(self.file)
        document, said = self.tune("--candidate-timeout", "100s")
        (result,) = document["results"]
        self.assertEqual((result["failed"], result["tried"]), (3, 9))  # of 12
        self.assertEqual(result["best"]["variant"], BEST)
        self.assertIn("MODE=2): skipped: killed by signal 11", said)

    def test_an_interrupt_keeps_the_best(self):
        os.remove(self.file)
        os.remove(os.path.join(self.tuned, "checks.txt"))  # so that the endless one runs again
        command = [self.cli.binary, "tune", *QUESTION, "--kernels", "tuned_pack", "--json",
                   "--plugin-path", os.path.dirname(self.pack), "--candidate-timeout", "600s"]
        with subprocess.Popen(command, env=self.cli.env, cwd=self.folder, stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, universal_newlines=True) as process:
            for line in process.stderr:
                if "MODE=2): skipped" in line:
                    break
            self.wait_until_tried(process)
            process.send_signal(signal.SIGINT)
            out, said = process.communicate(timeout=60)
        self.assertEqual(process.returncode, 130, out + said)
        document = json.loads(out)
        self.assertEqual(document["stopped"], "interrupted")
        self.assertEqual(document["results"][0]["best"]["variant"], BEST)
        self.assertEqual(self.record()["variant"], BEST)
        # What was being tried then is not held to be bad.
        self.assertNotIn("tried", dict(self.checks()).values())

    def wait_until_tried(self, process):
        """The endless candidate, which comes next, has been begun."""
        while self.checks()[-1][1] != "tried":
            self.assertIsNone(process.poll())

    def test_a_tuner_that_was_killed_blames_nobody(self):
        os.remove(self.file)
        os.remove(os.path.join(self.tuned, "checks.txt"))
        command = [self.cli.binary, "tune", *QUESTION, "--kernels", "tuned_pack",
                   "--plugin-path", os.path.dirname(self.pack), "--candidate-timeout", "600s"]
        with subprocess.Popen(command, env=self.cli.env, cwd=self.folder, stdout=subprocess.DEVNULL,
                              stderr=subprocess.PIPE, universal_newlines=True) as process:
            for line in process.stderr:
                if "MODE=2): skipped" in line:
                    break
            self.wait_until_tried(process)
            process.kill()
        # The endless one is tried again, what failed before that is not.
        document, said = self.tune("--candidate-timeout", "6s")
        self.assertIn("MODE=3): skipped: no answer within 6 s", said)
        self.assertIn("MODE=2): skipped: killed by signal 11", said)
        (result,) = document["results"]
        self.assertEqual((result["failed"], result["tried"]), (3, 10))

    def test_a_damaged_line_is_left_out(self):
        with open(self.file) as stream:
            good = stream.read()
        with open(self.file, "w") as stream:
            stream.write("half a li\n" + good)
        chosen, _, said = self.why()
        self.assertEqual(chosen["variant"], BEST)
        self.assertIn(self.file + ":1: not JSON", said)

    def test_other_kernels_have_no_record(self):
        with open(os.path.join(self.pack, "relu.cl"), "a") as stream:
            stream.write("// changed\n")
        chosen, reasons, _ = self.why()
        self.assertEqual(chosen["variant"], "steps")
        self.assertIn(self.file + ":1: it is of other kernels", reasons)

    def test_a_wrong_record_is_refused_once_and_for_all(self):
        record = self.record()
        record["variant"] = "steps(MODE=1)"
        record["median_us"] = 0.01
        os.remove(os.path.join(self.tuned, "checks.txt"))
        self.write_record(record)
        chosen, reasons, said = self.why()
        self.assertEqual(chosen["variant"], "steps")
        self.assertIn("it failed its check: 32x1024: output 0: element 16384", reasons)
        self.assertIn("warning: the tuned variant tuned_pack/steps(MODE=1) of relu 32x1024 is not used", said)
        chosen, reasons, said = self.why()
        self.assertEqual(chosen["variant"], "steps")
        self.assertIn("it failed its check", reasons)
        self.assertEqual(said, "")

    def test_settings_that_the_plugin_does_not_take(self):
        record = self.record()
        record["variant"] = "steps(WORK=7)"
        self.write_record(record)
        chosen, reasons, _ = self.why()
        self.assertEqual(chosen["variant"], "steps")
        self.assertIn("WORK=7; it may be 1 8 64", reasons)

    def test_other_software_is_checked_once(self):
        record = self.record()
        record["software"]["driver"] = "0.1"
        self.write_record(record)
        checks = os.path.join(self.tuned, "checks.txt")
        os.remove(checks)
        chosen, _, _ = self.why()
        self.assertEqual(chosen["variant"], BEST)
        self.assertIn("driver 0.1", chosen["reason"])
        with open(checks) as stream:
            once = stream.read()
        self.assertEqual([line.split()[1] for line in once.splitlines()], ["begun", "passed"])
        self.why()
        with open(checks) as stream:
            self.assertEqual(stream.read(), once)

    def test_a_near_shape_is_served_a_far_one_not(self):
        chosen, _, _ = self.why(shape="48,1024")
        self.assertEqual(chosen["variant"], BEST)
        self.assertIn("of the shape 32x1024 at distance 0.58", chosen["reason"])
        self.assertEqual(self.why(shape="32,32")[0]["variant"], "steps")
        # That the default is the best here says nothing of what it should be there.
        record = self.record()
        record.update(variant="steps", default=dict(record["default"], variant="steps"))
        self.write_record(record)
        self.assertTrue(self.why()[0]["reason"].startswith("tuned record, exact"))
        chosen, reasons, _ = self.why(shape="48,1024")
        self.assertTrue(chosen["reason"].startswith("specificity"))
        self.assertIn("for the shape 32x1024 the default is the best", reasons)

    def test_a_set_that_came_later_is_not_outdone_unmeasured(self):
        record = self.record()
        record.update(variant="dense", kernel_sets=["cpu", "generic"])
        record["plugin"] = {"id": "generic", "content": content_of_elementwise("generic")}
        self.write_record(record)
        chosen, reasons, _ = self.why()
        self.assertEqual((chosen["plugin"], chosen["variant"]), ("tuned_pack", "steps"))
        self.assertIn("it was not measured against tuned_pack", reasons)
        record["kernel_sets"].append("tuned_pack")
        self.write_record(record)
        self.assertEqual(self.why()[0]["plugin"], "generic")

    def test_shipped_records_without_a_home(self):
        shipped = os.path.join(self.pack, "tuned", "some.jsonl")
        self.write_record(self.record(), shipped)
        nowhere = {"HOME": "/proc/none", "XDG_DATA_HOME": "/proc/none"}
        for _ in range(2):
            chosen, _, said = self.why(env=nowhere)
            self.assertEqual(chosen["variant"], BEST)
            self.assertIn("(shipped record " + shipped + ":1)", chosen["reason"])
            self.assertEqual(said.count("warning"), 1, said)
            self.assertIn("outcomes of checks of tuned kernels are not kept", said)
        done = self.cli.run("tune", *QUESTION, "--plugin-path", os.path.dirname(self.pack), env=nowhere)
        self.assertEqual(done.returncode, 7, done.stderr)
        self.assertIn("--out", done.stderr)

    def test_check_finds_what_is_bad(self):
        shipped = os.path.join(self.pack, "tuned", "some.jsonl")
        good = self.record()
        self.write_record(good, shipped)

        def check(code):
            done = self.run_app("tune", "check", "--json", code=code)
            document = json.loads(done.stdout)
            self.assertEqual(document["passed"], code == 0)
            (row,) = [r for r in document["records"] if r["place"].startswith(shipped)]
            return row

        self.assertEqual(check(0)["state"], "passed")
        for change, words in (
                (lambda r: r["plugin"].update(content="0" * 64), "other kernels"),
                (lambda r: r.update(variant="steps(MODE=1)"), "its results are wrong"),
                (lambda r: r.update(variant="steps(WORK=7)"), "does not take its settings"),
                (lambda r: r.update(median_us=-1), "no time that was measured"),
                (lambda r: r["plugin"].update(id="generic"), "in the directory of tuned_pack")):
            record = json.loads(json.dumps(good))
            change(record)
            self.write_record(record, shipped)
            row = check(4)
            self.assertEqual(row["state"], "bad")
            self.assertIn(words, row["detail"])
        elsewhere = json.loads(json.dumps(good))
        elsewhere["device"].update(name="another", compute_units=64)
        self.write_record(elsewhere, shipped)
        self.assertEqual(check(0)["state"], "valid")

    def test_a_run_uses_records_and_can_be_tuned(self):
        config = os.path.join(self.folder, "config.json")
        with open(config, "w") as stream:
            json.dump({"model": {"input": [16], "layers": [
                {"type": "linear", "out": 1024}, {"type": "layer_norm"}, {"type": "relu"},
                {"type": "linear", "out": 4}]},
                "data": {"format": "synthetic", "kind": "blobs", "samples": 64, "classes": 4},
                "batch_size": 32, "epochs": 1}, stream)

        def workers(devices, out):
            self.cli.train(config, "--devices", devices, "--shard", "even", "--out", out,
                           "--plugin-path", os.path.dirname(self.pack))
            with open(os.path.join(self.folder, out, "environment.json")) as stream:
                return json.load(stream)["workers"]

        (worker,) = workers("cpu:0", "run")
        self.assertIn("relu: tuned_pack/" + BEST, worker["kernels"])
        questions = {(q["op"], json.dumps(q["shapes"])) for q in worker["questions"]}
        self.assertIn(("relu", "[[32, 1024]]"), questions)
        self.assertTrue(any(op == "matmul" for op, _ in questions), questions)
        one, two = workers("cpu:0/2", "two")
        self.assertEqual(one["kernels"], two["kernels"])
        self.assertIn("relu: tuned_pack/" + BEST, one["kernels"])
        done = self.run_app("tune", "--from-run", "run", "--device", "cpu:0", "--json", "--budget", "4s",
                            "--out", "run.jsonl")
        document = json.loads(done.stdout)
        self.assertGreater(len(document["results"]), 0)
        with open(os.path.join(self.folder, "run.jsonl")) as lines:
            searched = [json.loads(line)["op"] for line in lines]
        self.assertEqual(sorted(searched), sorted(r["op"] for r in document["results"]
                                                  if r["record"] and not r["from_record"]))
        # The record was measured against one set alone; now all are searched.
        (relu,) = [r for r in document["results"] if (r["op"], r["shape"]) == ("relu", [[32, 1024]])]
        self.assertFalse(relu["from_record"])
        self.assertEqual(relu["default"]["variant"], "steps")


class Usage(unittest.TestCase):
    def test_words(self):
        cli = netcl_cli.Cli()
        for arguments, words in ((("tune",), "--op with --shape, or --from-run"),
                                 (("tune", *QUESTION, "--budget", "soon"), "--budget soon: expected a time"),
                                 (("tune", *QUESTION, "--from-run", "x"), "--op with --shape, or --from-run"),
                                 (("tune", "--from-run", "nowhere"), "nowhere")):
            done = cli.run(*arguments)
            self.assertEqual(done.returncode, 2, done.stderr)
            self.assertIn(words, done.stderr)
        done = cli.run("tune", *QUESTION, "--kernels", "none")
        self.assertEqual(done.returncode, 4, done.stderr)


if __name__ == "__main__":
    unittest.main()
