"""What tests of the archive share: it is unpacked, into a path with a space, and its programs run as on
another machine, with nothing of the build."""

import os
import subprocess
import sys
import tarfile
import tempfile
import unittest

ARCHIVE = os.path.join(os.environ["TEST_SRCDIR"], os.environ["TEST_WORKSPACE"], sys.argv.pop())


class Unpacked(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.mkdtemp(dir=os.environ.get("TEST_TMPDIR"))
        cls.prefix = os.path.join(cls.folder, "netcl 1")
        with tarfile.open(ARCHIVE) as archive:
            archive.extractall(cls.prefix)
        cls.app = os.path.join(cls.prefix, "bin/netcl-app")
        keep = {k: v for k, v in os.environ.items() if not k.startswith("NETCL_") and k != "RUNFILES_DIR"}
        cls.env = dict(
            keep,
            HOME=cls.folder,
            NETCL_CACHE_DIR=os.path.join(cls.folder, "netcl-cache"),
            POCL_CACHE_DIR=os.path.join(cls.folder, "pocl-cache"),
        )

    def setUp(self):
        self.place = tempfile.mkdtemp(dir=self.folder)

    def run_command(self, *command, cwd=None, env=None):
        return subprocess.run(
            command, env=dict(self.env, **(env or {})), cwd=cwd or self.place, stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT, universal_newlines=True, timeout=300)

    def must(self, *command, **options):
        done = self.run_command(*command, **options)
        self.assertEqual(done.returncode, 0, "%s\n%s" % (command, done.stdout))
        return done.stdout
