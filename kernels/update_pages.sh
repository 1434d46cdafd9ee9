#!/bin/bash
# Writes the op pages at the end of kernels/README.md from the op table.
set -euo pipefail
cd "$(dirname "$0")/.."
bazel build //tests/ops:op_pages
tests/ops/op_pages_test.sh --update kernels/README.md bazel-bin/tests/ops/op_pages \
  plugins/kernels/generic/*.json
