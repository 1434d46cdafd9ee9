#!/bin/sh
# Adds up over two workers: every type must have the right sum, and a model that two workers train
# must have, step by step, the loss that it has with netcl's own transport.
# usage: sh check.sh DIR     DIR holds the built plugin's directory; NETCL_APP and DEVICE may be set
set -eu
app=${NETCL_APP:-netcl-app}
here=$(dirname "$0")
workers=${DEVICE:-cpu:0}/2
run=$(mktemp -d)
trap 'rm -rf "$run"' EXIT

echo "check: what every plugin promises"
"$app" plugins verify "$1/@NAME@" --quick --device "${DEVICE:-cpu:0}"

echo "check: sums over $workers, of sizes below and above the transport's chunks"
"$app" bench allreduce --transport @NAME@ --plugin-path "$1" --devices "$workers" --repeats 3 \
  --bytes 8,4096,3000000 --dtype f32,f16,bf16,i32,i64,u8 --json > "$run/sums"
sed -n 's/.*"correct": *//p' "$run/sums" | sort | uniq -c
if grep -q '"correct": *false' "$run/sums" || [ "$(grep -c '"correct": *true' "$run/sums")" != 18 ]; then
  echo "check: FAILED: expected 18 right sums"
  cat "$run/sums"
  exit 1
fi

# $1: the transport; prints the loss of every step.
losses() {
  "$app" train "$here/check.json" --transport "$1" --plugin-path "$2" --devices "$workers" \
    --shard even --out "$run/run_$1" --quiet >&2
  grep '"step":' "$run/run_$1/metrics.jsonl" | sed 's/.*"loss":\([^,}]*\).*/\1/'
}
echo "check: training on $workers"
losses @NAME@ "$1" > "$run/mine"
losses host "$1" > "$run/host"
if ! cmp -s "$run/mine" "$run/host" || [ ! -s "$run/mine" ]; then
  echo "check: FAILED: the losses differ from those with the transport host"
  diff "$run/mine" "$run/host" | head -n 8
  exit 1
fi
echo "check: passed: right sums, and the losses of $(wc -l < "$run/mine") steps are those of host"
