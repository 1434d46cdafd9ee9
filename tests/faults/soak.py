"""Kills a random worker every five seconds under --on-failure restart; the run must end as an undisturbed one.

soak.py MINUTES [SEED]. Called by soak.sh.
"""

import random
import signal
import sys
import time

from tests.apps import netcl_cli
from tests.faults import watched_run

EVERY_SECONDS = 5
PER_SAMPLE = "slow=300"  # microseconds, so that a small model takes its time: about 20 ms a step
OPTIONS = ("--devices", "cpu:0/2", "--shard", "even", "--quiet",
           "--set", 'optimizer={"type": "sgd", "lr": 0.01, "momentum": 0.9}')


def main():
    minutes = float(sys.argv[1])
    draw = random.Random(int(sys.argv[2]) if len(sys.argv) > 2 else 1)
    cli = netcl_cli.Cli()
    steps_per_second = measure(cli)
    epochs = max(2, round(minutes * 60 * steps_per_second / 12))
    print("%.0f steps/s; %d epochs" % (steps_per_second, epochs), flush=True)
    wanted = cli.train(watched_run.CONFIG, *OPTIONS, "--epochs", str(epochs), timeout=7200)
    kills = 0
    with watched_run.WatchedRun(*OPTIONS, "--epochs", str(epochs), "--on-failure", "restart", cli=cli,
                                env={"NETCL_FAULTS": PER_SAMPLE}) as run:
        run.workers()
        while run.process.poll() is None:
            try:
                run.process.wait(EVERY_SECONDS)
            except Exception:  # pylint: disable=broad-except
                pids = [p for p in watched_run.children(run.process.pid)
                        if watched_run.command_line(p)[1:2] == [b"worker"]]
                if pids:
                    watched_run.send(draw.choice(pids), signal.SIGKILL)
                    kills += 1
        code, result = run.finish()
        left = watched_run.processes_with(run.temporary)
        run.check_nothing_left([])
    times = sorted(f["recovery_ms"] for f in result["failures"] if f["recovery_ms"] is not None)
    print("%d kills, %d failures, recovery median %.0f ms, longest %.0f ms" % (
        kills, len(result["failures"]), times[len(times) // 2], times[-1]))
    print("exit code %d, %s; loss %r, undisturbed %r" % (
        code, result["stopped"], result["train_loss"], wanted["train_loss"]))
    same = abs(result["train_loss"] - wanted["train_loss"]) <= 1e-5 * wanted["train_loss"]
    good = code == 0 and not left and same and result["steps"] == wanted["steps"]
    print("passed" if good else "FAILED")
    return 0 if good else 1


def measure(cli):
    begin = time.monotonic()
    done = cli.run("train", watched_run.CONFIG, "--json", *OPTIONS, "--epochs", "10",
                   env={"NETCL_FAULTS": PER_SAMPLE})
    assert done.returncode == 0, done.stderr
    return 120 / max(time.monotonic() - begin - 1, 0.5)


if __name__ == "__main__":
    sys.exit(main())
