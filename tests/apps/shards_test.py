"""Shares of a batch by measured speed, with workers that sleep in proportion to their samples.

Sleeps are long against the real work, so speeds are known: 1:1, 1:2, 1:2:4, and one that slows down
in mid-run. From step 10 on (or 10 steps after the change) the workers reach nine tenths of the sum of
what each does alone. Then what a run says and keeps of its shares.
"""

import json
import os
import statistics
import unittest

from tests.apps import netcl_cli

BATCH = 128
SLOW = 300  # microseconds a sample
LONG = 460  # steps, so that a group is worth being formed anew, whenever it is decided
EPOCHS = ("--set", "epochs=3")
CONFIG = {
    "model": {"input": [16], "layers": [{"type": "linear", "out": 10}]},
    "data": {"format": "synthetic", "kind": "blobs", "samples": 200 * BATCH, "classes": 10},
    "optimizer": {"type": "sgd", "lr": 0.01},
    "batch_size": BATCH,
}


def faults(slowness):
    return ";".join("rank=%d slow=%d" % (rank, SLOW * s) for rank, s in enumerate(slowness))


class Shards(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.cli = netcl_cli.Cli()
        cls.config = os.path.join(cls.cli.folder, "blobs.json")
        with open(cls.config, "w") as stream:
            json.dump(CONFIG, stream)
        cls.alone = {}  # slowness -> samples per second

    def train(self, devices, steps, slow, *arguments):
        done = self.cli.run("train", self.config, "--json", "--devices", devices, "--max-steps", str(steps),
                            *arguments, env={"NETCL_FAULTS": slow})
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        result = json.loads(done.stdout)
        result["said"] = done.stderr
        lines = [l for l in netcl_cli.metrics_lines(result["run_dir"]) if "step" in l]
        result["speed"] = {l["step"]: BATCH / l["seconds"] for l in lines}
        return result

    def speed(self, result, first, last):
        """Samples per second of the median step."""
        return statistics.median(result["speed"][step] for step in range(first, last + 1))

    def speed_alone(self, slowness):
        if slowness not in self.alone:
            self.alone[slowness] = self.speed(self.train("cpu:0", 12, faults([slowness])), 4, 12)
        return self.alone[slowness]

    def check(self, slowness):
        devices = "cpu:0/%d" % len(slowness)
        total = sum(self.speed_alone(s) for s in slowness)
        auto = self.speed(self.train(devices, 26, faults(slowness)), 10, 26)
        even = self.speed(self.train(devices, 16, faults(slowness), "--shard", "even"), 8, 16)
        print("%-8s sum %6.0f  auto %6.0f (%.3f)  even %6.0f (%.3f)" %
              (":".join(map(str, slowness)), total, auto, auto / total, even, even / total))
        self.assertGreaterEqual(auto, 0.9 * total)
        return even / total

    def test_equal_speeds(self):
        self.check((1, 1))

    def test_one_to_two(self):
        self.assertLess(self.check((1, 2)), 0.8)  # even: 2 * 1 of 3

    def test_one_to_two_to_four(self):
        self.assertLess(self.check((1, 2, 4)), 0.6)  # even: 3 * 1 of 7

    def test_one_slows_down_in_mid_run(self):
        slow = faults([1, 1]) + ";rank=1 step=40 slow=%d" % (2 * SLOW)  # from then on three times as slow
        before = self.speed_alone(1) + self.speed_alone(1)
        after = self.speed_alone(1) + self.speed_alone(3)
        result = self.train("cpu:0/2", 66, slow)
        speeds = [self.speed(result, *part) for part in ((10, 39), (40, 43), (50, 66))]
        print("1:1, then 1:3: before %.0f of %.0f, at the change %.0f, from its tenth step on %.0f of %.0f (%.3f)" %
              (speeds[0], before, speeds[1], speeds[2], after, speeds[2] / after))
        self.assertGreaterEqual(speeds[0], 0.9 * before)
        self.assertGreaterEqual(speeds[2], 0.9 * after)

    def test_the_account_and_the_saved_plan(self):
        out = os.path.join(self.cli.folder, "kept")
        result = self.train("cpu:0/2", 30, faults([1, 2]), "--out", out)
        self.assertIn("shards by measured speed: cpu:0#0 ", result["said"])
        account, workers = result["account"], result["workers"]
        self.assertEqual(account["left_out"], [])
        self.assertAlmostEqual(account["sum_samples_per_second"],
                               sum(w["solo_samples_per_second"] for w in workers), places=3)
        self.assertAlmostEqual(account["percent_of_sum"],
                               100 * account["all_samples_per_second"] / account["sum_samples_per_second"], places=3)
        self.assertGreaterEqual(account["exposed_communication_percent"], 0)
        for worker, s in zip(workers, (1, 2)):
            # What the sleep allows, less the real work, as far as a fit from few steps knows.
            self.assertLess(worker["solo_samples_per_second"], 1.1e6 / (SLOW * s))
            self.assertGreater(worker["solo_samples_per_second"], 0.7e6 / (SLOW * s))
            self.assertLess(worker["percent_without"], -20)
        self.assertAlmostEqual(workers[0]["share"], 2 / 3, delta=0.05)
        with open(os.path.join(out, "checkpoints/last.json")) as stream:
            state = json.load(stream)
        shares = [w["share"] for w in workers]
        self.assertEqual(state["shard_weights"], shares)
        with open(os.path.join(out, "environment.json")) as stream:
            self.assertEqual(json.load(stream)["shard_weights"], shares)

        resumed = self.train("cpu:0/2", 36, faults([1, 2]), "--resume", out)
        ideal = self.speed_alone(1) + self.speed_alone(2)
        self.assertGreaterEqual(self.speed(resumed, 31, 34), 0.87 * ideal)  # even shares: two thirds
        other = self.train("cpu:0", 37, "", "--resume", out)  # other devices: nothing to keep
        self.assertEqual([w["share"] for w in other["workers"]], [1])

    def test_a_device_that_only_slows_down_is_left_out(self):
        slow = "rank=1 slow=20000"  # one of its samples takes longer than the batch takes the other
        result = self.train("cpu:0/2", 40, slow, "--set", "batch_size=32")
        self.assertRegex(result["said"], r"cpu:0#1 is left out: with it a step takes [\d.]+ ms, without [\d.]+ ms")
        self.assertEqual(result["account"]["left_out"], ["cpu:0#1"])
        self.assertEqual([w["share"] for w in result["workers"]], [1, 0])
        self.assertGreater(result["workers"][1]["percent_without"], 100)

    def test_who_holds_the_others_up_leaves_the_group(self):
        # 8 ms in each of its steps, with samples or without.
        held = "rank=1 hold=8000"
        result = self.train("cpu:0/2", LONG, held, *EPOCHS)
        self.assertRegex(result["said"], r"the run goes on without cpu:0#1 to see whether that is faster")
        self.assertRegex(result["said"], r"cpu:0#1 stays out of the group: with it in the group a step takes "
                                         r"[\d.]+ ms, without [\d.]+ ms")
        self.assertLess(self.speed(result, 4, 12), 0.5 * self.speed(result, LONG - 50, LONG - 10))
        self.assertEqual(result["account"]["left_out"], ["cpu:0#1"])
        self.assertEqual(result["failures"], [])
        self.assertEqual(result["stopped"], "max_steps")
        self.assertEqual([w["share"] > 0 for w in result["workers"]], [True, False])
        self.assertGreater(result["workers"][1]["samples"], 0)
        self.assertGreater(result["workers"][1]["percent_without"], 50)
        self.assertEqual(sum(w["samples"] for w in result["workers"]), LONG * BATCH)
        # Nothing of the seam is seen in the result.
        whole = self.train("cpu:0", LONG, "", *EPOCHS)
        for a, b in zip(self.losses(result), self.losses(whole), strict=True):
            self.assertAlmostEqual(a, b, delta=1e-5)

    def test_a_worker_that_left_may_be_stopped_or_killed(self):
        for action, failures in (("stop", 0), ("kill", 1)):
            held = "rank=1 hold=8000; rank=1 at=parked do=" + action
            result = self.train("cpu:0/2", LONG, held, *EPOCHS)
            self.assertEqual(result["stopped"], "max_steps")
            self.assertEqual(len(result["failures"]), failures, result["failures"])
            if failures:
                self.assertIn("cpu:0#1): the worker (pid ", result["said"])
                self.assertEqual(result["failures"][0]["action"], "left out")

    def losses(self, result):
        return [l["loss"] for l in netcl_cli.metrics_lines(result["run_dir"]) if "step" in l]

    def test_who_left_comes_back_where_that_is_faster(self):
        # With two the second holds them up, but alone the first takes longer still.
        held = "rank=1 ranks=2 hold=8000; rank=0 ranks=1 hold=20000"
        for policy in ("stop", "restart"):
            result = self.train("cpu:0/2", LONG, held, *EPOCHS, "--on-failure", policy)
            self.assertRegex(result["said"], r"the run goes on without cpu:0#1 to see whether that is faster")
            self.assertRegex(result["said"], r"cpu:0#1 comes back into the group: with it in the group a step takes")
            self.assertNotIn("stays out of the group", result["said"])
            self.assertEqual(result["failures"], [])
            self.assertEqual(sum(w["samples"] for w in result["workers"]), LONG * BATCH)

    def test_who_left_is_there_where_the_others_fail(self):
        held = "rank=1 hold=8000; rank=0 at=begin step=380 do=kill"
        result = self.train("cpu:0/2", LONG, held, *EPOCHS, "--on-failure", "continue")
        self.assertRegex(result["said"], r"cpu:0#1 stays out of the group")
        self.assertEqual([f["rank"] for f in result["failures"]], [0])
        self.assertEqual([w["share"] for w in result["workers"]], [0, 1])
        self.assertEqual(result["steps"], LONG)


if __name__ == "__main__":
    unittest.main()
