"""Every variant of the set `amd` through clang, for several processors; no device, no library."""

import re
import shutil
import unittest

import offline

# Processors, the work-items of their waves, and the first clang that knows them.
PROCESSORS = {"gfx906": (64, 10), "gfx90a": (64, 13), "gfx1030": (32, 12), "gfx942": (64, 18), "gfx1100": (32, 15)}
# The variant whose programs must use the matrix units.
UNITS = {"gfx90a": "mfma", "gfx942": "mfma", "gfx1100": "wmma"}
CLANGS = {19: "clang-19", 14: "clang-14"}


def clang_for(first):
    for version, name in sorted(CLANGS.items()):
        if version >= first and shutil.which(name):
            return name
    return None


class OfflineAmd(offline.Offline):
    def compile_for(self, processor):
        wave, first = PROCESSORS[processor]
        clang = clang_for(first)
        if clang is None:
            self.skipTest(f"{processor} needs clang of at least version {first}, such as package clang-19")
        device = {"name": processor, "arch": processor, "vendor": "amd", "type": "gpu", "compute_units": 60,
                  "memory_bytes": 1 << 34, "max_alloc_bytes": 1 << 32, "local_mem_bytes": 65536,
                  "max_work_group": 1024, "vector_width_float": 1, "subgroup_min": wave, "subgroup_max": wave,
                  "base_align_bytes": 128, "extensions": "cl_khr_fp16 cl_khr_fp64 cl_khr_subgroups"}
        programs = self.programs(device)

        def command(path, options):
            return [clang, "-x", "cl", *options, "-target", "amdgcn-amd-amdhsa", "-mcpu=" + processor, "-nogpulib",
                    "-Xclang", "-finclude-default-header", "-O2", "-S", path, "-o", path + ".s"]

        self.compile_all(programs, command)
        spilled, units = [], 0
        for path, _, first_line in programs:
            with open(path + ".s") as text:
                assembler = text.read()
            if re.search(r"vgpr_spill_count: *[1-9]", assembler):
                spilled.append(first_line)
            unit = UNITS.get(processor, "none")
            if f" {unit}" in first_line:
                units += 1
                self.assertIn("v_" + unit, assembler, first_line)
        print(f"{processor} by {clang}: {len(programs)} programs, {units} of them with matrix units; "
              f"{len(spilled)} spill registers")
        for line in spilled:
            print("  " + line)

    def test_gfx906(self):
        self.compile_for("gfx906")

    def test_gfx90a(self):
        self.compile_for("gfx90a")

    def test_gfx942(self):
        self.compile_for("gfx942")

    def test_gfx1030(self):
        self.compile_for("gfx1030")

    def test_gfx1100(self):
        self.compile_for("gfx1100")


if __name__ == "__main__":
    unittest.main()
