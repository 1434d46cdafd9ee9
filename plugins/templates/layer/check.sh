#!/bin/sh
# Trains the model of check.json with the plugin: its loss must be finite and fall.
# usage: sh check.sh DIR     DIR holds the built plugin's directory; NETCL_APP and DEVICE may be set
set -eu
app=${NETCL_APP:-netcl-app}
here=$(dirname "$0")
run=$(mktemp -d)
trap 'rm -rf "$run"' EXIT

echo "check: what every plugin promises"
"$app" plugins verify "$1/@NAME@"

echo "check: the layer's description and keys"
"$app" plugins inspect @NAME@ --plugin-path "$1"

echo "check: training with it"
"$app" train "$here/check.json" --plugin-path "$1" --devices "${DEVICE:-cpu:0}" \
  --out "$run/run" --quiet

# metrics.jsonl has a line {"step":…,"loss":…} for every step; a loss that is no number is null.
grep '"step":' "$run/run/metrics.jsonl" | sed 's/.*"loss":\([^,}]*\).*/\1/' | awk '
  $1 !~ /^[-+0-9.eE]+$/ { print "check: FAILED: the loss of step " NR " is " $1; failed = 1; exit }
  NR == 1 { first = $1 }
  { last = $1 }
  END {
    if (failed) exit 1
    if (NR < 2 || last + 0 >= first + 0) {
      print "check: FAILED: the loss went from " first " to " last " in " NR " steps"; exit 1
    }
    print "check: passed: the loss fell from " first " to " last " in " NR " steps"
  }'
