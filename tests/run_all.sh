#!/usr/bin/env bash
# Installs what is missing, builds everything, runs every test.
#
# The last line is "N passed, N failed": Bazel test targets, as the build events count them. A test
# that could not be built or did not run counts as failed. Exit status: 0 only if tests ran and none
# failed. Logs of failed tests are shown, each cut to its last lines. Further arguments go to
# `bazel test`. NETCL_KEEP_BAZEL=1 keeps Bazel's server, which is stopped otherwise.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

readonly LOG_LINES=150

work=$(mktemp -d)
finish() {
  status=$?
  trap - EXIT
  if [ "${NETCL_KEEP_BAZEL:-0}" != 1 ]; then bazel shutdown >/dev/null 2>&1 || true; fi
  rm -rf "$work"
  exit "$status"
}
trap finish EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

# Bazel keeps its outputs under the home directory; some CI machines set none.
if [ -z "${HOME:-}" ] || [ ! -w "${HOME:-/nonexistent}" ]; then
  HOME=$(getent passwd "$(id -u)" | cut -d: -f6 || true)
  if [ -z "$HOME" ] || [ ! -w "$HOME" ]; then HOME="${TMPDIR:-/tmp}/netcl-home-$(id -u)"; fi
  mkdir -p "$HOME"
fi
export HOME
export USER="${USER:-$(id -un 2>/dev/null || id -u)}"

echo "== dependencies"
bash third_party/install_deps.sh

quiet=(--noshow_progress --noshow_loading_progress --color=no --curses=no)

echo "== build"
built=0
bazel build "${quiet[@]}" --keep_going //... >"$work/build.log" 2>&1 || built=$?
if [ "$built" -eq 0 ]; then
  tail -n 5 "$work/build.log"
else
  echo "the build failed with status $built; the last lines of its output:"
  tail -n "$LOG_LINES" "$work/build.log"
fi

echo "== test"
tested=0
bazel test "${quiet[@]}" --keep_going --test_output=summary --test_summary=terse \
  --build_event_json_file="$work/events.json" "$@" //... >"$work/test.log" 2>&1 || tested=$?
if [ "$tested" -ne 0 ]; then
  echo "bazel test ended with status $tested; the last lines of its output:"
  tail -n 60 "$work/test.log"
fi

# Reads the build events; prints the failed tests' logs and, last, the counts.
counted=0
python3 tests/count_tests.py --log-lines "$LOG_LINES" "$work/events.json" || counted=$?
if [ "$built" -ne 0 ] || [ "$tested" -ne 0 ] || [ "$counted" -ne 0 ]; then exit 1; fi
