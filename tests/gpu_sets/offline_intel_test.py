"""Every variant of the set `intel` through Intel's offline compiler, for several devices."""

import os
import shutil
import unittest

import offline

EXTENSIONS = ("cl_khr_fp16 cl_khr_subgroups cl_intel_subgroups cl_intel_subgroups_short "
              "cl_intel_required_subgroup_size")
MATRICES = " cl_intel_subgroup_matrix_multiply_accumulate"
# Devices: smallest sub-group, extensions.
DEVICES = {"skl": (8, EXTENSIONS), "tgllp": (8, EXTENSIONS), "dg2": (8, EXTENSIONS + MATRICES),
           "pvc": (16, EXTENSIONS + MATRICES)}
# Debian's compiler has these functions, its headers do not.
MATRIX_HEADER = "#define cl_intel_subgroup_matrix_multiply_accumulate 1\n" + "".join(
    f"float8 __attribute__((overloadable)) intel_sub_group_{t}_{t}_matrix_mad_k16({a} a, int8 b, float8 acc);\n"
    for t in ("f16", "bf16") for a in ("int8", "short8"))


def instructions(folder, word):
    """How often the word is in the assembler text that the compiler has left."""
    count = 0
    for name in os.listdir(folder):
        if name.endswith(".asm"):
            with open(os.path.join(folder, name), errors="replace") as text:
                count += text.read().count(word)
    return count


class OfflineIntel(offline.Offline):
    def compile_for(self, name):
        if shutil.which("ocloc") is None:
            self.skipTest("Intel's offline compiler is not installed (ocloc, package intel-opencl-icd)")
        least, extensions = DEVICES[name]
        device = {"name": name, "vendor": "intel", "type": "gpu", "compute_units": 96, "memory_bytes": 1 << 33,
                  "max_alloc_bytes": 1 << 32, "local_mem_bytes": 65536, "max_work_group": 512,
                  "vector_width_float": 1, "subgroup_min": least, "subgroup_max": 32, "base_align_bytes": 128,
                  "extensions": extensions}
        programs = self.programs(device)
        units = set()
        for path, _, first in programs:
            if MATRICES in extensions and "_matrix: " in first:
                units.add(path)
                with open(path, "r+") as text:
                    kernel = text.read()
                    text.seek(0)
                    text.write(MATRIX_HEADER + kernel)

        def command(path, options):
            dump = ["env", "IGC_ShaderDumpEnable=1", "IGC_DumpToCustomDir=" + path + ".dump"] if path in units else []
            return dump + ["ocloc", "compile", "-file", path, "-device", name, "-options", " ".join(options), "-out_dir",
                           path + ".out"]

        outputs = self.compile_all(programs, command)
        for path in outputs:
            self.assertTrue(os.listdir(path + ".out"), path)
        for path in units:
            self.assertTrue(instructions(path + ".dump", "dpas"), path)
        print(f"{name}: {len(programs)} programs, {len(units)} of them with matrix units")

    def test_skl(self):
        self.compile_for("skl")

    def test_tgllp(self):
        self.compile_for("tgllp")

    def test_dg2(self):
        self.compile_for("dg2")

    def test_pvc(self):
        self.compile_for("pvc")


if __name__ == "__main__":
    unittest.main()
