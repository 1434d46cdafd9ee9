"""Parts of a CPU device of given sizes (`cpu:0/4+12`): each worker has its cores and no more threads."""

import json
import os
import signal
import unittest

from tests.apps import netcl_cli
from tests.faults import watched_run


def thread_cores(pid):
    """The cores that each thread of a process may use."""
    out = []
    for thread in os.listdir("/proc/%d/task" % pid):
        out.append(os.sched_getaffinity(int(thread)))
    return out


def limit(pid):
    """What the driver is told of the number of its threads."""
    with open("/proc/%d/environ" % pid) as stream:
        variables = dict(v.split("=", 1) for v in stream.read().split("\0") if "=" in v)
    return [variables[name] for name in ("POCL_MAX_PTHREAD_COUNT", "POCL_CPU_MAX_CU_COUNT")]


class CoreGroups(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.cli = netcl_cli.Cli()
        devices = json.loads(cls.cli.run("devices", "--json").stdout)["devices"]
        units = next(d["compute_units"] for d in devices if d["selector"] == "cpu:0")
        cls.cores = sorted(os.sched_getaffinity(0))
        if min(units, len(cls.cores)) < 2:
            raise unittest.SkipTest("one core")
        cls.sizes = (1, min(units, len(cls.cores)) - 1)
        cls.selector = "cpu:0/%d+%d" % cls.sizes

    def test_cores_and_threads(self):
        with watched_run.WatchedRun("--devices", self.selector, "--epochs", "1000000", "--quiet", "--shard", "even",
                                    cli=self.cli) as run:
            workers = run.workers()
            run.wait_for_epochs(1)
            first, counts = 0, []
            for pid, size in zip(workers, self.sizes):
                threads = thread_cores(pid)
                for allowed in threads:
                    self.assertEqual(allowed, set(self.cores[first:first + size]), self.selector)
                self.assertEqual(limit(pid), [str(size)] * 2)
                counts.append(len(threads))
                first += size
            run.process.send_signal(signal.SIGINT)
            code, result = run.finish()
            self.assertEqual(code, 130)
            self.assertEqual([w["device"] for w in result["workers"]], ["cpu:0#0", "cpu:0#1"])
        # Both have the same threads of netcl's (rank 0 writes), and one of the driver's for each core.
        self.assertLessEqual(abs((counts[1] - counts[0]) - (self.sizes[1] - self.sizes[0])), 1, counts)

    def test_fewer_cores_than_compute_units(self):
        """The driver offers what the machine has; the process may have been given less."""
        run = watched_run.WatchedRun("--devices", self.selector, cli=self.cli,
                                     wrapper=("taskset", "-c", str(self.cores[0])))
        with run:
            code, result = run.finish(60)
        self.assertEqual(code, 2, result)
        self.assertIn(self.selector, result["error"])
        # A driver that offers no more than the process may use is refused before a worker starts.
        self.assertRegex(result["error"], r"rank 1 \(cpu:0#1\).* may use 1 core .*taskset|cpu:0 .* has 1$")


if __name__ == "__main__":
    unittest.main()
