"""Kills a random worker every five seconds under --on-failure restart, and interrupts the run at its end.

Every step's loss and the last checkpoint must be those of an undisturbed run of as many steps, and
neither the run nor a process of it may hold more at its end than it did at its beginning.
soak.py MINUTES [SEED]. Called by soak.sh.
"""

import collections
import os
import random
import signal
import sys
import time

from tests.apps import netcl_cli
from tests.faults import watched_run

EVERY_SECONDS = 5
LIMIT_SECONDS = 120  # for a recovery on a busy machine
PER_SAMPLE = "slow=300"  # microseconds, so that a small model takes its time: about 20 ms a step
OPTIONS = ("--devices", "cpu:0/2", "--shard", "even", "--epochs", "1000000", "--set",
           'optimizer={"type": "sgd", "lr": 0.01, "momentum": 0.9}', "--set", 'schedule={"type": "constant"}')


def kill_for(run, minutes, draw):
    """Returns (number of kills, what the supervisor held after the first recovery and not any more)."""
    end, kills, first = time.monotonic() + minutes * 60, 0, None
    while time.monotonic() < end and run.process.poll() is None:
        time.sleep(EVERY_SECONDS)
        workers = run.living_workers()
        if workers:
            watched_run.send(draw.choice(workers), signal.SIGKILL)
            kills += 1
            watched_run.wait_until(lambda n=kills: run.recoveries() >= n or run.process.poll() is not None,
                                   LIMIT_SECONDS, "a recovery")
        if first is None and run.process.poll() is None:
            first = collections.Counter(watched_run.held(run.process.pid))
    if run.process.poll() is not None:
        return kills, None
    return kills, dict(collections.Counter(watched_run.held(run.process.pid)) - (first or collections.Counter()))


def worst_difference(one, other):
    """The largest relative one."""
    return max((abs(a - b) / max(abs(b), 1e-12) for a, b in zip(one, other)), default=0)


def tensors(run_dir):
    return netcl_cli.read_safetensors(os.path.join(run_dir, "checkpoints", "last.safetensors"))


def main():
    minutes = float(sys.argv[1])
    draw = random.Random(int(sys.argv[2]) if len(sys.argv) > 2 else 1)
    cli = netcl_cli.Cli()
    cli.train(watched_run.CONFIG, *OPTIONS, "--max-steps", "2")  # fills the caches
    begin = time.monotonic()
    with watched_run.WatchedRun(*OPTIONS, "--on-failure", "restart", cli=cli,
                                env={"NETCL_FAULTS": PER_SAMPLE}) as run:
        run.wait_for_epochs(1)
        kills, more = kill_for(run, minutes, draw)
        run.process.send_signal(signal.SIGINT)
        code, result = run.finish()
        left = watched_run.processes_with(run.temporary)
        run.check_nothing_left([])
    print("%.0f s, %d steps; exit code %d, %s" % (time.monotonic() - begin, result["steps"], code, result["stopped"]))
    times = sorted(f["recovery_ms"] for f in result["failures"] if f["recovery_ms"] is not None)
    print("%d kills, %d failures, recovery median %.0f ms, longest %.0f ms; processes left: %s; descriptors more than "
          "after the first: %s" % (kills, len(result["failures"]), times[len(times) // 2], times[-1], left, more))
    wanted = cli.train(watched_run.CONFIG, *OPTIONS, "--max-steps", str(result["steps"]), timeout=7200)
    losses = [netcl_cli.step_losses(d) for d in (run.out, wanted["run_dir"])]
    values = [[v for _, tensor in sorted(tensors(d).items()) for v in tensor] for d in (run.out, wanted["run_dir"])]
    same = [len(each) == result["steps"] for each in losses] + [len(values[0]) == len(values[1])]
    by_step, last = worst_difference(*losses), max(abs(a - b) for a, b in zip(*values))
    print("undisturbed: %d steps; losses differ by %.1e, values of the checkpoint by %.1e" % (
        wanted["steps"], by_step, last))
    good = (code == 130 and not left and more == {} and kills == len(result["failures"]) and all(same) and
            by_step <= 1e-5 and last <= 1e-5)
    print("passed" if good else "FAILED")
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
