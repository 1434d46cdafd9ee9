#!/bin/bash
# The portable parts of the sets for GPUs on this machine's CPU: every case of their ops that they serve,
# every variant, against the double-precision reference.
#
# Arguments: the program of device_cases_test, the directory of the plugins, their ops.
set -euo pipefail
cases=$1
plugins=$2
shift 2
filter=$(printf '*Forward*/%s:' "$@")
"$cases" --plugins="$plugins" --device=cpu:0 --partial --gtest_filter="${filter%:}"
