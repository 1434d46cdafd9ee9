#!/usr/bin/env bash
# Runs the lint over the source tree that this test was built from: WORKSPACE among the runfiles is a
# link that leads there. The test reads files that are not its inputs, so Bazel runs it every time.
set -euo pipefail
exec python3 -B tests/lint/lint.py "$(dirname "$(realpath WORKSPACE)")"
