#!/usr/bin/env python3
"""Runs ONNX's published node tests for the ops that netcl also has, on a device.

The cases come with the onnx package, which a user installs himself; nothing of netcl needs it.
Every case is a model of one node with inputs and expected outputs. mapping.py turns the node into
requests to op_runner (tests/ops/op_runner.cc); all of a run's requests go to it in one batch.

  node_tests.py --runner=PATH --plugins=DIR [--device=SELECTOR] [--only=TEXT] [--verbose]

Last line: N passed, N failed, N skipped. Exit status: 1 for failures, 77 without the package.
"""
import argparse
import collections
import contextlib
import io
import json
import os
import subprocess
import sys
import tempfile
import warnings

# Largest error of an element, relative to it and to the largest of the expected values.
TOLERANCE = {"float32": (1e-3, 1e-6), "float16": (2e-3, 1e-3), "bfloat16": (1.6e-2, 8e-3)}
# Integers shorter than i32 are computed in i32.
WIDENED = {("uint8", "int32"), ("bool", "int32")}


def collect():
    """All published cases. Some of onnx's modules talk while they make them."""
    from onnx.backend.test.case import node
    with warnings.catch_warnings(), contextlib.redirect_stdout(io.StringIO()):
        warnings.simplefilter("ignore")
        try:
            return node.collect_testcases(None)
        except TypeError:  # older versions take no argument
            return node.collect_testcases()


def plan(tests, only):
    """Returns (cases with their results' names, skipped {name: reason}, cases of other ops)."""
    from case import Case, Skip
    from mapping import MAPPING
    planned, skipped, others = [], {}, 0
    for test in tests:
        nodes = test.model.graph.node if test.model is not None else []
        if len(nodes) != 1 or nodes[0].op_type not in MAPPING or only not in test.name:
            others += 1
            continue
        inputs, outputs = test.data_sets[0]
        case = Case(test.name, test.model, inputs, outputs)
        try:
            results = MAPPING[case.node.op_type](case)
            for k, name in enumerate(case.node.output):
                if name and (k >= len(results) or results[k] is None):
                    raise Skip(f"output {k} of {case.node.op_type}")
            planned.append((case, [r for r, o in zip(results, case.node.output) if o]))
        except Skip as reason:
            skipped[case.name] = str(reason)
    return planned, skipped, others


def run(args, planned):
    """One batch; returns op_runner's results and refusals."""
    import safetensors_file
    requests = [r for case, _ in planned for r in case.requests]
    tensors = {name: t for case, _ in planned for name, t in case.tensors.items()}
    with tempfile.TemporaryDirectory() as folder:
        path = {key: os.path.join(folder, key) for key in ("requests", "inputs", "outputs")}
        with open(path["requests"], "w", encoding="utf-8") as file:
            json.dump(requests, file)
        safetensors_file.write(path["inputs"], tensors)
        command = [args.runner, f"--plugins={args.plugins}"]
        command += [f"--{key}={value}" for key, value in path.items()]
        if args.device:
            command.append(f"--device={args.device}")
        if subprocess.run(command, check=False).returncode != 0:
            sys.exit("op_runner failed; its message is above")
        results, refusals = safetensors_file.read(path["outputs"])
        return {**tensors, **results}, refusals


def error_of(got, want):
    """None if they agree, else a text with the largest error."""
    import numpy as np
    from case import converted
    want = converted(want)
    if got.shape != want.shape:
        return f"shape {list(got.shape)}, expected {list(want.shape)}"
    types = (want.dtype.name, got.dtype.name)
    if types[0] != types[1] and types not in WIDENED:
        return f"type {types[1]}, expected {types[0]}"
    a, b = got.astype(np.float64), want.astype(np.float64)
    relative, absolute = TOLERANCE.get(types[0], (0, 0))
    finite = b[np.isfinite(b)]
    limit = absolute * max(1.0, np.abs(finite).max(initial=0.0))
    if np.allclose(a, b, rtol=relative, atol=limit, equal_nan=True):
        return None
    with np.errstate(invalid="ignore"):
        away = np.abs(a - b)
    strange = int(np.sum(~np.isclose(a, b, rtol=relative, atol=limit, equal_nan=True)))
    return f"{strange} of {a.size} elements, largest error {np.nanmax(away):.3g}"


def verdict(case, names, results, refusals):
    for request in case.requests:
        if request["name"] in refusals:
            return f"{request['op']} refused: {refusals[request['name']]}"
    outputs = [o for o in case.node.output if o]
    for output, name in zip(outputs, names):
        error = error_of(results[name], case.expected[output])
        if error:
            return f"output {output}: {error}"
    return None


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--runner", required=True)
    parser.add_argument("--plugins", required=True)
    parser.add_argument("--device", default="")
    parser.add_argument("--only", default="", help="cases whose name contains this")
    parser.add_argument("--verbose", action="store_true", help="also names what passed")
    args = parser.parse_args()
    try:
        import onnx
    except ImportError:
        print("skipped: this Python has no onnx package (pip install onnx)")
        return 77
    planned, skipped, others = plan(collect(), args.only)
    results, refusals = run(args, planned)
    failed = 0
    for case, names in planned:
        error = verdict(case, names, results, refusals)
        failed += error is not None
        if error:
            print(f"FAILED {case.name}: {error}")
        elif args.verbose:
            print(f"passed {case.name}: {', '.join(r['op'] for r in case.requests)}")
    reasons = collections.Counter(skipped.values())
    if args.verbose:
        for name, reason in skipped.items():
            print(f"skipped {name}: {reason}")
    for reason, count in sorted(reasons.items()):
        print(f"skipped {count}: {reason}")
    ops = {case.node.op_type for case, _ in planned}
    print(f"onnx {onnx.__version__}: {len(ops)} of its ops on "
          f"{args.device or 'the first device'}; int64 as i32, float64 as f32; {others} cases of "
          "other ops, of several nodes, or not asked for")
    print(f"{len(planned) - failed} passed, {failed} failed, {len(skipped)} skipped")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
