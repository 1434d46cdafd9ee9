#!/bin/bash
# Builds op_runner and the plugins and runs ONNX's node tests: tests/onnx/run.sh [--device=SELECTOR]
# [--only=TEXT] [--verbose]. PYTHON names a Python with the onnx package; without one the run is
# skipped with exit status 77.
set -euo pipefail
cd "$(dirname "$0")/../.."
python="${PYTHON:-python3}"
if ! "$python" -c 'import onnx' 2>/dev/null; then
  echo "skipped: $python has no onnx package (pip install onnx)"
  exit 77
fi
bazel build //tests/ops:op_runner //plugins:dir
exec "$python" tests/onnx/node_tests.py --runner=bazel-bin/tests/ops/op_runner \
  --plugins=bazel-bin/plugins/dir "$@"
