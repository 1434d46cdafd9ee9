"""netcl-app plugins verify on plugins of this tree, which must pass all checks.

usage: plugins_test.py NETCL_APP ID...
"""

import json
import os
import subprocess
import sys
import tempfile
import unittest

RUNFILES = os.path.join(os.environ["TEST_SRCDIR"], os.environ["TEST_WORKSPACE"])
APP = os.path.join(RUNFILES, sys.argv[1])
IDS = sys.argv[2:]
del sys.argv[1:]


class Plugins(unittest.TestCase):
    def test_pass(self):
        folder = tempfile.mkdtemp(dir=os.environ.get("TEST_TMPDIR"))
        env = dict(os.environ, HOME=folder, NETCL_CACHE_DIR=os.path.join(folder, "netcl-cache"),
                   POCL_CACHE_DIR=os.path.join(folder, "pocl-cache"))
        # The real directories: runfiles are links, and a plugin that leads elsewhere is refused.
        plugins = os.path.join(os.path.dirname(os.path.dirname(os.path.realpath(APP))), "plugins/dir")
        for plugin in IDS:
            with self.subTest(plugin=plugin):
                done = subprocess.run([APP, "plugins", "verify", os.path.join(plugins, plugin), "--json", "--quick"],
                                      env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, universal_newlines=True)
                document = json.loads(done.stdout)
                failed = [row for row in document.get("checks", [document]) if not row.get("passed")]
                self.assertEqual((done.returncode, failed, document.get("not_run")), (0, [], []), done.stderr)


if __name__ == "__main__":
    unittest.main()
