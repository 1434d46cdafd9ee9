#!/usr/bin/env bash
# Runs the unit and device tests under sanitizers.
#
#   tests/sanitizers.sh [asan|ubsan|tsan]... [-- TARGET...]
#
# Without a name all three run, one after the other. TARGETs default to every C++ test; whole-program
# tests (Python) are left out: they measure the built program, and their time limits are for an
# optimised one. Each lane builds the tests anew into its own output directory. The options and
# suppressions are those of tests/sanitizers/defaults.cc, so `bazel test --config=asan TARGET` does
# the same for one test. The last line is "N passed, N failed" over all lanes.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

lanes=()
targets=()
while [ $# -gt 0 ]; do
  case $1 in
    -h | --help)
      sed -n '2,/^set -/{/^set -/d;s/^# \{0,1\}//;p}' "${BASH_SOURCE[0]}"
      exit 0
      ;;
    asan | ubsan | tsan) lanes+=("$1") ;;
    --)
      shift
      targets=("$@")
      break
      ;;
    *)
      echo "sanitizers: unknown lane '$1'; there are asan, ubsan and tsan" >&2
      exit 2
      ;;
  esac
  shift
done
[ ${#lanes[@]} -gt 0 ] || lanes=(asan ubsan tsan)
[ ${#targets[@]} -gt 0 ] || targets=(//tests/...)

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

passed=0
failed=0
for lane in "${lanes[@]}"; do
  echo "== $lane"
  since=$SECONDS
  status=0
  bazel test "--config=$lane" --keep_going --build_tests_only --test_lang_filters=cc \
    --noshow_progress --color=no --test_output=errors --test_summary=terse \
    --build_event_json_file="$work/$lane.json" "${targets[@]}" >"$work/$lane.log" 2>&1 || status=$?
  counts=$(python3 tests/count_tests.py --log-lines 0 "$work/$lane.json" | tail -n 1 || true)
  if [ "$status" -ne 0 ]; then tail -n 200 "$work/$lane.log"; fi
  if ! [[ $counts =~ ^([0-9]+)\ passed,\ ([0-9]+)\ failed$ ]]; then
    echo "$lane: no counts; bazel ended with status $status"
    failed=$((failed + 1))
    continue
  fi
  echo "$lane: $counts, $((SECONDS - since)) s"
  passed=$((passed + BASH_REMATCH[1]))
  failed=$((failed + BASH_REMATCH[2]))
  # A lane that ended badly without a failed test must not look like success.
  if [ "$status" -ne 0 ] && [ "${BASH_REMATCH[2]}" -eq 0 ]; then failed=$((failed + 1)); fi
done
echo "$passed passed, $failed failed"
[ "$failed" -eq 0 ] && [ "$passed" -gt 0 ]
