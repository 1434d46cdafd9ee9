"""A kernel set for tests of tuning: relu in one variant whose settings say how much work it wastes
(WORK) and what else is wrong with it (MODE: 0 nothing, 1 its result, 2 it ends its process, 3 it
never ends)."""

import json
import os
import shutil

from tests.apps import netcl_cli

KERNEL = """// relu with planted faults; n elements.
__kernel void relu_tuned_steps(__global const float* x, __global float* y, const int n) {
  const int i = (int)get_global_id(0);
  if (i >= n) return;
#if MODE == 2
  *(volatile __global int*)0 = 1;
#endif
#if MODE == 3
  volatile int on = 1;
  while (on) {
  }
#endif
  float wasted = 0;
  for (int k = 0; k < WORK; ++k) wasted += sin(x[i] + k);
  y[i] = wasted == 12345.678f ? 1 : (x[i] > 0 ? x[i] : 0);
#if MODE == 1
  if (i == n / 2) y[i] += 1;
#endif
}
"""
VARIANTS = {"ops": {"relu": [{
    "id": "steps",
    "when": "MODE == 0 || WORK == 64",
    "tunables": {"MODE": {"values": [0, 1, 2, 3], "default": "0"},
                 "WORK": {"values": [1, 8, 64], "default": "64"}},
    "launches": [{"sources": ["relu.cl"], "entry": "relu_tuned_steps",
                  "defines": {"MODE": "${MODE}", "WORK": "${WORK}"}, "options": "-cl-std=CL1.2",
                  "args": ["in0", "out0", "i32:in0_n"], "global": ["ceil_div(in0_n, 64) * 64"],
                  "local": [64]}]}]}}
MANIFEST = {"manifest": "netcl-plugin/1", "id": "tuned_pack", "version": "0.1.0", "kinds": ["kernels"],
            "library": {"linux-x86_64": "libtuned_pack.so"}, "abi": {"major": 0, "minor": 4},
            "provides": [{"op": "relu", "dtypes": ["f32"], "match": [{"type": "cpu"}]}],
            "data": {"variants": "variants.json", "tuned": ["tuned/*.jsonl"]}}


def write(folder):
    """Writes the set below `folder`; returns the directory for --plugin-path."""
    directory = os.path.join(folder, "packs", "tuned_pack")
    os.makedirs(os.path.join(directory, "tuned"))
    # The reader of sets that are pure data is the same object in all of them.
    reader = os.path.join(netcl_cli.plugins_dir(), "generic", "libgeneric.so")
    shutil.copyfile(reader, os.path.join(directory, "libtuned_pack.so"))
    for name, text in (("relu.cl", KERNEL), ("variants.json", json.dumps(VARIANTS)),
                       ("plugin.json", json.dumps(MANIFEST))):
        with open(os.path.join(directory, name), "w") as stream:
            stream.write(text)
    return os.path.dirname(directory)
