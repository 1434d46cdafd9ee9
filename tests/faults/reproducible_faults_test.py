"""--reproducible: a run whose workers or supervisor were killed ends with the bytes of an undisturbed one."""

import json
import os
import unittest

from tests.apps import netcl_cli
from tests.apps.replica_models import IGNORED, image_rows, model, write
from tests.faults import watched_run

DIGITS = netcl_cli.runfile("apps/examples/digits_mlp.json")
SLOW = "slow=10000"  # microseconds a sample: steps of 0.1 s and more, so that an epoch can be interrupted


def checkpoints(run_dir):
    """Name -> bytes of everything that the run saved."""
    folder, out = os.path.join(run_dir, "checkpoints"), {}
    for name in os.listdir(folder):
        with open(os.path.join(folder, name), "rb") as stream:
            out[name] = stream.read()
    return out


class ReproducibleFaults(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.cli = netcl_cli.Cli()
        write(cls.cli, "images.csv", image_rows(77))
        write(cls.cli, "test.csv", image_rows(101, seed=2))
        cls.images = write(cls.cli, "images.json", json.dumps({
            "model": model(False),  # a convolution, batch norm, dropout
            "data": {"format": "csv", "train": "images.csv", "test": "test.csv", "label": -1},
            "loss": {"type": "cross_entropy", "class_weights": [1, 2, 0.5], "ignore_index": IGNORED},
            "optimizer": {"type": "sgd", "lr": 0.05, "momentum": 0.9, "clip_norm": 0.5}, "ema": {"decay": 0.8},
            "batch_size": 32, "epochs": 3, "seed": 7}))  # 9 steps
        cls.wanted = cls.undisturbed(cls.images)

    @classmethod
    def undisturbed(cls, config):
        return cls.cli.train(config, "--reproducible", "--devices", "cpu:0")

    def check(self, result, wanted, what):
        self.assertEqual(result["steps"], wanted["steps"], what)
        self.assertEqual(result["train_loss"], wanted["train_loss"], what)
        self.assertEqual(result["metrics"], wanted["metrics"], what)
        got, want = checkpoints(result["run_dir"]), checkpoints(wanted["run_dir"])
        for name in ("last.safetensors", "best.safetensors"):
            self.assertEqual(got[name], want[name], (name, what))
        self.assertEqual(netcl_cli.step_losses(result["run_dir"]), netcl_cli.step_losses(wanted["run_dir"]), what)

    def check_survives(self, config, wanted, devices, policy, faults, recoveries):
        """Returns the lines that say where the run went on."""
        done = self.cli.run("train", config, "--reproducible", "--json", "--devices", devices, "--on-failure", policy,
                            env={"NETCL_FAULTS": faults})
        self.assertEqual(done.returncode, 0, (faults, done.stderr))
        result = json.loads(done.stdout)
        self.assertEqual(len(result["failures"]), recoveries, (faults, result["failures"]))
        self.check(result, wanted, (policy, faults))
        return [line for line in done.stderr.splitlines() if line.startswith("training goes on ")]

    def test_restart(self):
        for devices, faults, recoveries in (
                ("cpu:0/2", "rank=1 at=computed step=4 do=kill", 1),
                ("cpu:0/2", "rank=0 at=reducing step=5 do=kill", 1),
                ("cpu:0/3", "rank=2 at=reducing step=2 do=kill; rank=0 at=updated step=7 do=kill", 2)):
            self.check_survives(self.images, self.wanted, devices, "restart", faults, recoveries)

    def test_continue(self):
        """The parts of the batch are those that there were; the workers left share them anew."""
        for devices, faults, left in (
                ("cpu:0/2", "rank=0 at=reducing step=5 do=kill", 1),
                ("cpu:0/3", "rank=1 at=reducing step=3 do=kill", 2),
                ("cpu:0/3", "rank=2 at=computed step=3 do=kill; rank=0 at=reducing step=8 do=kill", 1)):
            lines = self.check_survives(self.images, self.wanted, devices, "continue", faults, faults.count("kill"))
            self.assertIn(" on %d worker" % left, lines[-1])

    def test_digits(self):
        """AdamW, and many steps after the failures for a difference to grow in."""
        wanted = self.undisturbed(DIGITS)
        faults = "rank=1 at=reducing step=40 do=kill; rank=0 at=computed step=100 do=kill"
        self.check_survives(DIGITS, wanted, "cpu:0/2", "restart", faults, 2)
        self.check_survives(DIGITS, wanted, "cpu:0/3", "continue", faults, 2)

    def test_a_later_snapshot(self):
        """What a snapshot between two steps of an epoch holds is enough for the same bytes."""
        for devices, policy in (("cpu:0/2", "restart"), ("cpu:0/3", "continue")):
            faults = "slow=25000; rank=1 at=reducing step=8 do=kill"
            lines = self.check_survives(self.images, self.wanted, devices, policy, faults, 1)
            self.assertRegex(lines[0], "after step [1-8] ")

    def test_killed_supervisor(self):
        """In the second epoch, under each policy; the run then goes on with other workers."""
        for policy, then in (("stop", "cpu:0/3"), ("restart", "cpu:0/2"), ("continue", "cpu:0")):
            with watched_run.WatchedRun("--reproducible", "--devices", "cpu:0/2", "--quiet", "--on-failure", policy,
                                        config=self.images, cli=self.cli, env={"NETCL_FAULTS": SLOW}) as run:
                run.workers()
                run.wait_for_epochs(1)
                watched_run.send(run.process.pid)
                watched_run.wait_until(lambda: not watched_run.processes_with(run.temporary), 5,
                                       "the workers end with their supervisor")
            result = self.cli.train(self.images, "--reproducible", "--devices", then, "--resume", run.out)
            self.assertEqual(result["run_dir"], run.out)
            self.check(result, self.wanted, (policy, then))


if __name__ == "__main__":
    unittest.main()
