"""Every lint rule fails on a planted violation and passes on what it allows."""

import os
import tempfile
import unittest

import lint


class LintRulesTest(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)

    def problems(self, rule):
        return list(rule(self.folder.name, lint.source_files(self.folder.name)))

    def put(self, path, text):
        full = os.path.join(self.folder.name, path)
        os.makedirs(os.path.dirname(full), exist_ok=True)
        with open(full, "w", encoding="utf-8") as file:
            file.write(text)

    def expect(self, rule, bad, good, words):
        """`bad` and `good`: lists of (path, text)."""
        for path, text in good:
            self.put(path, text)
        self.assertEqual(self.problems(rule), [])
        for path, text in bad:
            self.put(path, text)
            found = self.problems(rule)
            self.assertEqual(len(found), 1, (path, text, found))
            self.assertTrue(found[0].startswith(path + ":"), found)
            self.assertIn(words, found[0])
            os.remove(os.path.join(self.folder.name, path))

    def test_arrows(self):
        include = '#include "{}"\n'.format
        good = [("core/cl/a.h", include("core/base/error.h")), ("core/nn/a.h", include("core/optim/o.h")),
                ("core/ops/reference/a.h", include("core/ops/op.h")), ("apps/a.cc", include("core/nn/a.h")),
                ("plugins/pack/a.cc", include("core/abi/netcl_plugin.h") + include("plugins/pack/a.h")),
                ("plugins/transport/host/a.cc", include("plugins/transport/a.h")),
                ("tests/a_test.cc", include("plugins/pack/a.h"))]
        for path, target in [("core/base/x.h", "core/cl/a.h"), ("core/ops/x.cc", "core/nn/a.h"),
                             ("core/collective/x.cc", "core/cl/a.h"), ("core/runtime/x.cc", "core/distributed/a.h"),
                             ("core/graph/x.cc", "core/autograd/a.h"), ("core/new/x.cc", "core/base/error.h"),
                             ("core/nn/x.cc", "plugins/pack/a.h"), ("apps/x.cc", "plugins/pack/a.h"),
                             ("core/nn/x.cc", "apps/a.h"), ("core/nn/x.cc", "tests/a.h"),
                             ("plugins/pack/x.cc", "core/base/error.h"),
                             ("plugins/transport/p2p/x.cc", "plugins/transport/host/run.h"),
                             ("plugins/kernels/x/x.cc", "plugins/transport/a.h"),
                             ("plugins/pack/x.cc", "plugins/transport/host/run.h")]:
            with self.subTest(path=path, target=target):
                self.expect(lint.check_arrows, [(path, include(target))], good, "includes " + target)

    def test_plugin_names(self):
        good = [("plugins/kernels/acme/BUILD", 'netcl_plugin(\n    name = "acme",\n    id = "acme",\n)\n'),
                ("core/a.cc", 'f("acmes"); // the plugin "acme"\n'), ("tests/a.cc", 'load("acme");\n'),
                ("apps/BUILD", 'data = ["//plugins:dir"]\n'),
                ("core/BUILD", 'packages = ["//plugins/..."]\n')]
        self.expect(lint.check_plugin_names, [("core/nn/x.cc", 'host.load("acme");\n'), ("apps/x.cc", 'x = {"acme"};\n')],
                    good, 'names the plugin "acme"')
        self.expect(lint.check_plugin_names, [("apps/x/BUILD", 'data = ["//plugins/kernels/acme"]\n')], good,
                    "only //plugins:dir")

    def test_sizes(self):
        good = [("core/a.cc", "\n" * 600), ("core/a.h", "\n" * 200), ("tests/a_test.cc", "\n" * 800),
                ("kernels/generic/a.cl", "\n" * 300), ("core/abi/netcl_plugin.h", "\n" * 400)]
        for path, count in [("core/x.cc", 601), ("core/x.h", 201), ("tests/x_test.cc", 801),
                            ("kernels/generic/x.cl", 301), ("plugins/p/x.h", 201)]:
            with self.subTest(path=path):
                self.expect(lint.check_sizes, [(path, "\n" * count)], good, f"{count} lines; at most {count - 1}")

    def test_guards(self):
        guard = "// words\n#ifndef {0}\n#define {0}\n#endif\n".format
        good = [("core/nn/a_b.h", guard("NETCL_CORE_NN_A_B_H_")), ("core/abi/p.hpp", guard("NETCL_CORE_ABI_P_HPP_"))]
        self.expect(lint.check_guards, [("core/nn/x.h", guard("NETCL_X_H_")), ("core/nn/x.h", "#pragma once\n"),
                                        ("core/nn/x.h", ""), ("core/nn/x.h", "#ifndef NETCL_CORE_NN_X_H_\n")],
                    good, "NETCL_CORE_NN_X_H_")

    def test_using(self):
        self.expect(lint.check_using, [("core/x.cc", "using namespace std;\n")],
                    [("core/a.cc", "using std::string; // no using namespace\nnamespace fs = std::filesystem;\n")],
                    "name what is used")

    def test_kernels(self):
        good = [("kernels/acme/a.cl", "// words\n__kernel void matmul_acme_tile(int a) {}\n"
                                      "__kernel __attribute__((reqd_work_group_size(16, 16, 1))) void\nadd_acme_x(int b) {}\n"
                                      "void inner(int c) {}\n")]
        self.expect(lint.check_kernels, [
            ("kernels/acme/x.cl", "// words\n__kernel void matmul(int a) {}\n"),
            ("kernels/acme/x.cl", "// words\n__kernel void matmul_generic_tile(int a) {}\n"),
            ("kernels/acme/x.cl", "// words\nkernel void Matmul_acme_tile(int a) {}\n"),
            ("kernels/acme/x.cl", "// words\n__kernel __attribute__((reqd_work_group_size(4, 4, 1))) void tile(int a) {}\n"),
        ], good, "expected <op>_acme_<idea>")
        self.expect(lint.check_kernels, [("kernels/acme/x.cl", "__kernel void a_acme_b() {}\n")], good,
                    "begins with a comment")

    def test_links(self):
        good = [("core/README.md", "[a](nn/b.md) [c](https://example.org/x) [d](#here) [e](../README.md#top)\n"
                                   "```\n[code](nowhere.md)\n```\n"), ("core/nn/b.md", ""), ("README.md", "")]
        self.expect(lint.check_links, [("core/X.md", "see [a](nowhere.md)\n"), ("core/X.md", "[a](nn/c.md#b)\n")], good,
                    "leads nowhere")

    def test_examples(self):
        good = [("tests/x.json", "{}\n"), ("core/README.md", "<!-- from tests/x.json -->\n```json\n{}\n```\n")]
        self.expect(lint.check_examples, [
            ("core/X.md", "a\n\n<!-- from tests/x.json -->\n```json\n{ }\n```\n"),
            ("core/X.md", "<!-- from tests/gone.json -->\n```json\n{}\n```\n"),
        ], good, "the example differs from tests/")

    def test_words(self):
        good = [("core/a.cc", "// a todo list at /path/to/x, bin/" + "work/x\n")]
        mark, machine = "TO" + "DO", "/" + "home/me/x"
        self.expect(lint.check_words, [("core/x.cc", f"// {mark}: later\n"), ("core/X.md", f"{mark}\n")], good, "unfinished")
        self.expect(lint.check_words, [("core/x.cc", f'f("{machine}");\n'), ("core/x.sh", f"cd {machine}\n")], good,
                    "a path of one machine")

    def test_every_rule_is_tested_and_listed(self):
        rules = {name for name in dir(lint) if name.startswith("check_")}
        self.assertEqual(rules, {rule.__name__ for rule in lint.RULES})
        with open(__file__, encoding="utf-8") as file:
            text = file.read()
        for name in rules:
            self.assertIn("lint." + name, text)

    def test_an_empty_tree_is_no_success(self):
        self.assertEqual(lint.main([self.folder.name]), 2)


if __name__ == "__main__":
    unittest.main()
