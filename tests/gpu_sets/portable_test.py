"""The portable parts of a set for GPUs, on this machine's CPU, with a manifest that matches any device:
`plugins verify`, with some cases a variant (NETCL_TEST_EVERY=1, by hand: every case, and every value of
every tunable, which takes long).

usage: portable_test.py NETCL_APP ID FILE...     FILE: those of the plugins' directory
"""

import json
import os
import subprocess
import sys
import tempfile
import unittest

APP, ID = os.path.realpath(sys.argv[1]), sys.argv[2]
PLUGIN = next(os.path.dirname(os.path.realpath(f)) for f in sys.argv[3:] if f.endswith(f"/{ID}/plugin.json"))
del sys.argv[1:]


class Portable(unittest.TestCase):
    def test_verify(self):
        folder = tempfile.mkdtemp(dir=os.environ.get("TEST_TMPDIR"))
        env = dict(os.environ, HOME=folder, NETCL_CACHE_DIR=os.path.join(folder, "netcl-cache"),
                   POCL_CACHE_DIR=os.path.join(folder, "pocl-cache"))
        extent = [] if os.environ.get("NETCL_TEST_EVERY") else ["--quick"]
        done = subprocess.run([APP, "plugins", "verify", PLUGIN, "--device", "cpu:0", "--timeout", "300", "--json",
                               *extent], env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, universal_newlines=True)
        document = json.loads(done.stdout)
        checks = document.get("checks", [document])
        failed = [row for row in checks if not row.get("passed")]
        self.assertEqual((done.returncode, failed, document.get("not_run")), (0, [], []), done.stderr)
        print(done.stdout)


if __name__ == "__main__":
    unittest.main()
