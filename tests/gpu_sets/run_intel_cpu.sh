#!/usr/bin/env bash
# The kernel set for Intel's GPUs on Intel's CPU runtime, which has its sub-groups and block reads.
#
#   tests/gpu_sets/run_intel_cpu.sh DIR
#
# DIR is the unpacked runtime that `tests/mixed_vendors_intel.sh --keep DIR` has left.
set -euo pipefail
[ $# -eq 1 ] && [ "${1#-}" = "$1" ] || { sed -n '2,6{s/^# \{0,1\}//;p}' "${BASH_SOURCE[0]}"; exit 2; }
library=$(cd "$1" && pwd)/lib/libintelocl.so
[ -e "$library" ] || { echo "no $library; tests/mixed_vendors_intel.sh --keep $1 brings it" >&2; exit 2; }
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

bazel build --noshow_progress //apps:netcl-app //tests/gpu_sets:portable
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir "$work/vendors"
echo "$library" >"$work/vendors/intel.icd"
export OCL_ICD_VENDORS="$work/vendors" NETCL_CACHE_DIR="$work/cache" XDG_DATA_HOME="$work/data"
bazel-bin/apps/netcl-app devices
bazel-bin/apps/netcl-app plugins verify bazel-bin/tests/gpu_sets/portable/intel --device cpu:0 --timeout 300
