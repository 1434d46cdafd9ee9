"""bench allreduce: its rows, and that every sum equals the one in rank order bit for bit."""

import json
import unittest

from tests.apps import netcl_cli

KEYS = ["transport", "ranks", "bytes", "dtype", "time_us", "busbw_gbs", "memcpy_ratio", "bound_us",
        "percent_of_bound", "correct"]


class BenchAllReduce(unittest.TestCase):
    def bench(self, *arguments):
        done = netcl_cli.Cli().run("bench", "allreduce", *arguments)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        return done.stdout

    def test_rows(self):
        result = json.loads(self.bench("--devices", "cpu:0/2", "--bytes", "4,4096,1048580",
                                       "--repeats", "3", "--json"))
        rows = result["results"]
        self.assertEqual([row["bytes"] for row in rows], [4, 4096, 1048580])
        for row in rows:
            for key in KEYS:
                self.assertIn(key, row)
            self.assertIs(row["correct"], True)
            self.assertEqual(row["ranks"], 2)
            self.assertEqual(row["dtype"], "f32")
            self.assertEqual(row["repeats"], 3)
            for key in ("time_us", "busbw_gbs", "memcpy_us", "bound_us", "d2h_gbs", "h2d_gbs", "root_gbs"):
                self.assertGreater(row[key], 0, key)
            # The fastest copies bound the memory, whichever number of threads made them.
            self.assertGreaterEqual(row["memory_threads"], 1)
            self.assertGreaterEqual(row["memory_gbs"], 4 * row["bytes"] / row["memcpy_us"] * 1e-3 * 0.999)
            self.assertLessEqual(row["min_us"], row["time_us"])
            self.assertLessEqual(row["time_us"], row["max_us"])
            # The relations that define the keys: 2 (N - 1) / N is 1 for two ranks.
            self.assertAlmostEqual(row["busbw_gbs"], row["bytes"] / row["time_us"] * 1e-3, places=6)
            self.assertAlmostEqual(row["memcpy_ratio"], row["time_us"] / row["memcpy_us"])
            self.assertAlmostEqual(row["percent_of_bound"], 100 * row["bound_us"] / row["time_us"])
            terms = {
                "d2h": row["bytes"] / row["d2h_gbs"] * 1e-3,
                "h2d": row["bytes"] / row["h2d_gbs"] * 1e-3,
                "root": 2 * row["bytes"] / row["root_gbs"] * 1e-3,
                "memory": 7 * row["bytes"] / row["memory_gbs"] * 1e-3,
            }
            self.assertAlmostEqual(row["bound_us"], max(terms.values()), places=3)
            self.assertAlmostEqual(row["bound_us"], terms[row["bound_by"]], places=3)

    def test_three_ranks_and_text(self):
        text = self.bench("--devices", "cpu:0/3", "--bytes", "65536", "--repeats", "2")
        self.assertIn("memcpy_ratio", text)
        self.assertIn("true", text)
        self.assertNotIn("false", text)

    def test_refusals(self):
        cases = [
            (["--devices", "cpu:0"], "two or more"),
            (["--devices", "cpu:0/2", "--dtype", "bool"], "cannot be added up"),
            (["--devices", "cpu:0/2", "--bytes", "2"], "at least one f32"),
        ]
        for arguments, words in cases:
            done = netcl_cli.Cli().run("bench", "allreduce", "--json", *arguments)
            self.assertEqual(done.returncode, 2, arguments)
            self.assertIn(words, json.loads(done.stdout)["error"])
        done = netcl_cli.Cli().run("bench", "allreduce", "--json", "--devices", "cpu:0/2",
                                   "--transport", "nowhere")
        self.assertEqual(done.returncode, 4)
        self.assertIn("nowhere", json.loads(done.stdout)["error"])


if __name__ == "__main__":
    unittest.main()
