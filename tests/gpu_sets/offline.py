"""What the offline compiles share: the programs that a set plans for a device which is not here, each
through a compiler's command line.

NETCL_TEST_EVERY=1, by hand: every two settings of a kernel together.

usage of the tests: TEST.py WRITE_PROGRAMS FILE...     FILE: those of the plugin
"""

import concurrent.futures
import json
import os
import subprocess
import sys
import tempfile
import unittest

WRITE_PROGRAMS = os.path.realpath(sys.argv[1])
FILES = sys.argv[2:]
TOGETHER = "2" if os.environ.get("NETCL_TEST_EVERY") else "1"  # by hand: four times as many programs
del sys.argv[1:]


def plugin_directory(folder):
    """The plugin, put together as plugins_dir() would."""
    for f in FILES:
        name = "plugin.json" if f.endswith("manifest.json") else os.path.basename(f)
        with open(f, "rb") as source, open(os.path.join(folder, name), "wb") as target:
            target.write(source.read())
    return folder


class Offline(unittest.TestCase):
    """Tests of a set derive from it."""

    def programs(self, device):
        """[(path, build options, first line)] of all programs planned for the device."""
        folder = tempfile.mkdtemp(dir=os.environ.get("TEST_TMPDIR"))
        description = os.path.join(folder, "device.json")
        with open(description, "w") as out:
            json.dump(device, out)
        plugin = os.path.join(folder, "plugin")
        os.mkdir(plugin)
        done = subprocess.run([WRITE_PROGRAMS, "--plugin=" + plugin_directory(plugin), "--device=" + description,
                               "--out=" + os.path.join(folder, "programs"), "--together=" + TOGETHER],
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, universal_newlines=True)
        self.assertEqual(done.returncode, 0, done.stdout)
        print(device["name"] + ": " + done.stdout.strip())
        found = []
        for name in sorted(os.listdir(os.path.join(folder, "programs"))):
            path = os.path.join(folder, "programs", name)
            with open(path) as text:
                first = text.readline().strip()
            found.append((path, first.rsplit(": ", 1)[1].split(), first))
        self.assertTrue(found)
        return found

    def compile_all(self, programs, command):
        """Runs command(path, options) for each. Returns {path: output}; failures are this test's."""
        def one(program):
            path, options, first = program
            done = subprocess.run(command(path, options), stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                                  universal_newlines=True, cwd=os.path.dirname(path))
            return path, first, done.returncode, done.stdout

        outputs, failed = {}, []
        with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
            for path, first, status, output in pool.map(one, programs):
                outputs[path] = output
                if status != 0:
                    failed.append(first + "\n" + output[-2000:])
        self.assertEqual(failed, [], f"{len(failed)} of {len(programs)}; the first:\n" + "\n".join(failed[:3]))
        return outputs
