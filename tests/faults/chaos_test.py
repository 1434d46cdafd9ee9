"""Everything that can go wrong at every named point of a run, under each policy of --on-failure.

The points and actions are those of apps/netcl_app/fault_plan.h. Without options a selection runs that
has every point, every action and every policy; --count N --seed S runs N cases drawn from all
combinations. Each case checks the exit code, who is named, what the run ended with, and that nothing
is left. A table is printed.
"""

import argparse
import collections
import itertools
import json
import os
import random
import signal
import statistics
import sys
import time
import unittest

from tests.apps import netcl_cli
from tests.faults import watched_run

OPTIONS = argparse.Namespace(count=0, seed=1)
EPOCHS, RANKS, STALL_SECONDS = 3, 2, 1.0
LIMIT_SECONDS = 90  # of a case, on a busy machine
POINTS = ("start", "setup", "group", "prepared", "begin", "computed", "reducing", "updated", "evaluate",
          "checkpoint", "snapshot", "end", "parked")
ACTIONS = ("kill", "stop", "exit", "device")
POLICIES = ("stop", "continue", "restart")
WITH_STEP = ("begin", "computed", "reducing", "updated")
ONLY_RANK_0 = ("checkpoint",)
SELECTION = (
    ("start", "kill", "restart"), ("start", "exit", "stop"), ("setup", "device", "continue"),
    ("group", "exit", "restart"), ("prepared", "kill", "continue"), ("begin", "device", "restart"),
    ("computed", "kill", "restart"), ("computed", "stop", "continue"), ("reducing", "kill", "stop"),
    ("reducing", "device", "restart"), ("updated", "exit", "continue"), ("updated", "stop", "restart"),
    ("evaluate", "kill", "restart"), ("evaluate", "device", "stop"), ("checkpoint", "kill", "continue"),
    ("snapshot", "kill", "restart"), ("end", "kill", "restart"), ("end", "exit", "continue"),
    ("parked", "kill", "restart"), ("checkpoint", "nospace", "restart"), ("updated", "flip", "restart"))
SGD = ("--set", 'optimizer={"type": "sgd", "lr": 0.05, "momentum": 0.9}', "--shard", "even")
SHORT = (*SGD, "--epochs", str(EPOCHS))


def possible(point, action, policy):
    if policy == "stop" and point in ("snapshot", "parked"):
        return False
    if policy == "continue" and point == "parked":  # both would be gone; test_nobody_left
        return False
    # A process that waits makes no progress by right: SIGSTOP is seen when it should go on.
    return not (point == "parked" and action != "kill")


class Chaos(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.cli = netcl_cli.Cli()
        for devices in ("cpu:0/2", "cpu:0"):  # fills the caches
            cls.cli.train(watched_run.CONFIG, "--devices", devices, "--max-steps", "2", *SHORT)
        cls.reference = cls.cli.train(watched_run.CONFIG, "--devices", "cpu:0/2", *SHORT)
        cls.losses = netcl_cli.step_losses(cls.reference["run_dir"])

    def faults(self, point, action, rank, step):
        rule = "rank=%d at=%s do=%s" % (rank, point, action)
        if point in WITH_STEP:
            rule += " step=%d" % step
        if point == "parked":
            return "rank=%d at=updated step=%d do=kill; %s" % (1 - rank, step, rule)
        return rule

    def run_case(self, point, action, policy, rank, step):
        """(document, what it was about) after all checks."""
        start = time.monotonic()
        with watched_run.WatchedRun(
                "--devices", "cpu:0/%d" % RANKS, "--quiet", "--stall-timeout", str(STALL_SECONDS), "--on-failure",
                policy, *SHORT, cli=self.cli, env={"NETCL_FAULTS": self.faults(point, action, rank, step)}) as run:
            code, result = run.finish(LIMIT_SECONDS)
            what = "%s %s %s rank %d step %d: %s" % (policy, point, action, rank, step, result)
            self.check_result(code, result, point, action, policy, rank, what)
            if code == 0:
                self.check_metrics(run.out, policy, what)
            self.assertEqual(watched_run.processes_with(run.temporary), [], what)
            run.check_nothing_left([])
            run.remove()
        return result, time.monotonic() - start

    def check_result(self, code, result, point, action, policy, rank, what):
        named = "rank %d (cpu:0#%d)" % (rank, rank)
        if action == "nospace":
            self.assertEqual(code, 7, what)
            self.assertIn("No space left on device", result["error"])
        elif action == "flip":
            self.assertEqual(code, 6, what)
            self.assertIn("first tensor that differs is layers.", result["error"])
        elif policy == "stop":
            self.assertEqual(code, 3 if action == "device" else 6, what)
            self.assertIn(named, result["error"])
            self.assertEqual([f["rank"] for f in result["failures"]], [rank], what)
        else:
            self.assertEqual((code, result["stopped"]), (0, "finished"), what)
            failed = {f["rank"] for f in result["failures"]}
            self.assertIn(rank, failed, what)
            for failure in result["failures"]:
                self.assertEqual(failure["action"], "restarted" if policy == "restart" else "continued", what)
                self.assertGreater(failure["recovery_ms"], 0, what)

    def check_metrics(self, run_dir, policy, what):
        lines = netcl_cli.metrics_lines(run_dir)
        self.assertEqual([l["step"] for l in lines if "step" in l], list(range(1, len(self.losses) + 1)), what)
        self.assertEqual([l["epoch"] for l in lines if "train" in l], list(range(1, EPOCHS + 1)), what)
        for a, b in zip(netcl_cli.step_losses(run_dir), self.losses):
            self.assertLessEqual(abs(a - b), 1e-5 * abs(b), what)
        last = [l for l in lines if "train" in l][-1]
        for part, wanted in (("train", self.reference["train_loss"]), ("test", self.reference["metrics"]["loss"])):
            self.assertLessEqual(abs(last[part]["loss"] - wanted), 1e-5 * wanted, what)

    def test_cases(self):
        draw = random.Random(OPTIONS.seed)
        cases = list(SELECTION)
        if OPTIONS.count:
            every = [c for c in itertools.product(POINTS, ACTIONS, POLICIES) if possible(*c)]
            cases = [draw.choice(every) for _ in range(OPTIONS.count)]
        recoveries = []
        for i, (point, action, policy) in enumerate(cases):
            rank = 0 if point in ONLY_RANK_0 else draw.randrange(RANKS)
            step = draw.randrange(2, len(self.losses))
            result, seconds = self.run_case(point, action, policy, rank, step)
            times = [f["recovery_ms"] for f in result["failures"] if f["recovery_ms"] is not None]
            if action != "stop":
                recoveries += times
            print("%3d  %-8s %-10s %-7s rank %d step %2d: %5.1f s%s" % (
                i + 1, policy, point, action, rank, step, seconds,
                ", recovered in %s ms" % ", ".join("%.0f" % t for t in times) if times else ""), flush=True)
        print("%d cases; median recovery %.0f ms" % (len(cases), statistics.median(recoveries)), flush=True)

    def held_in_a_recovery(self, step=5):
        """A run of which rank 1 is dead and rank 0 held where it waits for the next generation."""
        faults = "rank=1 at=updated step=%d do=kill; rank=0 at=parked do=stop" % step
        run = watched_run.WatchedRun("--devices", "cpu:0/2", *SGD, "--epochs", "1000000", "--on-failure", "restart",
                                     "--stall-timeout", "60", cli=self.cli, env={"NETCL_FAULTS": faults})
        watched_run.wait_until(lambda: any("it is started anew" in text for _, text in run.lines), LIMIT_SECONDS,
                               "a recovery begins")
        return run

    def test_interrupt_in_a_recovery(self):
        with self.held_in_a_recovery() as run:
            sent = watched_run.send(run.process.pid, signal.SIGINT)
            code, result = run.finish()
            self.assertLess(time.monotonic() - sent, 2.5)
            self.assertEqual((code, result["stopped"]), (130, "interrupted"), result)
            self.assertEqual(watched_run.processes_with(run.temporary), [])

    def test_interrupt_after_going_back(self):
        """What was saved after the state that a recovery went back to stays, and the run goes on from there."""
        with self.held_in_a_recovery(step=30) as run:
            run.process.send_signal(signal.SIGINT)
            watched_run.send(run.living_workers()[0], signal.SIGCONT)
            code, result = run.finish(LIMIT_SECONDS)
            self.assertEqual((code, result["stopped"]), (130, "interrupted"), result)
            with open(os.path.join(run.out, "checkpoints", "last.json")) as stream:
                saved = json.load(stream)["step"]
        self.assertGreaterEqual(saved, 24)  # two epochs
        self.assertEqual(saved, result["steps"])
        self.cli.train(watched_run.CONFIG, "--devices", "cpu:0/2", *SHORT, "--resume", run.out)
        self.assertEqual([l["step"] for l in netcl_cli.metrics_lines(run.out) if "step" in l],
                         list(range(1, len(self.losses) + 1)))

    def test_half_written_files(self):
        """What a worker that was killed had begun to write goes with the run."""
        with watched_run.WatchedRun("--devices", "cpu:0/2", *SGD, "--epochs", "1000000", "--on-failure", "restart",
                                    cli=self.cli) as run:
            victim = run.workers()[1]
            run.wait_for_epochs(1)
            files = [os.path.join(folder, "half-written.tmp%d" % victim)
                     for folder in (os.path.join(run.out, "checkpoints"), self.cli.env["NETCL_CACHE_DIR"])]
            for file in files:
                with open(file, "w"):
                    pass
            watched_run.send(victim)
            watched_run.wait_until(lambda: run.recoveries() == 1, LIMIT_SECONDS, "a recovery")
            run.process.send_signal(signal.SIGINT)
            self.assertEqual(run.finish()[0], 130)
            run.check_nothing_left([victim])

    def test_supervisor_killed_in_a_recovery(self):
        with self.held_in_a_recovery() as run:
            watched_run.send(run.process.pid)
            watched_run.wait_until(lambda: not watched_run.processes_with(run.temporary), 1,
                                   "the workers end with their supervisor")

    def test_no_end_of_failures(self):
        done = self.cli.run("train", watched_run.CONFIG, "--json", "--quiet", "--devices", "cpu:0/2", *SHORT,
                            "--on-failure", "restart", env={"NETCL_FAULTS": "rank=1 at=begin step=3 do=kill every"})
        self.assertEqual(done.returncode, 6)
        self.assertIn("3 times on end without progress", done.stderr)

    def test_nobody_left(self):
        done = self.cli.run("train", watched_run.CONFIG, "--json", "--quiet", "--devices", "cpu:0/2", *SHORT,
                            "--on-failure", "continue", env={"NETCL_FAULTS": "at=begin step=3 do=kill every"})
        self.assertEqual(done.returncode, 6)
        self.assertIn("no worker is left", done.stderr)

    def test_recoveries_hold_nothing(self):
        """Neither the supervisor nor a worker that goes on holds more after two recoveries than after one."""
        for policy, ranks, kills in (("restart", 2, 2), ("continue", 3, 2)):  # a third one might end the run
            with watched_run.WatchedRun("--devices", "cpu:0/%d" % ranks, *SGD, "--epochs", "1000000", "--on-failure",
                                        policy, cli=self.cli, ranks=ranks) as run:
                survivor, first = run.workers()[0], None
                for done in range(kills):
                    steps = len(run.metrics())
                    watched_run.wait_until(lambda n=steps: len(run.metrics()) > n, LIMIT_SECONDS, "a step")
                    watched_run.send(run.living_workers()[-1])  # the one that was started last
                    watched_run.wait_until(lambda n=done: run.recoveries() > n, LIMIT_SECONDS, "a recovery")
                    first = first or [collections.Counter(watched_run.held(p)) for p in (run.process.pid, survivor)]
                for pid, before in zip((run.process.pid, survivor), first):
                    def more(pid=pid, before=before):  # a file that is being written comes and goes
                        return collections.Counter(watched_run.held(pid)) - before
                    try:
                        watched_run.wait_until(lambda check=more: not check(), 10, "as few descriptors as before")
                    except AssertionError:
                        self.fail("after %d recoveries (%s) there are also %s" % (kills, policy, dict(more())))
                run.process.send_signal(signal.SIGINT)
                self.assertEqual(run.finish()[0], 130)
                self.assertEqual(watched_run.processes_with(run.temporary), [])

    def test_a_later_snapshot(self):
        # Steps of 30 ms: the snapshot after a second is left half-written, so the first one serves;
        # the second failure finds a later one.
        faults = "slow=500; rank=0 at=snapshot after=0 do=kill; rank=1 at=updated step=80 do=kill"
        arguments = ("--devices", "cpu:0/2", *SGD, "--epochs", "7")
        wanted = self.cli.train(watched_run.CONFIG, *arguments)
        done = self.cli.run("train", watched_run.CONFIG, "--json", *arguments, "--on-failure", "restart",
                            env={"NETCL_FAULTS": faults})
        self.assertEqual(done.returncode, 0, done.stderr)
        resumed = [line for line in done.stderr.splitlines() if line.startswith("training goes on after step ")]
        self.assertEqual(len(resumed), 2, done.stderr)
        self.assertIn("after step 0 ", resumed[0])
        self.assertNotIn("after step 0 ", resumed[1])
        result = json.loads(done.stdout)
        self.assertEqual(result["train_loss"], wanted["train_loss"])
        self.assertEqual(netcl_cli.step_losses(result["run_dir"]), netcl_cli.step_losses(wanted["run_dir"]))


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--count", type=int, default=OPTIONS.count)
    parser.add_argument("--seed", type=int, default=OPTIONS.seed)
    OPTIONS, rest = parser.parse_known_args()
    unittest.main(argv=[sys.argv[0], *rest])
