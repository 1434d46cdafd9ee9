#!/bin/sh
# Kills a random worker every five seconds for MINUTES (default 10) and compares the final loss with
# that of an undisturbed run.
cd "$(dirname "$0")/../.." || exit 1
exec bazel run //tests/faults:soak -- "${1:-10}" "${2:-1}"
