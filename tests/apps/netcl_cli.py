"""Runs netcl-app in tests: finds the binary among the runfiles and gives each run its own folders."""

import json
import os
import subprocess
import tempfile


def runfile(path):
    """Absolute path of a file of the workspace among this test's runfiles."""
    root = os.environ.get("TEST_SRCDIR")
    workspace = os.environ.get("TEST_WORKSPACE", "netcl")
    return os.path.join(root, workspace, path) if root else os.path.abspath(path)


def plugins_dir():
    """The real directory of the plugins: files that lead out of a plugin's directory are refused."""
    return os.path.dirname(os.path.dirname(os.path.realpath(runfile("plugins/dir/generic/plugin.json"))))


class Cli:
    """netcl-app with a home of its own below `folder`."""

    def __init__(self, folder=None):
        self.folder = folder or tempfile.mkdtemp(dir=os.environ.get("TEST_TMPDIR"))
        self.binary = runfile("apps/netcl-app")
        self.env = dict(
            os.environ,
            HOME=self.folder,
            NETCL_PLUGIN_PATH=plugins_dir(),
            NETCL_CACHE_DIR=os.path.join(os.environ.get("TEST_TMPDIR", self.folder), "netcl-cache"),
            POCL_CACHE_DIR=os.path.join(os.environ.get("TEST_TMPDIR", self.folder), "pocl-cache"),
        )

    def run(self, *arguments, timeout=300, env=None):
        """Returns the finished process, with text output."""
        return subprocess.run(
            [self.binary, *arguments], env=dict(self.env, **(env or {})), cwd=self.folder,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, universal_newlines=True, timeout=timeout)

    def train(self, config, *arguments, timeout=300):
        """Trains with --json; returns the document. Fails unless the exit code is 0."""
        done = self.run("train", config, "--json", "--quiet", *arguments, timeout=timeout)
        if done.returncode != 0:
            raise AssertionError("exit code %d\n%s\n%s" % (done.returncode, done.stdout, done.stderr))
        return json.loads(done.stdout)


def metrics_lines(run_dir):
    with open(os.path.join(run_dir, "metrics.jsonl")) as lines:
        return [json.loads(line) for line in lines]


def step_losses(run_dir):
    """The loss of every step, in order."""
    return [line["loss"] for line in metrics_lines(run_dir) if "step" in line]


def read_safetensors(path):
    """Name -> list of floats, for F32 tensors."""
    import array
    import struct

    with open(path, "rb") as stream:
        content = stream.read()
    (size,) = struct.unpack("<Q", content[:8])
    header = json.loads(content[8:8 + size])
    out = {}
    for name, entry in header.items():
        if name == "__metadata__":
            continue
        begin, end = entry["data_offsets"]
        values = array.array("f")
        values.frombytes(content[8 + size + begin:8 + size + end])
        out[name] = values
    return out
