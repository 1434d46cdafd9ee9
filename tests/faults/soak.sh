#!/bin/sh
# Kills a random worker every five seconds for MINUTES (default 10) and compares every loss and the
# last checkpoint with those of an undisturbed run of as many steps.
cd "$(dirname "$0")/../.." || exit 1
exec bazel run //tests/faults:soak -- "${1:-10}" "${2:-1}"
