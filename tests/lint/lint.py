"""Checks of the source tree that no compiler makes. tests/README.md lists the rules.

Every rule is a function (root, files) -> iterable of "path:line: words", listed in RULES; files are
paths relative to root. `lint.py ROOT` prints what is wrong and exits with 1 if anything is.
"""

import os
import re
import sys

TOP_LEVEL = ("apps", "core", "kernels", "plugins", "tests", "third_party")
ROOT_FILES = ("BUILD", "WORKSPACE", "README.md", ".bazelrc")
SKIPPED_FOLDERS = {"__pycache__", "data", "runs"}

# What each layer of core may include, beside itself. Nothing points back.
LAYERS = {
    "abi": "",
    "base": "abi",
    "cl": "abi base",
    "tensor": "abi base cl",
    "ops": "abi base cl tensor",
    "autograd": "abi base cl tensor ops",
    "graph": "abi base cl tensor ops",
    "optim": "abi base cl tensor ops autograd graph",
    "nn": "abi base cl tensor ops autograd graph optim",
    "collective": "abi base tensor",
    "runtime": "abi base cl tensor ops autograd graph optim nn collective",
    "verify": "abi base cl tensor ops autograd graph optim nn collective runtime",
    "data": "abi base cl tensor ops autograd graph optim nn collective runtime",
    "distributed": "abi base cl tensor ops autograd graph optim nn collective runtime data",
}

MAX_LINES, MAX_TEST_LINES, MAX_HEADER_LINES, MAX_KERNEL_LINES = 600, 800, 200, 300
# Types and vendors of devices, after which kernel sets may be called.
DEVICE_WORDS = {"cpu", "intel", "amd", "nvidia"}
LONG_HEADERS = {"core/abi/netcl_plugin.h", "core/abi/netcl_plugin.hpp"}  # the boundary, whole

CODE = (".cc", ".h", ".hpp")
HEADERS = (".h", ".hpp")
SIZED = CODE + (".cl", ".py", ".sh", ".bzl")
INCLUDE = re.compile(r'^\s*#\s*include\s+"([^"]+)"')
KERNEL = re.compile(r"(?:__kernel|\bkernel)\b[^;{(]*(?:\(\([^;{]*?\)\))?[^;{(]*?\bvoid\s+(\w+)\s*\(")
TEXT_OR_COMMENT = re.compile(r'"(?:[^"\\]|\\.)*"|//.*')
LINK = re.compile(r"\[[^\]\n]*\]\(([^)\s]+)\)")
UNFINISHED = re.compile(r"\b(" + "|".join(["TO" + "DO", "FIX" + "ME", "XX" + "X"]) + r")\b")
# Folders of the machine on which a file was written; examples say /path/to.
MACHINE_PATH = re.compile(r"(?<![\w.$}])/(?:" + "|".join(["wo" + "rk", "ro" + "ot", "ho" + "me"]) + r")/\w")


def read(root, path):
    with open(os.path.join(root, path), encoding="utf-8", errors="replace") as file:
        return file.read()


def source_files(root):
    """Paths of all files that the rules look at, sorted."""
    found = [f for f in ROOT_FILES if os.path.isfile(os.path.join(root, f))]
    for top in TOP_LEVEL:
        for folder, folders, names in os.walk(os.path.join(root, top)):
            folders[:] = [d for d in folders if not (d in SKIPPED_FOLDERS and folder.startswith(
                os.path.join(root, "apps"))) and d != "__pycache__"]
            relative = os.path.relpath(folder, root)
            found += [os.path.join(relative, name) for name in names]
    return sorted(found)


def lines_of(root, files, ends):
    for path in files:
        if path.endswith(ends):
            for number, line in enumerate(read(root, path).splitlines(), 1):
                yield path, number, line


def without_comment(line):
    return TEXT_OR_COMMENT.sub(lambda m: m.group() if m.group()[0] == '"' else "", line)


def check_arrows(root, files):
    """Includes follow the layers."""
    for path, number, line in lines_of(root, files, CODE):
        match = INCLUDE.match(line)
        if not match or path.startswith("tests/"):
            continue
        target = match.group(1)
        wrong = arrow_problem(path, target)
        if wrong:
            yield f"{path}:{number}: includes {target}: {wrong}"


def arrow_problem(path, target):
    parts, wanted = path.split("/"), target.split("/")
    if target.startswith("tests/"):
        return "only tests include tests"
    if parts[0] == "plugins":
        home = "/".join(parts[:-1]) + "/"
        of_kind = wanted[:-1] == parts[:2]  # what plugins of a kind share
        inside = target.startswith(("core/abi/", home)) or of_kind or "/" not in target
        return None if inside else "a plugin includes core/abi, its own files and its kind's alone"
    if wanted[0] == "plugins":
        return "core and apps meet plugins through manifests"
    if parts[0] != "core" or "/" not in target:
        return None
    if wanted[0] != "core":
        return "core includes core alone"
    allowed = LAYERS.get(parts[1])
    if allowed is None:
        return f"core/{parts[1]} is not in the list of layers (tests/lint/lint.py)"
    if wanted[1] != parts[1] and wanted[1] not in allowed.split():
        return f"core/{parts[1]} may include {allowed or 'nothing'}"
    return None


def plugin_ids(root, files):
    ids = set()
    for path in files:
        if path.startswith("plugins/") and path.endswith("/BUILD"):
            ids.update(re.findall(r'^\s*id\s*=\s*"([^"]+)"', read(root, path), re.M))
    return ids


def check_plugin_names(root, files):
    """Core and apps name no plugin: neither its id as a text of code nor its target."""
    ids = plugin_ids(root, files) - DEVICE_WORDS
    for path, number, line in lines_of(root, files, CODE + ("BUILD",)):
        if not path.startswith(("core/", "apps/")):
            continue
        if path.endswith("BUILD"):
            if re.search(r'"//plugins/(?!\.\.\.)', line):
                yield f"{path}:{number}: depends on one plugin; only //plugins:dir may be named"
            continue
        for text in re.findall(r'"((?:[^"\\]|\\.)*)"', without_comment(line)):
            if text in ids:
                yield f'{path}:{number}: names the plugin "{text}"'


def check_sizes(root, files):
    """Files stay small enough to read."""
    for path in files:
        if not path.endswith(SIZED):
            continue
        count = len(read(root, path).splitlines())
        limit = MAX_TEST_LINES if path.startswith("tests/") else MAX_LINES
        if path.endswith(".cl"):
            limit = MAX_KERNEL_LINES
        elif path.endswith(HEADERS) and path not in LONG_HEADERS and path.startswith(("core/", "plugins/")):
            limit = MAX_HEADER_LINES
        if count > limit:
            yield f"{path}:1: {count} lines; at most {limit}"


def check_guards(root, files):
    """Headers carry the guard NETCL_<PATH>_H_."""
    for path in files:
        if not path.endswith(HEADERS):
            continue
        guard = "NETCL_" + re.sub(r"[^A-Za-z0-9]", "_", path).upper() + "_"
        text = read(root, path)
        first = re.search(r"^#\s*(\w+)\s*(\w*)", text, re.M)
        if not first or first.groups() != ("ifndef", guard) or f"#define {guard}" not in text:
            yield f"{path}:1: expected the include guard {guard}"


def check_using(root, files):
    """No `using namespace`: names are brought in one by one."""
    for path, number, line in lines_of(root, files, CODE):
        if re.search(r"\busing\s+namespace\b", without_comment(line)):
            yield f"{path}:{number}: `using namespace`; name what is used"


def check_kernels(root, files):
    """Kernels are <op>_<set>_<idea>, and .cl files say what they hold."""
    for path in files:
        if not path.endswith(".cl"):
            continue
        text = read(root, path)
        if not re.match(r"\s*(//|/\*)", text):
            yield f"{path}:1: a kernel file begins with a comment that says its contract"
        kernel_set = path.split("/")[-2]
        for match in KERNEL.finditer(text):
            number = text.count("\n", 0, match.start(1)) + 1
            if not re.fullmatch(rf"[a-z0-9_]+_{re.escape(kernel_set)}_[a-z0-9_]+", match.group(1)):
                yield f"{path}:{number}: kernel {match.group(1)}; expected <op>_{kernel_set}_<idea>"


def check_links(root, files):
    """Relative links of documents lead somewhere."""
    for path in files:
        if not path.endswith(".md"):
            continue
        fenced = False
        for number, line in enumerate(read(root, path).splitlines(), 1):
            if line.lstrip().startswith("```"):
                fenced = not fenced
            if fenced:
                continue
            for target in LINK.findall(line):
                if re.match(r"[a-z]+:|#", target):
                    continue
                file = target.split("#", 1)[0]
                if not os.path.exists(os.path.join(root, os.path.dirname(path), file)):
                    yield f"{path}:{number}: the link {target} leads nowhere"


def check_examples(root, files):
    """A fenced block after `<!-- from PATH -->` is that file, whole."""
    for path in files:
        if not path.endswith(".md"):
            continue
        text = read(root, path)
        for match in re.finditer(r"^<!-- from (\S+) -->\n```\w*\n(.*?)^```$", text, re.M | re.S):
            number = text.count("\n", 0, match.start()) + 1
            source = match.group(1)
            if not os.path.exists(os.path.join(root, source)) or read(root, source) != match.group(2):
                yield f"{path}:{number}: the example differs from {source}"


def check_words(root, files):
    """No marks of unfinished work, and no paths of the machine that wrote a file."""
    for path, number, line in lines_of(root, files, SIZED + ("BUILD", ".md", ".json", ".c", "WORKSPACE", ".bazelrc")):
        if UNFINISHED.search(line):
            yield f"{path}:{number}: a mark of unfinished work"
        if MACHINE_PATH.search(line):
            yield f"{path}:{number}: a path of one machine"


RULES = (check_arrows, check_plugin_names, check_sizes, check_guards, check_using, check_kernels, check_links,
         check_examples, check_words)


def main(argv):
    root = argv[0] if argv else "."
    files = source_files(root)
    if not any(f.startswith("core/") for f in files):
        print(f"lint: there is no source tree in {root}")
        return 2
    problems = [(rule, problem) for rule in RULES for problem in rule(root, files)]
    for rule, problem in problems:
        print(f"{problem}  [{rule.__name__}]")
    print(f"lint: {len(files)} files, {len(problems)} problems")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
