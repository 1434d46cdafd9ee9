#!/usr/bin/env bash
# Trains on PoCL and Intel's CPU runtime in one job: a third vendor, on any x86-64 machine.
#
#   tests/mixed_vendors_intel.sh [--keep DIR]
#
# Intel's runtime comes from PyPI (packages intel-opencl-rt, intel-cmplr-lib-rt, tbb and what they
# need; 280 MB) and is installed nowhere: its libraries are unpacked into one directory, where they
# find each other, and an ICD file names libintelocl.so there. Its own copy of the ICD loader is left
# out. --keep DIR keeps the unpacked runtime in DIR and uses it again. Skips, with exit status 0 and
# a reason, where PyPI cannot be reached.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
runtime=$work/intel
while [ $# -gt 0 ]; do
  case $1 in
    -h | --help)
      sed -n '2,/^set -/{/^set -/d;s/^# \{0,1\}//;p}' "${BASH_SOURCE[0]}"
      exit 0
      ;;
    --keep)
      [ $# -ge 2 ] || { echo "--keep needs a directory" >&2; exit 2; }
      mkdir -p "$2"
      runtime=$(cd "$2" && pwd)
      shift 2
      ;;
    *)
      echo "unknown argument '$1'; see --help" >&2
      exit 2
      ;;
  esac
done

if [ ! -e "$runtime/lib/libintelocl.so" ]; then
  if ! python3 -m pip --version >/dev/null 2>&1; then
    echo "skipped: pip is missing (package python3-pip)"
    exit 0
  fi
  if ! python3 -m pip download -q --only-binary :all: -d "$work/wheels" \
    intel-opencl-rt intel-cmplr-lib-rt >"$work/pip.log" 2>&1; then
    echo "skipped: Intel's runtime cannot be downloaded: $(tail -n 1 "$work/pip.log")"
    exit 0
  fi
  mkdir -p "$runtime/lib"
  for wheel in "$work"/wheels/*.whl; do
    python3 -m zipfile -e "$wheel" "$work/unpacked"
  done
  cp -r "$work"/unpacked/*.data/data/lib/. "$runtime/lib/"
  rm -f "$runtime"/lib/libOpenCL.so*
  rm -rf "$work/unpacked" "$work/wheels"
fi

echo "Intel's runtime: $(basename "$(readlink -f "$runtime/lib/libintelocl.so")")"
bazel test --noshow_progress --cache_test_results=no --test_output=all \
  --test_env=NETCL_TEST_ICDS="intel=$runtime/lib/libintelocl.so" //tests/apps:mixed_vendors_test
