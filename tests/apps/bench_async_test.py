"""bench async: its JSON, the correctness of what it times, and bounds that even a busy machine keeps."""

import json
import unittest

from tests.apps import netcl_cli


class BenchAsync(unittest.TestCase):
    def bench(self, *arguments):
        done = netcl_cli.Cli().run("bench", "async", *arguments)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        return done.stdout

    def test_measures_and_checks(self):
        result = json.loads(self.bench("--device", "cpu:0", "--json", "--ops", "100000", "--size", "500"))
        self.assertEqual(result["device"], "cpu:0")

        increments = result["increments"]
        self.assertTrue(increments["correct"])
        self.assertEqual(increments["count"], 10000)
        # On an idle machine of two cores: more than 10 and less than 2.
        self.assertGreaterEqual(increments["ratio"], 2)
        self.assertLessEqual(increments["raw_ratio"], 6)
        self.assertAlmostEqual(increments["ratio"], increments["sync_s"] / increments["async_s"])

        matmul = result["matmul"]
        self.assertLess(matmul["enqueue_s"], matmul["finish_s"])
        self.assertGreater(matmul["gflops"], 0)
        self.assertLess(matmul["max_rel_err"], 5e-5)

        self.assertTrue(result["read"]["correct"])
        self.assertLess(result["read"]["read_s"], result["read"]["all_s"])

        bounded = result["bounded"]
        self.assertTrue(bounded["correct"])
        self.assertEqual(bounded["ops"], 100000)
        self.assertLessEqual(bounded["pool_bytes"], 1 << 16)
        self.assertEqual(bounded["pool_growth_bytes"], 0)
        self.assertLess(bounded["rss_growth_bytes"], 32 << 20)

        two = result["two_devices"]
        if two is not None:  # an odd number of compute units cannot be halved
            self.assertTrue(two["correct"])
            self.assertEqual(two["devices"], ["cpu:0#0", "cpu:0#1"])
            self.assertGreater(two["ratio"], 0)

    def test_text(self):
        text = self.bench("--ops", "1000", "--increments", "100", "--size", "64", "--repeats", "1")
        self.assertIn("increments", text)
        self.assertIn("two_devices", text)

    def test_refuses_three_devices(self):
        done = netcl_cli.Cli().run("bench", "async", "--device", "cpu:0/3", "--json")
        self.assertEqual(done.returncode, 2)
        self.assertIn("expected one or two", json.loads(done.stdout)["error"])


if __name__ == "__main__":
    unittest.main()
