"""Plugins from outside, from the archive alone: a kernel set made of a vendor's library, a transport
over sockets, and plugins that another compiler has built."""

import os
import shutil
import unittest

from tests.dist import unpacked


class OutsidePlugins(unpacked.Unpacked):
    def example(self, name):
        return os.path.join(self.prefix, "share/netcl/examples/plugins", name)

    def refused_after(self, folder, file, words, others):
        """`make check` must fail once `words` of a file are `others`."""
        path = os.path.join(folder, file)
        with open(path) as stream:
            text = stream.read()
        self.assertIn(words, text)
        with open(path, "w") as stream:
            stream.write(text.replace(words, others))
        done = self.run_command("make", "check", cwd=folder)
        with open(path, "w") as stream:
            stream.write(text)
        self.assertNotEqual(done.returncode, 0, done.stdout)
        self.assertNotIn("check: passed", done.stdout)

    def test_clblast(self):
        folder = self.example("clblast")
        self.assertIn("check: passed", self.must("make", "check", cwd=folder))
        exports = self.must("nm", "-D", "--defined-only",
                            os.path.join(folder, "build/clblast/libclblast_kernels.so")).split()
        self.assertEqual(exports[2:], ["netcl_plugin_open_v1"])
        # Left to itself netcl takes its own kernels on a processor: CLBlast is made for GPUs.
        why = ("plugins", "why", "--op", "matmul", "--shape", "64,64,64", "--device", "cpu:0", "--plugin-path",
               os.path.join(folder, "build"))
        self.assertIn("able  clblast/gemm", self.must(self.app, *why))
        self.assertIn("chosen  clblast/gemm", self.must(self.app, *why, "--kernels", "matmul=clblast"))
        self.refused_after(folder, "clblast.cc", "n, k, 1.0f, buffer(call.in[0])", "n, k, 1.001f, buffer(call.in[0])")

    def test_tcp_transport(self):
        folder = self.example("tcp_transport")
        self.assertIn("check: passed", self.must("make", "check", cwd=folder))
        # Three ranks, so that a rank listens and connects.
        text = self.must(self.app, "bench", "allreduce", "--transport", "tcp", "--plugin-path",
                         os.path.join(folder, "build"), "--devices", "cpu:0/3", "--bytes", "8,1000000", "--repeats", "2",
                         "--json")
        self.assertEqual(text.count('"correct": true'), 2, text)
        self.refused_after(folder, "interconnect.cc", "buffers_[rank].data() + *received",
                           "buffers_[rank].data() + *received / 2")

    def test_another_compiler(self):
        self.assertIsNotNone(shutil.which("clang++"), "third_party/install_deps.sh installs clang")
        self.must(self.app, "plugins", "new", "layer", "by_clang")
        folder = os.path.join(self.place, "by_clang")
        made = self.must("make", "check", "CXX=clang++", "NETCL_APP=" + self.app, cwd=folder)
        self.assertIn("check: passed", made)
        comment = self.must("readelf", "-p", ".comment", os.path.join(folder, "build/by_clang/libby_clang.so"))
        self.assertIn("clang", comment)


if __name__ == "__main__":
    unittest.main()
