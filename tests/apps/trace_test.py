"""--trace: valid JSON with the events of every worker, in order, on one clock."""

import json
import os
import unittest

from tests.apps import netcl_cli

CONFIG = netcl_cli.runfile("apps/examples/digits_mlp.json")
COMPUTE, TRANSPORT, HOST = 1, 2, 3
RUN_AHEAD = 5  # steps that a worker's host may be ahead of its device


class Trace(unittest.TestCase):
    def setUp(self):
        self.cli = netcl_cli.Cli()
        self.file = os.path.join(self.cli.folder, "trace.json")

    def read(self):
        with open(self.file) as stream:
            return json.load(stream)

    def check_track(self, events):
        """No event of a device or a transport begins before the one before it has ended."""
        end = 0
        for event in events:
            self.assertGreaterEqual(event["dur"], 0)
            self.assertGreaterEqual(event["ts"], end - 1e-2)  # clocks are rounded to nanoseconds
            end = event["ts"] + event["dur"]

    def test_train_with_two_workers(self):
        result = self.cli.train(CONFIG, "--devices", "cpu:0/2", "--max-steps", "20", "--epochs", "4",
                                "--trace", self.file, "--trace-steps", "6")
        document = self.read()
        # Ten steps of warm-up, then six.
        wanted = set(range(11, 17))
        accuracy_us = result["trace"]["accuracy_us"]
        clocks = 2 * accuracy_us + 1
        begins = {}
        for rank in (0, 1):
            events = [e for e in document["traceEvents"] if e["pid"] == rank]
            names = [e["args"]["name"] for e in events if e["ph"] == "M"]
            self.assertIn("rank %d (cpu:0#%d)" % (rank, rank), names)
            self.assertTrue({"compute queue", "transport", "host loop"} <= set(names))
            spans = [e for e in events if e["ph"] == "X"]
            self.assertEqual({e["args"]["step"] for e in spans}, wanted)
            kernels = [e for e in spans if e["cat"] == "kernel"]
            compute = [e for e in spans if e["tid"] == COMPUTE]
            transfers = [e for e in compute if e["cat"] == "transfer"]
            collectives = [e for e in spans if e["tid"] == TRANSPORT]
            self.assertTrue(any("matmul" in e["name"] for e in kernels), kernels[:3])
            self.assertTrue(transfers and all(e["args"]["bytes"] > 0 for e in transfers))
            self.assertTrue(any("wait" in e["name"] for e in spans if e["tid"] == HOST))
            self.check_track(sorted(compute, key=lambda e: e["ts"]))
            self.check_track(collectives)
            self.assertTrue({e["args"]["step"] for e in collectives} >= wanted)
            for event in collectives:
                self.assertTrue(event["name"].startswith(("all_reduce ", "reduce_scatter ", "all_gather ")))
                self.assertGreater(event["args"]["bytes"], 0)
                # Posted behind the kernels, so it may be posted before its data is ready.
                self.assertLessEqual(event["args"]["ready_us"], event["ts"] + event["dur"] + clocks)
            steps = {e["args"]["step"]: e for e in spans if e["cat"] == "step"}
            self.assertEqual(set(steps), wanted)
            last_end = max(e["ts"] + e["dur"] for e in spans)
            for kernel in kernels:
                step = kernel["args"]["step"]
                self.assertGreaterEqual(kernel["ts"], steps[step]["ts"] - clocks)
                later = steps.get(step + RUN_AHEAD)
                end = later["ts"] + later["dur"] if later else last_end
                self.assertLessEqual(kernel["ts"] + kernel["dur"], end + clocks)
            begins[rank] = {n: e["ts"] for n, e in steps.items()}
            ends = {n: e["ts"] + e["dur"] for n, e in steps.items()}
            begins[rank, "end"] = ends
        # One clock: no worker begins the step after next before the other has begun this one, since
        # each waits for the other's gradients.
        for step in sorted(wanted)[:-1]:
            for rank in (0, 1):
                self.assertGreaterEqual(begins[rank][step + 1], begins[1 - rank][step])
        trace = result["trace"]
        self.assertEqual(trace["steps"], 6)
        self.assertEqual(trace["file"], self.file)
        self.assertEqual(len(trace["ranks"]), 2)
        self.assertGreater(trace["communication_ms"], 0)
        self.assertGreaterEqual(trace["exposed_ms"], 0)
        self.assertLessEqual(trace["exposed_ms"], trace["communication_ms"] + 1e-3)
        self.assertGreater(trace["device_ms"], 0)
        self.assertAlmostEqual(trace["exposed_percent"],
                               100 * trace["exposed_ms"] / trace["communication_ms"], places=0)

    def test_tracing_changes_no_bit(self):
        runs = []
        for name, arguments in (("plain", []), ("traced", ["--trace", self.file])):
            out = os.path.join(self.cli.folder, name)
            self.cli.train(CONFIG, "--devices", "cpu:0/2", "--shard", "even", "--max-steps", "15",
                           "--epochs", "2", "--out", out, *arguments)
            runs.append(netcl_cli.read_safetensors(os.path.join(out, "checkpoints", "last.safetensors")))
        self.assertEqual(runs[0], runs[1])

    def test_one_worker_and_a_run_shorter_than_the_window(self):
        result = self.cli.train(CONFIG, "--devices", "cpu:0", "--max-steps", "3", "--trace", self.file)
        spans = [e for e in self.read()["traceEvents"] if e["ph"] == "X"]
        self.assertEqual({e["args"]["step"] for e in spans}, {1, 2, 3})
        self.assertEqual({e["pid"] for e in spans}, {0})
        self.assertEqual(result["trace"]["communication_ms"], 0)
        self.assertIsNone(result["trace"]["exposed_percent"])

    def test_bench_step(self):
        done = self.cli.run("bench", "step", CONFIG, "--devices", "cpu:0/2", "--steps", "4",
                            "--rounds", "1", "--trace", self.file, "--trace-steps", "3", "--json", "--quiet")
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        result = json.loads(done.stdout)
        spans = [e for e in self.read()["traceEvents"] if e["ph"] == "X"]
        self.assertEqual({e["pid"] for e in spans}, {0, 1})
        self.assertEqual(len({e["args"]["step"] for e in spans}), 3)
        self.assertEqual(result["trace"]["steps"], 3)
        self.assertEqual(result["trace"]["file"], self.file)


if __name__ == "__main__":
    unittest.main()
