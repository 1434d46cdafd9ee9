"""Tunes kernel sets for a device and prints what that brought.

  tune_records.py DIR DEVICE OUT [--questions cpu|gpu] [--kernels SETS] [--budget 60s] [--rounds 7]

DIR: an unpacked netcl-dist.tar.gz; OUT: the file of records that is written, to ship with a kernel
set; --kernels: the sets that are searched, as if there were no others (generic). Every question is tuned for the budget, which
times the default and the best in turn; then `bench op` with --no-tuned and with the records takes
turns, and medians are compared (--rounds 0: not that; its reference takes minutes for 4096^3). A
second `tune` must search for nothing that has a record, and `tune check` must pass. The last line is "N passed, N failed".
"""

import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile

CONV = ("--attr", "padding=[1,1]")


def conv(n, c, side, o):
    """A 3x3 convolution of n images with c channels to o, and its two gradients."""
    x, w, y = (",".join(map(str, d)) for d in ((n, c, side, side), (o, c, 3, 3), (n, o, side, side)))
    size = "[%d,%d]" % (side, side)
    return [("conv2d", "--shape", x, "--shape", w, *CONV),
            ("conv2d_grad_input", "--shape", y, "--shape", w, *CONV, "--attr", "input=" + size),
            ("conv2d_grad_weight", "--shape", x, "--shape", y, *CONV, "--attr", "kernel=[3,3]")]


def product(m, k, n, *more):
    return ("matmul", "--shape", "%d,%d,%d" % (m, k, n), *more)


QUESTIONS = {
    "cpu": [product(512, 512, 512), product(128, 784, 256), product(1024, 1024, 1024),
            ("matmul", "--shape", "128,256", "--shape", "784,256", "--attr", "transpose_b=1"),
            *conv(32, 64, 16, 64), ("softmax", "--shape", "1024,1000"), ("layer_norm", "--shape", "2048,256"),
            ("sum", "--shape", "4096,1024")],
    "gpu": [product(4096, 4096, 4096), product(1024, 1024, 1024), product(512, 512, 512), product(128, 784, 256),
            *conv(64, 128, 28, 128), ("softmax", "--shape", "8192,1000"),
            ("layer_norm", "--shape", "16384,1024"), ("sum", "--shape", "4096,4096")],
}


def short(op):
    return " ".join(op).replace("--shape ", "").replace("--attr ", "")


class Tuning:
    def __init__(self, options):
        self.options = options
        self.app = os.path.join(options.dir, "bin/netcl-app")
        self.home = tempfile.mkdtemp()
        self.records = os.path.join(self.home, "data/netcl/tuned/records.jsonl")
        os.makedirs(os.path.dirname(self.records))
        self.env = dict(os.environ, HOME=self.home, XDG_DATA_HOME=os.path.join(self.home, "data"))
        self.passed = self.failed = 0

    def run(self, *arguments):
        done = subprocess.run([self.app, *arguments, "--json"], env=self.env, stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, universal_newlines=True)
        if done.returncode != 0:
            sys.exit("%s: exit code %d\n%s%s" % (" ".join(arguments), done.returncode, done.stdout, done.stderr))
        return json.loads(done.stdout)

    def verdict(self, good, words):
        self.passed, self.failed = self.passed + bool(good), self.failed + (not good)
        print("%s: %s" % ("passed" if good else "FAILED", words), flush=True)

    def time(self, op, *more):
        row = self.run("bench", "op", "--op", op[0], *op[1:], "--device", self.options.device, "--only-plugins",
                       self.options.kernels, *more)["results"][0]
        if not row["correct"]:
            sys.exit("%s: wrong results: %s" % (op, row))
        return row

    def compare(self, op):
        """The defaults and the records in turn."""
        plain, tuned = [], []
        for _ in range(self.options.rounds):
            plain.append(self.time(op, "--no-tuned"))
            tuned.append(self.time(op))
        a, b = (statistics.median(r["time_us"] for r in rows) for rows in (plain, tuned))
        print("%-70s %10.1f us %10.1f us %6.2f x  %s -> %s" % (short(op), a, b, a / b, plain[0]["variant"], tuned[0]["variant"]), flush=True)

    def all(self):
        # With more specific sets the default would be theirs.
        tune = lambda op, *more: self.run(
            "tune", "--op", op[0], *op[1:], "--device", self.options.device, "--only-plugins", self.options.kernels,
            "--budget", self.options.budget, "--out", self.records, *more)
        questions = QUESTIONS[self.options.questions]
        kept = []
        for op in questions:
            results = tune(op, "--again")["results"]  # also where a record was brought along
            if not results:
                print("%-70s not served" % short(op), flush=True)
                continue
            result = results[0]
            print("%-70s %10.1f us %10.1f us %6.2f x, %d of %d candidates in %.0f s, %s" % (
                short(op), result["default"]["time_us"], result["best"]["time_us"],
                result["default"]["time_us"] / result["best"]["time_us"], result["tried"],
                result["candidates"], result["seconds"], result["best"]["variant"]), flush=True)
            # A search that ended early without a gain leaves no record.
            if result["record"]:
                kept.append(op)
        again = [tune(op)["results"][0] for op in kept]
        self.verdict(all(r["from_record"] for r in again),
                     "a second start searches for none of the %d recorded questions" % len(kept))
        if self.options.rounds > 0:
            print("%-70s %13s %13s %8s" % ("question", "default", "tuned", "gain"))
            for op in questions:
                self.compare(op)
        checked = self.run("tune", "check", self.records)
        self.verdict(checked["passed"] and len(checked["records"]) == len(kept) > 0,
                     "tune check of %d records" % len(checked["records"]))
        shutil.copy(self.records, self.options.out)
        shutil.rmtree(self.home)
        print("%d passed, %d failed" % (self.passed, self.failed))
        return 1 if self.failed else 0


def main():
    parser = argparse.ArgumentParser()
    for name in ("dir", "device", "out"):
        parser.add_argument(name)
    parser.add_argument("--questions", choices=QUESTIONS, default="cpu")
    parser.add_argument("--kernels", default="generic")
    parser.add_argument("--budget", default="60s")
    parser.add_argument("--rounds", type=int, default=7)
    sys.exit(Tuning(parser.parse_args()).all())


if __name__ == "__main__":
    main()
