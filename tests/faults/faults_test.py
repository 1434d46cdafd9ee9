"""What can happen to a run beside a killed worker: stops, interrupts, a killed supervisor, a disk that
is full or gone, drivers that do not belong to a worker, more workers than cores or samples."""

import json
import os
import signal
import subprocess
import tempfile
import time
import unittest

from tests.apps import netcl_cli
from tests.faults import watched_run

# With even shares no worker leaves the group, so each is missed.
FOREVER = ("--epochs", "1000000", "--quiet", "--shard", "even")
INTERRUPT_SECONDS = 2.5  # 2 s and the start of Python's threads


class Faults(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.cli = netcl_cli.Cli()
        cls.cli.train(watched_run.CONFIG, "--devices", "cpu:0/2", "--max-steps", "2")  # fills the caches

    def start(self, *arguments, ranks=2, **options):
        return watched_run.WatchedRun("--devices", "cpu:0/%d" % ranks, *FOREVER, *arguments, cli=self.cli,
                                      ranks=ranks, **options)

    def test_stopped_worker_is_named(self):
        for epochs in (0, 1):  # during set-up, during training
            with self.start("--stall-timeout", "2") as run:
                workers = run.workers()
                if epochs:
                    run.wait_for_epochs(epochs)
                stopped = watched_run.send(workers[1], signal.SIGSTOP)
                code, result = run.finish()
                when, text = run.error_line()
                self.assertEqual((code, result["stopped"]), (6, "failed"))
                for words in ("rank 1 (cpu:0#1)", "no progress for", "SIGSTOP"):
                    self.assertIn(words, text)
                self.assertLess(when - stopped, 3.5, text)
                run.check_nothing_left(workers)

    def test_stopped_single_worker(self):
        with self.start("--stall-timeout", "2", ranks=1) as run:
            run.wait_for_epochs(1)
            workers = run.workers()
            watched_run.send(workers[0], signal.SIGSTOP)
            code, _ = run.finish()
            self.assertEqual(code, 6)
            self.assertIn("rank 0", run.error_line()[1])
            run.check_nothing_left(workers)

    def test_interrupt_saves_the_step(self):
        for number in (signal.SIGINT, signal.SIGTERM):
            with self.start() as run:
                workers = run.workers()
                run.wait_for_epochs(1)
                sent = watched_run.send(run.process.pid, number)
                code, result = run.finish()
                self.assertLess(time.monotonic() - sent, INTERRUPT_SECONDS)
                self.assertEqual((code, result["stopped"]), (130, "interrupted"))
                with open(os.path.join(run.out, "checkpoints", "last.json")) as stream:
                    self.assertEqual(json.load(stream)["step"], result["steps"])
                run.check_nothing_left(workers)
                again = self.cli.train(watched_run.CONFIG, "--resume", run.out, "--devices", "cpu:0/2",
                                       "--epochs", "1000000", "--max-steps", str(result["steps"] + 5))
                self.assertEqual(again["steps"], result["steps"] + 5)
                self.assertEqual(os.path.realpath(again["run_dir"]), os.path.realpath(run.out))

    def test_interrupt_during_set_up(self):
        with self.start() as run:
            workers = run.workers()
            sent = watched_run.send(run.process.pid, signal.SIGINT)
            code, result = run.finish()
            self.assertLess(time.monotonic() - sent, INTERRUPT_SECONDS)
            self.assertEqual((code, result["stopped"]), (130, "interrupted"))
            run.check_nothing_left(workers)

    def test_second_interrupt_ends_at_once(self):
        with self.start() as run:
            workers = run.workers()
            run.wait_for_epochs(1)
            watched_run.send(workers[0], signal.SIGSTOP)  # so that the first cannot succeed
            watched_run.send(run.process.pid, signal.SIGINT)
            time.sleep(0.3)
            self.assertIsNone(run.process.poll())
            sent = watched_run.send(run.process.pid, signal.SIGINT)
            code, result = run.finish()
            self.assertLess(time.monotonic() - sent, 0.7)
            self.assertEqual((code, result["stopped"]), (130, "interrupted"))
            self.assertIn("twice", result["error"])
            self.assertTrue(os.path.exists(os.path.join(run.out, "checkpoints", "last.safetensors")))
            run.check_nothing_left(workers)

    def test_killed_supervisor(self):
        for epochs in (0, 1):
            with self.start() as run:
                workers = run.workers()
                if epochs:
                    run.wait_for_epochs(epochs)
                watched_run.send(run.process.pid)
                watched_run.wait_until(lambda: not any(watched_run.alive(w) for w in workers), 1,
                                       "the workers end with their supervisor")
                self.assertEqual(set(os.listdir("/dev/shm")) - run.shared_memory, set())

    def test_checkpoints_cannot_be_written(self):
        with self.start() as run:
            workers = run.workers()
            run.wait_for_epochs(1)
            os.rename(os.path.join(run.out, "checkpoints"), os.path.join(run.out, "moved"))
            with open(os.path.join(run.out, "checkpoints"), "w"):
                pass
            code, result = run.finish()
            self.assertEqual((code, result["stopped"]), (7, "failed"))
            for words in ("rank 0", "checkpoints", "Not a directory"):
                self.assertIn(words, result["error"])
            run.check_nothing_left(workers)

    def train_on_small_disk(self, size):
        """(exit code, document, names of files left) of a run whose directory is a small file system."""
        disk = tempfile.mkdtemp(dir=self.cli.folder)
        script = ("mount -t tmpfs -o size=%s none %s || exit 99; \"$0\" \"$@\"; code=$?; ls %s/run/checkpoints >&2;"
                  "exit $code" % (size, disk, disk))
        done = subprocess.run(
            ["unshare", "-rm", "sh", "-c", script, self.cli.binary, "train", watched_run.CONFIG, "--json", "--out",
             disk + "/run", "--devices", "cpu:0/2", *FOREVER],
            env=self.cli.env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, universal_newlines=True, timeout=200)
        if not done.stdout:
            self.skipTest("no file system can be mounted here: " + done.stderr)
        return done.returncode, json.loads(done.stdout), done.stderr

    def test_full_disk(self):
        # Room for the first checkpoint only; room for both, which the metrics then fill.
        for size in ("100k", "260k"):
            code, result, names = self.train_on_small_disk(size)
            self.assertEqual((code, result["stopped"]), (7, "failed"), result)
            for words in ("No space left on device", "free some space"):
                self.assertIn(words, result["error"])
            self.assertIn("last.safetensors", names)
            self.assertNotIn(".tmp", names)

    def small_config(self, rows, batch):
        path = os.path.join(tempfile.mkdtemp(dir=self.cli.folder), "small.json")
        with open(os.path.join(os.path.dirname(path), "small.csv"), "w") as stream:
            for i in range(rows):
                stream.write("%g,%g,%g,%g,%d\n" % (i % 3, i % 2, 1, 0.5 * (i % 5), i % 2))
        with open(path, "w") as stream:
            json.dump({"model": {"input": [4], "layers": [{"type": "linear", "out": 2}]},
                       "data": {"format": "csv", "train": "small.csv", "label": -1},
                       "batch_size": batch, "epochs": 2, "optimizer": {"type": "sgd", "lr": 0.05}}, stream)
        return path

    def test_more_workers_than_cores_or_samples(self):
        for rows, batch in ((13, 4), (13, 3), (1, 4), (2, 1)):  # a last batch of one, empty shards
            config = self.small_config(rows, batch)
            one = self.cli.train(config, "--devices", "cpu:0")
            five = self.cli.train(config, "--devices", "cpu:0/5")
            self.assertEqual(sum(w["samples"] for w in five["workers"]), 2 * rows)
            self.assertAlmostEqual(one["train_loss"], five["train_loss"], delta=1e-5)
            self.assertAlmostEqual(one["metrics"]["loss"], five["metrics"]["loss"], delta=1e-5)

    def test_a_worker_opens_its_own_driver_only(self):
        libraries = {"pocl": "/usr/lib/x86_64-linux-gnu/libpocl.so.2.10.0",
                     "oclgrind": "/usr/lib/oclgrind/liboclgrind-rt-icd.so"}
        vendors = tempfile.mkdtemp(dir=self.cli.folder)
        for name, library in libraries.items():
            if not os.path.exists(library):
                self.skipTest(library + " is not installed")
            with open(os.path.join(vendors, name + ".icd"), "w") as stream:
                stream.write(library + "\n")
        with watched_run.WatchedRun("--devices", "pocl:0,oclgrind:0", *FOREVER,
                                    config=self.small_config(8, 8), cli=self.cli,
                                    env={"OCL_ICD_VENDORS": vendors}) as run:
            workers, maps = run.workers(), []
            for pid, own in zip(workers, ("libpocl", "liboclgrind")):
                watched_run.wait_until(lambda: own in self.maps(pid), 30, "the worker opens " + own)
                maps.append(self.maps(pid))
            supervisor = self.maps(run.process.pid)
            watched_run.send(run.process.pid, signal.SIGINT)
            run.finish()
        for own, other, text in (("libpocl", "liboclgrind", maps[0]), ("liboclgrind", "libpocl", maps[1])):
            self.assertIn(own, text)
            self.assertNotIn(other, text)
        self.assertNotIn("libOpenCL", supervisor)

    def maps(self, pid):
        with open("/proc/%d/maps" % pid) as stream:
            return stream.read()


if __name__ == "__main__":
    unittest.main()
