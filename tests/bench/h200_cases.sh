#!/usr/bin/env bash
# Every op case on an NVIDIA card, in shards side by side: compiling takes most of the time.
#
#   h200_cases.sh DIR CASES      DIR: where netcl-dist.tar.gz is unpacked;
#                                CASES: the program //tests/ops:device_cases_test
#
# SHARDS: how many at once (default: the cores less two). SECONDS_EACH: their limit (default 480).
# DEVICE: a selector (default nvidia:0). The shards' logs go to $OUT, if set. The last line is
# "N passed, N failed", of tests.
set -uo pipefail
prefix=$(cd "$1" && pwd)
cases=$(realpath "$2")
logs=${OUT:-$(mktemp -d)}
shards=${SHARDS:-$(($(nproc) > 3 ? $(nproc) - 2 : 1))}
export GTEST_TOTAL_SHARDS=$shards
processes=()
for ((i = 0; i < shards; ++i)); do
  GTEST_SHARD_INDEX=$i timeout "${SECONDS_EACH:-480}" "$cases" --device="${DEVICE:-nvidia:0}" \
    --plugins="$prefix/plugins" >"$logs/cases-$i.log" 2>&1 &
  processes+=($!)
done
broken=0
for i in "${!processes[@]}"; do
  wait "${processes[$i]}" || {
    broken=$((broken + 1))
    echo "shard $i of $shards ended with an error; its last line: $(tail -1 "$logs/cases-$i.log")"
  }
done
grep -h '^device ' "$logs"/cases-*.log
grep -h '^\[  FAILED' "$logs"/cases-*.log | sort -u
passed=$(cat "$logs"/cases-*.log | grep -c '^\[       OK')
failed=$(cat "$logs"/cases-*.log | grep -c '^\[  FAILED.*ms)$')
[ "$failed" -lt "$broken" ] && failed=$broken
echo "$passed passed, $failed failed"
[ "$failed" -eq 0 ]
