"""Workers are killed at random moments, from set-up on: each death is noticed, named, and leaves nothing.

--count N kills N times (default 10) and --seed chooses the moments; a table is printed.
"""

import argparse
import random
import statistics
import sys
import time
import unittest

from tests.apps import netcl_cli
from tests.faults import watched_run

OPTIONS = argparse.Namespace(count=10, seed=1)
LATEST_SECONDS = 2.5  # after the workers were started
MEDIAN_MS = 50


class Kill(unittest.TestCase):
    def kill_once(self, cli, ranks, rank, delay):
        """Returns (milliseconds until the error was printed, phase named in it)."""
        with watched_run.WatchedRun("--devices", "cpu:0/%d" % ranks, "--epochs", "1000000", "--quiet",
                                    "--shard", "even",  # so that none leaves the group, where it is not missed
                                    cli=cli, ranks=ranks) as run:
            workers = run.workers()
            time.sleep(delay)
            killed = watched_run.send(workers[rank])
            code, result = run.finish()
            when, text = run.error_line()
            self.assertEqual(code, 6, text)
            self.assertEqual(result["stopped"], "failed")
            self.assertEqual("error: " + result["error"], text)
            for words in ("rank %d (cpu:0#%d)" % (rank, rank), "pid %d" % workers[rank], "SIGKILL"):
                self.assertIn(words, text)
            run.check_nothing_left(workers)
            run.remove()
            return (when - killed) * 1e3, text.split(" while ")[1].split(":")[0].split(";")[0]

    def test_kills(self):
        cli = netcl_cli.Cli()
        cli.train(watched_run.CONFIG, "--devices", "cpu:0/3", "--max-steps", "2")  # fills the caches
        moments = random.Random(OPTIONS.seed)
        rows = []
        for i in range(OPTIONS.count):
            ranks = moments.choice((2, 3))
            rank = moments.randrange(ranks)
            delay = moments.uniform(0, LATEST_SECONDS)
            ms, phase = self.kill_once(cli, ranks, rank, delay)
            rows.append(ms)
            print("%3d  %d workers, rank %d after %4.0f ms: noticed in %6.1f ms, %s"
                  % (i + 1, ranks, rank, delay * 1e3, ms, phase), flush=True)
        print("%d of %d noticed, named, nothing left; median %.1f ms, longest %.1f ms"
              % (len(rows), OPTIONS.count, statistics.median(rows), max(rows)), flush=True)
        self.assertLessEqual(statistics.median(rows), MEDIAN_MS)


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--count", type=int, default=OPTIONS.count)
    parser.add_argument("--seed", type=int, default=OPTIONS.seed)
    OPTIONS, rest = parser.parse_known_args()
    unittest.main(argv=[sys.argv[0], *rest])
