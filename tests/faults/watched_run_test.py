"""The checks that nothing is left behind find what is left behind."""

import os
import subprocess
import sys
import tempfile
import unittest

from tests.apps import netcl_cli
from tests.faults import watched_run

SLEEPER = [sys.executable, "-c", "import sys; print('ready', flush=True); sys.stdin.read()"]


class WatchedRunTest(unittest.TestCase):
    def setUp(self):
        self.cli = netcl_cli.Cli()
        os.makedirs(self.cli.env["NETCL_CACHE_DIR"], exist_ok=True)
        self.run = watched_run.WatchedRun("--devices", "cpu:0", "--max-steps", "1", "--quiet", cli=self.cli, ranks=1)
        with self.run:
            self.assertEqual(self.run.finish(120)[0], 0)
        self.run.check_nothing_left([])

    def expect_left(self, name, workers=()):
        with self.assertRaisesRegex(AssertionError, name):
            self.run.check_nothing_left(workers)

    def test_files(self):
        for folder, name in ((os.path.join(self.run.out, "checkpoints"), "last.safetensors.tmp1"),
                             (self.cli.env["NETCL_CACHE_DIR"], "program.tmp2"),
                             (self.run.temporary, "anything"), ("/dev/shm", "netcl-watched-run-%d" % os.getpid())):
            path = os.path.join(folder, name)
            with open(path, "w"):
                self.expect_left(name)
            os.remove(path)
            self.run.check_nothing_left([])

    def test_processes(self):
        with subprocess.Popen(SLEEPER, env=dict(os.environ, TMPDIR=self.run.temporary), stdin=subprocess.PIPE,
                              stdout=subprocess.PIPE) as child:
            child.stdout.readline()
            self.expect_left("worker %d still runs" % child.pid, [child.pid])
            self.assertEqual(watched_run.processes_with(self.run.temporary), [child.pid])
            child.stdin.close()
        self.assertEqual(watched_run.processes_with(self.run.temporary), [])
        self.run.check_nothing_left([child.pid])

    def test_a_run_ends_what_it_leaves(self):
        """A supervisor that leaves something behind: an orphan that holds its pipes."""
        script = 'sleep 1000 & echo "{}"'
        with self.assertRaisesRegex(AssertionError, "left running"):
            with watched_run.WatchedRun(cli=self.cli, wrapper=("sh", "-c", script)) as run:
                run.process.wait(30)
        watched_run.wait_until(lambda: not watched_run.processes_with(run.temporary), 10, "the orphan ends")

    def test_descriptors_and_mappings(self):
        before = watched_run.held(os.getpid())
        with tempfile.TemporaryFile() as stream:
            self.assertEqual(len(watched_run.held(os.getpid())), len(before) + 1)
            self.assertIn("memfd:netcl-test", " ".join(self.with_a_memfd()))
            stream.close()
        self.assertEqual(watched_run.held(os.getpid()), before)

    def with_a_memfd(self):
        import mmap

        fd = os.memfd_create("netcl-test")
        os.ftruncate(fd, 4096)
        with mmap.mmap(fd, 4096):
            os.close(fd)  # the mapping alone holds it
            return watched_run.held(os.getpid())


if __name__ == "__main__":
    unittest.main()
