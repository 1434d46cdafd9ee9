"""The portable parts of a set for GPUs, on this machine's CPU: all of `plugins verify`, every variant
and every value of every tunable in every case of its ops, with a manifest that matches any device.

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
        done = subprocess.run([APP, "plugins", "verify", PLUGIN, "--device", "cpu:0", "--timeout", "300", "--json"],
                              env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, universal_newlines=True)
        document = json.loads(done.stdout)
        checks = document.get("checks", [document])
        failed = [row for row in checks if not row.get("passed")]
        self.assertEqual((done.returncode, failed, document.get("not_run")), (0, [], []), done.stderr)
        print(done.stdout)


if __name__ == "__main__":
    unittest.main()
