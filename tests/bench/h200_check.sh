#!/usr/bin/env bash
# Checks an unpacked netcl-dist.tar.gz on a machine with an NVIDIA card and PoCL.
#
#   h200_check.sh [DIR]          DIR: where the archive is unpacked (default: here)
#
# Lists devices and plugins, trains the digits on the card, on PoCL and on both with shares of 3 to
# 1. Everything goes to stdout, and to $OUT/h200_check.log if OUT is set. The last line is
# "N passed, N failed"; a run passes with a test accuracy of at least 0.95.
set -uo pipefail
prefix=$(cd "${1:-.}" && pwd)
app=$prefix/bin/netcl-app
config=$prefix/share/netcl/examples/digits_mlp.json
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export NETCL_CACHE_DIR=$work/cache POCL_CACHE_DIR=$work/pocl HOME=${HOME:-$work}
if [ ! -x "$app" ]; then
  echo "h200_check: $app is missing; name the directory where the archive is unpacked" >&2
  exit 2
fi
if [ -n "${OUT:-}" ]; then exec > >(tee "$OUT/h200_check.log") 2>&1; else exec 2>&1; fi

passed=0
failed=0
verdict() {
  if [ "$1" -eq 0 ]; then passed=$((passed + 1)); else failed=$((failed + 1)); fi
  echo "-- $([ "$1" -eq 0 ] && echo passed || echo FAILED): $2"
}
check() { # NAME COMMAND...
  local name=$1
  shift
  echo "== $name"
  timeout 120 "$@"
  verdict $? "$name"
}
train() { # DEVICES ARGUMENTS...
  local devices=$1 began=$SECONDS status
  shift
  echo "== train on $devices"
  timeout 240 "$app" train "$config" --json --quiet --out "$work/run-$devices" --devices "$devices" "$@" \
    >"$work/result.json"
  status=$?
  python3 - "$work/result.json" "$status" <<'PY'
import json, sys
try:
    result = json.load(open(sys.argv[1]))
except ValueError:
    sys.exit("no JSON; exit status " + sys.argv[2])
if "metrics" not in result:
    sys.exit("exit status %s: %s" % (sys.argv[2], result.get("error")))
accuracy = result["metrics"].get("accuracy", 0.0)
print("accuracy %.4f  stopped %s  transport %s  %.0f samples/s" % (
    accuracy, result["stopped"], result["transport"], result["samples_per_second"]))
for w in result["workers"]:
    print("  rank %d  %-12s share %.3f  samples %d" % (w["rank"], w["device"], w["share"], w["samples"]))
if result.get("error"):
    print("error: " + result["error"])
shared = all(w["samples"] > 0 for w in result["workers"])
sys.exit(0 if sys.argv[2] == "0" and accuracy >= 0.95 and shared else 1)
PY
  verdict $? "train on $devices, $((SECONDS - began)) s"
}

uname -srm
ldd --version 2>/dev/null | head -n 1
for object in "$app" "$prefix"/plugins/*/*.so; do
  missing=$(ldd "$object" 2>/dev/null | grep 'not found')
  [ -z "$missing" ]
  verdict $? "libraries of ${object#"$prefix/"} $missing"
done
check "devices" "$app" devices --json
check "plugins" "$app" plugins list
train nvidia:0
train pocl:0
train nvidia:0,pocl:0 --shard 3,1
echo "$passed passed, $failed failed"
[ "$failed" -eq 0 ]
