"""The archive runs wherever it is unpacked, with the system's OpenCL loader and nothing of the build."""

import json
import os
import re
import subprocess
import sys
import tarfile
import tempfile
import unittest

ARCHIVE = os.path.join(os.environ["TEST_SRCDIR"], os.environ["TEST_WORKSPACE"], sys.argv.pop())
# Debian 12 has glibc 2.36 and GCC 12; the archive must not ask for newer ones.
SYSTEM_LIBRARIES = {"ld-linux-x86-64.so.2", "libc.so.6", "libm.so.6", "libgcc_s.so.1", "libstdc++.so.6"}
NEWEST = {"GCC": (12,), "GLIBC": (2, 36), "GLIBCXX": (3, 4, 30), "CXXABI": (1, 3, 13)}
PLUGINS = ["amd", "attention", "conv", "cpu", "generic", "host", "intel", "models", "norm", "openblas", "p2p",
           "recurrent", "standard", "structure"]
GPU_SETS = {"amd", "intel"}  # they serve their vendor's GPUs alone
EXPECTED = [
    "bin/netcl-app",
    "include/netcl/netcl_base.hpp",
    "include/netcl/netcl_initialisers.hpp",
    "include/netcl/netcl_kernels.hpp",
    "include/netcl/netcl_names.hpp",
    "include/netcl/netcl_plugin.h",
    "include/netcl/netcl_plugin.hpp",
    "include/netcl/netcl_recipe.hpp",
    "include/netcl/netcl_transport.hpp",
    "include/netcl/netcl_variants.hpp",
    "lib/netcl/pack.so",
    "plugins/generic/plugin.json",
    "plugins/generic/variants.json",
    "plugins/host/plugin.json",
    "plugins/standard/plugin.json",
    "share/netcl/examples/LICENSE",
    "share/netcl/examples/README.md",
    "share/netcl/examples/cpp/lenet.cc",
    "share/netcl/examples/cpp/tutorial.cc",
    "share/netcl/examples/data/digits.csv.gz",
    "share/netcl/examples/data/friedman1.csv.gz",
    "share/netcl/examples/digits_mlp.json",
    "share/netcl/examples/plugins/README.md",
    "share/netcl/examples/plugins/clblast/clblast.cc",
    "share/netcl/examples/plugins/fused_layer/Makefile",
    "share/netcl/examples/plugins/fused_layer/fused_layer.cc",
    "share/netcl/examples/text_gpt_mini.json",
    "share/netcl/templates/layer/layer.cc",
]


class Dist(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.mkdtemp(dir=os.environ.get("TEST_TMPDIR"))
        cls.prefix = os.path.join(cls.folder, "elsewhere", "netcl 1")
        os.makedirs(cls.prefix)
        with tarfile.open(ARCHIVE) as archive:
            cls.members = archive.getmembers()
            archive.extractall(cls.prefix)
        cls.app = os.path.join(cls.prefix, "bin/netcl-app")
        names = [member.name for member in cls.members if member.isfile()]
        cls.programs = [n for n in names if n.startswith("bin/") or n.endswith(".so")]

    def run_app(self, *arguments):
        """Runs as on another machine: from another directory, without any of netcl's variables."""
        keep = {k: v for k, v in os.environ.items() if not k.startswith("NETCL_") and k != "RUNFILES_DIR"}
        keep.update(
            HOME=self.folder,
            NETCL_CACHE_DIR=os.path.join(self.folder, "netcl-cache"),
            POCL_CACHE_DIR=os.path.join(self.folder, "pocl-cache"),
        )
        done = subprocess.run(
            [self.app, *arguments], env=keep, cwd=self.folder, stdout=subprocess.PIPE,
            stderr=subprocess.PIPE, universal_newlines=True, timeout=250)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        return json.loads(done.stdout)

    def read_elf(self, option, name):
        command = ["readelf", option, os.path.join(self.prefix, name)]
        return subprocess.check_output(command, universal_newlines=True)

    def test_layout(self):
        names = [member.name for member in self.members]
        self.assertEqual(names, sorted(names))
        self.assertEqual({name.split("/")[0] for name in names}, {"bin", "include", "lib", "plugins", "share"})
        for name in EXPECTED:
            self.assertIn(name, names)

    def test_same_bytes_every_time(self):
        for member in self.members:
            self.assertEqual((member.mtime, member.uid, member.gid), (0, 0, 0), member.name)
            self.assertEqual((member.uname, member.gname), ("root", "root"), member.name)
            self.assertTrue(member.isfile() or member.isdir(), member.name)
            program = member.isdir() or member.name in self.programs
            self.assertEqual(member.mode, 0o755 if program else 0o644, member.name)
        with open(ARCHIVE, "rb") as stream:
            self.assertEqual(stream.read(10)[3:8], b"\0\0\0\0\0", "a name or time in gzip's header")

    def test_needed_libraries(self):
        self.assertEqual(len(self.programs), 2 + len(PLUGINS))  # netcl-app and the pack reader
        for name in self.programs:
            section = self.read_elf("-dW", name)
            allowed = set(SYSTEM_LIBRARIES)
            if name.startswith(("plugins/host/", "plugins/openblas/", "plugins/p2p/")):
                allowed.add("libOpenCL.so.1")
            self.assertLessEqual(set(re.findall(r"NEEDED.*\[(.+)\]", section)), allowed, name)
            self.assertNotRegex(section, "RPATH|RUNPATH", name)

    def test_versions_of_the_system(self):
        for name in self.programs:
            found = re.findall(r"Name: ([A-Z]+)_([0-9.]+)", self.read_elf("-VW", name))
            self.assertTrue(found, name)
            for kind, version in found:
                if kind in NEWEST:
                    numbers = tuple(int(part) for part in version.split("."))
                    self.assertLessEqual(numbers, NEWEST[kind], "%s needs %s_%s" % (name, kind, version))

    def test_devices_and_plugins(self):
        devices = self.run_app("devices", "--json")["devices"]
        self.assertTrue(any(device["type"] == "cpu" for device in devices), devices)
        plugins = self.run_app("plugins", "list", "--json")["plugins"]
        self.assertEqual(sorted(p["id"] for p in plugins), PLUGINS)
        vendors = {device["vendor"] for device in devices if device["type"] == "gpu"}
        for plugin in plugins:
            if plugin["id"] in GPU_SETS - vendors:
                self.assertEqual((plugin["state"], plugin["code"]), ("idle", "NPL-08"), plugin)
            else:
                self.assertEqual(plugin["state"], "serving", plugin)
            self.assertTrue(os.path.realpath(plugin["path"]).startswith(os.path.realpath(self.prefix)), plugin)

    def test_training(self):
        config = os.path.join(self.prefix, "share/netcl/examples/digits_mlp.json")
        result = self.run_app(
            "train", config, "--json", "--quiet", "--devices", "cpu:0/2", "--epochs", "3")
        self.assertEqual((result["stopped"], result["epochs"]), ("finished", 3))
        self.assertEqual([worker["samples"] > 0 for worker in result["workers"]], [True, True])
        self.assertGreaterEqual(result["metrics"]["accuracy"], 0.85)


if __name__ == "__main__":
    unittest.main()
