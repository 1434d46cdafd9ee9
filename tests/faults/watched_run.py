"""A training run that tests may hurt: its processes, the lines it prints and when, what it leaves."""

import json
import os
import shutil
import signal
import subprocess
import tempfile
import threading
import time

from tests.apps import netcl_cli

CONFIG = netcl_cli.runfile("apps/examples/digits_mlp.json")


def children(pid):
    """Living children of a process, in the order in which they were started."""
    try:
        with open("/proc/%d/task/%d/children" % (pid, pid)) as stream:
            return [int(p) for p in stream.read().split()]
    except FileNotFoundError:
        return []


def command_line(pid):
    try:
        with open("/proc/%d/cmdline" % pid, "rb") as stream:
            return stream.read().split(b"\0")
    except (FileNotFoundError, ProcessLookupError):
        return []


def alive(pid):
    """Whether the process runs (one that ended and waits to be reaped does not)."""
    try:
        with open("/proc/%d/stat" % pid) as stream:
            return stream.read().rsplit(")", 1)[1].split()[0] not in "ZX"
    except (FileNotFoundError, ProcessLookupError):
        return False


def processes_with(text):
    """Living processes with `text` in their environment: a folder of a run marks all that belongs to it."""
    found = []
    for name in os.listdir("/proc"):
        try:
            with open("/proc/%s/environ" % name, "rb") as stream:
                if text.encode() in stream.read() and alive(int(name)):
                    found.append(int(name))
        except (OSError, ValueError):
            continue
    return [pid for pid in found if pid != os.getpid()]


def held(pid):
    """What a process holds: the targets of its descriptors, and its mappings of shared memory."""
    folder, out = "/proc/%d/fd" % pid, []
    for name in os.listdir(folder):
        try:
            out.append(os.readlink(os.path.join(folder, name)).split(":[")[0])  # without the number of a pipe
        except FileNotFoundError:
            continue
    with open("/proc/%d/maps" % pid) as stream:
        out += [line.split(None, 5)[5].strip() for line in stream if "memfd:" in line]
    return sorted(out)


def wait_until(condition, seconds, what):
    """Returns how long it took."""
    begin = time.monotonic()
    while not condition():
        if time.monotonic() - begin > seconds:
            raise AssertionError("not within %s s: %s" % (seconds, what))
        time.sleep(0.005)
    return time.monotonic() - begin


def temporary_files(folder):
    return [os.path.join(place, name) for place, _, names in os.walk(folder) for name in names
            if ".tmp" in name]


class WatchedRun:
    """netcl-app train in the background. Use as a context: at its end nothing of it runs."""

    def __init__(self, *arguments, config=CONFIG, ranks=2, cli=None, env=None, wrapper=()):
        self.cli = cli or netcl_cli.Cli()
        self.ranks = ranks
        self.out = os.path.join(tempfile.mkdtemp(dir=self.cli.folder), "run")
        self.shared_memory = set(os.listdir("/dev/shm"))
        self.temporary = os.path.join(self.cli.folder, "tmp")
        os.makedirs(self.temporary, exist_ok=True)
        self.lines = []  # (monotonic seconds of arrival, text)
        self.process = subprocess.Popen(
            [*wrapper, self.cli.binary, "train", config, "--json", "--out", self.out, *arguments],
            env=dict(self.cli.env, TMPDIR=self.temporary, **(env or {})), cwd=self.cli.folder,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, universal_newlines=True)
        self.text = ""
        self.readers = [threading.Thread(target=self._read_lines), threading.Thread(target=self._read_text)]
        for reader in self.readers:
            reader.start()

    def _read_lines(self):
        for line in self.process.stderr:
            self.lines.append((time.monotonic(), line.rstrip("\n")))

    def _read_text(self):
        self.text = self.process.stdout.read()

    def __enter__(self):
        return self

    def __exit__(self, error, *_):
        ended = self.process.poll() is not None
        if not ended:
            self.process.kill()
        self.process.wait()
        left = processes_with(self.temporary)
        for pid in left:  # they would hold the pipes that are read here
            send(pid)
        for reader in self.readers:
            reader.join()
        self.process.stdout.close()
        self.process.stderr.close()
        if left and ended and error is None:
            raise AssertionError("left running: %s" % left)

    def living_workers(self):
        """The pids of the workers that there are now, in the order in which they were started."""
        return [p for p in children(self.process.pid) if command_line(p)[1:2] == [b"worker"]]

    def workers(self):
        """The pids of the workers, by rank, once all have been started."""
        found = []

        def complete():
            found[:] = self.living_workers()
            return len(found) == self.ranks or self.process.poll() is not None

        wait_until(complete, 60, "the workers start")
        if len(found) != self.ranks:
            raise AssertionError("no workers: %s" % self.lines)
        return found

    def metrics(self):
        try:
            return netcl_cli.metrics_lines(self.out)
        except (FileNotFoundError, ValueError):
            return []

    def wait_for_epochs(self, count):
        wait_until(lambda: len([m for m in self.metrics() if "train" in m]) >= count or self.process.poll() is not None,
                   120, "%d epochs" % count)
        if self.process.poll() is not None:
            raise AssertionError("the run has ended: %s" % self.lines)

    def recoveries(self):
        """How often training went on after a failure, so far."""
        return sum(text.startswith("training goes on ") for _, text in self.lines)

    def finish(self, seconds=30):
        """(exit code, JSON document) once it has ended."""
        code = self.process.wait(timeout=seconds)
        for reader in self.readers:
            reader.join()
        return code, json.loads(self.text)

    def error_line(self):
        """(monotonic seconds of arrival, text) of the error, or None."""
        errors = [(when, text) for when, text in self.lines if text.startswith("error: ")]
        return errors[0] if errors else None

    def check_nothing_left(self, workers):
        for pid in workers:
            if alive(pid):
                raise AssertionError("worker %d still runs" % pid)
        left = set(os.listdir("/dev/shm")) - self.shared_memory
        left |= set(os.listdir(self.temporary))
        left |= set(temporary_files(self.out)) | set(temporary_files(self.cli.env["NETCL_CACHE_DIR"]))
        if left:
            raise AssertionError("left behind: %s" % sorted(left))

    def remove(self):
        shutil.rmtree(os.path.dirname(self.out))


def send(pid, number=signal.SIGKILL):
    os.kill(pid, number)
    return time.monotonic()
