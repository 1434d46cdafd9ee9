"""train --transport p2p: all workers in one process give the result of a process each, and fail as clearly."""

import json
import os
import signal
import unittest

from tests.apps import netcl_cli
from tests.faults import watched_run

DIGITS = netcl_cli.runfile("apps/examples/digits_mlp.json")
OCLGRIND = "/usr/lib/oclgrind/liboclgrind-rt-icd.so"
SHARES = ("--devices", "cpu:0/2")
P2P = SHARES + ("--transport", "p2p")
SGD = ("--set", 'optimizer={"type": "sgd", "lr": 0.5}', "--set", 'schedule={"type": "constant"}')
PROCESS = "rank 0 (cpu:0#0 and cpu:0#1 in one process): "


def checkpoint(result, name="last"):
    return os.path.join(result["run_dir"], "checkpoints", name + ".safetensors")


def file_bytes(result):
    with open(checkpoint(result), "rb") as stream:
        return stream.read()


def environment(result):
    with open(os.path.join(result["run_dir"], "environment.json")) as stream:
        return json.load(stream)


class Same(unittest.TestCase):
    """As with a process each."""

    @classmethod
    def setUpClass(cls):
        cls.cli = netcl_cli.Cli()

    def both(self, *arguments):
        return [self.cli.train(DIGITS, *SHARES, "--transport", t, *arguments) for t in ("host", "p2p")]

    def test_losses_and_parameters(self):
        host, p2p = self.both(*SGD, "--shard", "3,1", "--max-steps", "20")
        for a, b in zip(netcl_cli.step_losses(host["run_dir"]), netcl_cli.step_losses(p2p["run_dir"])):
            self.assertLessEqual(abs(a - b), 1e-6)
        tensors = [netcl_cli.read_safetensors(checkpoint(r)) for r in (host, p2p)]
        self.assertEqual(sorted(tensors[0]), sorted(tensors[1]))
        for name, values in tensors[0].items():
            self.assertLessEqual(max(abs(a - b) for a, b in zip(values, tensors[1][name])), 1e-5, name)

    def test_documents(self):
        """What is printed and recorded has the same form."""
        host, p2p = self.both("--epochs", "2", "--shard", "even")
        self.assertEqual((host["transport"], p2p["transport"]), ("host", "p2p"))
        self.assertEqual(sorted(host), sorted(p2p))
        self.assertEqual([sorted(w) for w in host["workers"]], [sorted(w) for w in p2p["workers"]])
        self.assertEqual([w["device"] for w in p2p["workers"]], ["cpu:0#0", "cpu:0#1"])
        self.assertEqual([w["samples"] for w in host["workers"]], [w["samples"] for w in p2p["workers"]])
        first, second = environment(host), environment(p2p)
        self.assertEqual(sorted(first), sorted(second))
        self.assertEqual([(w["rank"], w["device"], w["kernels"]) for w in first["workers"]],
                         [(w["rank"], w["device"], w["kernels"]) for w in second["workers"]])

    def test_reproducible_bits(self):
        host, p2p = self.both("--reproducible", "--epochs", "2")
        self.assertEqual(file_bytes(host), file_bytes(p2p))

    def test_sharded_update(self):
        host, p2p = self.both("--update", "sharded", "--shard", "even", "--epochs", "2")
        self.assertEqual(file_bytes(host), file_bytes(p2p))

    def test_trace(self):
        file = os.path.join(self.cli.folder, "trace.json")
        trace = self.cli.train(DIGITS, *P2P, "--trace", file, "--max-steps", "20")["trace"]
        self.assertEqual([(r["rank"], r["steps"]) for r in trace["ranks"]], [(0, 20), (1, 20)])

    def test_eval(self):
        run = self.cli.train(DIGITS, *P2P, "--epochs", "1")
        done = self.cli.run("eval", run["run_dir"], *P2P, "--json")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertAlmostEqual(json.loads(done.stdout)["metrics"]["loss"], run["metrics"]["loss"], places=6)


class Devices(unittest.TestCase):
    """Two devices of one platform: PoCL shows the processor twice if it is asked to."""

    @classmethod
    def setUpClass(cls):
        cls.cli = netcl_cli.Cli()
        # A cache of its own: what is found there, these runs have put there.
        cls.cli.env.update(POCL_DEVICES="pthread pthread", NETCL_CACHE_DIR=os.path.join(cls.cli.folder, "cache"))
        cls.two = ("--devices", "cpu:0,cpu:1")

    def test_one_context(self):
        runs = [self.cli.train(DIGITS, *self.two, "--reproducible", "--epochs", "2", "--transport", t)
                for t in ("p2p", "p2p", "host")]
        self.assertEqual(len(set(map(file_bytes, runs))), 1)
        # Programs of a context with several devices are kept on disk, too.
        for worker in environment(runs[1])["workers"]:
            self.assertEqual(worker["programs_built"], 0)
            self.assertGreater(worker["programs_from_disk"], 0)

    def test_auto(self):
        lines = []
        for cached in (False, True):
            done = self.cli.run("train", DIGITS, *self.two, "--epochs", "1", "--json")
            self.assertEqual(done.returncode, 0, done.stderr)
            lines += [line for line in done.stderr.splitlines() if line.startswith("transport ")]
            result = json.loads(done.stdout)
            probe = result["transport_probe"]
            self.assertEqual(probe["from_cache"], cached)
            self.assertEqual((probe["ranks"], probe["bytes"]), (2, 16 << 20))
            for name in ("host", "p2p"):
                self.assertTrue(probe[name]["correct"], probe)
                self.assertGreater(probe[name]["us"], 0)
            recorded = environment(result)
            self.assertEqual(recorded["transport_probe"], probe)
            self.assertEqual("transport " + recorded["transport_why"], lines[-1])
            self.assertTrue(recorded["transport_why"].startswith(result["transport"] + ": an all_reduce of 16 MiB"))
        self.assertEqual(len(lines), 2)
        self.assertEqual(lines[0], lines[1])
        quiet = self.cli.run("train", DIGITS, *self.two, "--epochs", "1", "--quiet")
        self.assertEqual((quiet.returncode, quiet.stderr), (0, ""))

    def test_auto_says_why_it_timed_nothing(self):
        for arguments, words in (
                (("--devices", "cpu:0/2"), "share a device"),
                (self.two + ("--on-failure", "continue"), "--on-failure continue"),
                (self.two + ("--disable-plugins", "p2p"), "no transport for devices in one context")):
            result = self.cli.train(DIGITS, *arguments, "--max-steps", "1")
            self.assertEqual(result["transport"], "host")
            self.assertNotIn("transport_probe", result)
            self.assertIn(words, environment(result)["transport_why"])

    def test_a_probe_that_ends_badly_leaves_host(self):
        with watched_run.WatchedRun(*self.two, "--epochs", "1", cli=self.cli,
                                    env={"NETCL_CACHE_DIR": os.path.join(self.cli.folder, "empty")}) as run:
            probes = []

            def found():
                probes[:] = [p for p in watched_run.children(run.process.pid)
                             if b"probe-transports" in watched_run.command_line(p)]
                return probes

            watched_run.wait_until(found, 30, "the probe starts")
            watched_run.send(probes[0], signal.SIGSEGV)
            code, result = run.finish(60)
            self.assertEqual((code, result["transport"]), (0, "host"))
            self.assertIn("SIGSEGV", result["transport_probe"]["error"])
            self.assertIn("SIGSEGV", environment(result)["transport_why"])


class Probe(unittest.TestCase):
    def test_numbers(self):
        done = netcl_cli.Cli().run("probe-transports", "--devices", "cpu:0/2", "--bytes", str(1 << 20))
        self.assertEqual(done.returncode, 0, done.stderr)
        probe = json.loads(done.stdout)
        for name in ("host", "p2p"):
            self.assertTrue(probe[name]["correct"], probe)
            self.assertGreater(probe[name]["us"], 0)
        # One device: twice the work takes twice as long. On a busy machine anything may come out.
        self.assertGreater(probe["kernels_together"], 0)


class Failures(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.cli = netcl_cli.Cli()
        cls.undisturbed = cls.cli.train(DIGITS, *P2P, "--reproducible", "--epochs", "3")

    def failing(self, faults, *arguments):
        done = self.cli.run("train", DIGITS, *P2P, "--quiet", *arguments, env={"NETCL_FAULTS": faults})
        return done.returncode, done.stderr

    def start(self, *arguments):
        return watched_run.WatchedRun(*P2P, "--epochs", "1000000", "--quiet", *arguments, ranks=1, cli=self.cli)

    def test_a_killed_process_is_named(self):
        with self.start() as run:
            run.wait_for_epochs(2)
            workers = run.workers()
            watched_run.send(workers[0])
            code, result = run.finish()
            self.assertEqual(code, 6)
            self.assertEqual(result["stopped"], "failed")
            for words in (PROCESS, "pid %d" % workers[0], "SIGKILL", "--resume"):
                self.assertIn(words, result["error"])
            run.check_nothing_left(workers)

    def test_interrupted_and_resumed(self):
        with self.start() as run:
            run.wait_for_epochs(2)
            workers = run.workers()
            watched_run.send(run.process.pid, signal.SIGINT)
            code, result = run.finish()
            self.assertEqual((code, result["stopped"]), (130, "interrupted"))
            self.assertGreater(result["steps"], 0)
            run.check_nothing_left(workers)
            steps = result["steps"] + 12
            # With a process each: the checkpoint is the same.
            for transport in ("p2p", "host"):
                more = self.cli.train(DIGITS, *SHARES, "--transport", transport, "--epochs", "1000000",
                                      "--max-steps", str(steps), "--resume", run.out)
                self.assertEqual((more["stopped"], more["steps"]), ("max_steps", steps))
                steps += 12

    def test_a_failing_device_is_named(self):
        code, text = self.failing("rank=1 at=computed step=5 do=device")
        self.assertEqual(code, 3)
        self.assertIn(PROCESS + "rank 1 (cpu:0#1): ", text)
        self.assertIn("CL_INVALID_CONTEXT", text)

    def test_ranks_that_differ_are_named(self):
        code, text = self.failing("rank=1 at=updated step=5 do=flip")
        self.assertEqual(code, 6)
        self.assertIn("parameters of rank 1 are not those of rank 0", text)

    def test_a_rank_that_hangs_is_named(self):
        code, text = self.failing("rank=1 step=30 slow=1000000", "--shard", "even", "--stall-timeout", "2")
        self.assertEqual(code, 6)
        for words in (PROCESS, "no progress", "of rank 1"):
            self.assertIn(words, text)

    def test_restart(self):
        """The whole process begins anew, from its snapshot: not a bit changes."""
        for action in ("kill", "device"):
            self.cli.env["NETCL_FAULTS"] = "rank=1 at=computed step=20 do=" + action
            try:
                run = self.cli.train(DIGITS, *P2P, "--reproducible", "--epochs", "3", "--on-failure", "restart")
            finally:
                del self.cli.env["NETCL_FAULTS"]
            self.assertEqual([f["action"] for f in run["failures"]], ["restarted"])
            self.assertEqual(file_bytes(run), file_bytes(self.undisturbed))

    def test_refused(self):
        for code, words, arguments in (
                (2, ["--on-failure continue", "restart", "another transport"], P2P + ("--on-failure", "continue")),
                (4, ["9 ranks", "at most 8"], ("--devices", "cpu:0/9", "--transport", "p2p", "--shard", "even")),
                (4, ["p2p", "disabled"], P2P + ("--disable-plugins", "p2p"))):
            done = self.cli.run("train", DIGITS, *arguments, "--json")
            self.assertEqual(done.returncode, code, done.stderr)
            for word in words:
                self.assertIn(word, json.loads(done.stdout)["error"])

    @unittest.skipUnless(os.path.exists(OCLGRIND), OCLGRIND + " is not installed")
    def test_two_platforms_are_refused(self):
        folder = os.path.join(self.cli.folder, "vendors")
        os.makedirs(folder)
        for name, library in (("pocl", "libpocl.so.2"), ("oclgrind", OCLGRIND)):
            with open(os.path.join(folder, name + ".icd"), "w") as stream:
                stream.write(library + "\n")
        done = self.cli.run("train", DIGITS, "--devices", "pocl:0,oclgrind:0", "--transport", "p2p", "--json",
                            env={"OCL_ICD_VENDORS": folder})
        self.assertEqual(done.returncode, 4, done.stderr)
        for words in ("ranks 0 (cpu:0) and 1 (oclgrind:0)", "two OpenCL platforms", "another transport"):
            self.assertIn(words, json.loads(done.stdout)["error"])


if __name__ == "__main__":
    unittest.main()
