#!/bin/sh
# All forms of a product against netcl's reference in double precision, and a small network whose
# losses must be those that it has with netcl's own kernels, up to rounding.
# usage: sh check.sh DIR     DIR holds the built plugin's directory; NETCL_APP and DEVICE may be set
set -eu
app=${NETCL_APP:-netcl-app}
device=${DEVICE:-cpu:0}
here=$(dirname "$0")
run=$(mktemp -d)
trap 'rm -rf "$run"' EXIT

# product SHAPE_A SHAPE_B OPTIONS...   the plugin must compute it, and right
product() {
  a=$1 b=$2
  shift 2
  "$app" bench op --op matmul --shape "$a" --shape "$b" "$@" --device "$device" --repeats 1 \
    --plugin-path "$plugins" --kernels matmul=clblast --json > "$run/product"
  grep -q '"kernel_set": "clblast"' "$run/product" || {
    echo "check: FAILED: $a x $b was computed by others"; cat "$run/product"; exit 1; }
  echo "check: $a x $b $*: right"
}
plugins=$1
product 64,48 48,40
product 33,17 17,65
product 48,64 48,40 --attr transpose_a=1
product 64,48 40,48 --attr transpose_b=1
product 48,64 40,48 --attr transpose_a=1 --attr transpose_b=1
product 3,20,30 3,30,10
product 64,48 48,40 --attr activation=relu --shape 40
product 1,1 1,1

# $1: name; the rest: options. Leaves the losses of the steps in $run/$1.losses.
train() {
  name=$1
  shift
  "$app" train "$here/check.json" --plugin-path "$plugins" --devices "$device" --out "$run/$name" --quiet "$@"
  grep '"step":' "$run/$name/metrics.jsonl" | sed 's/.*"loss":\([^,}]*\).*/\1/' > "$run/$name.losses"
}
train clblast --kernels matmul=clblast
train netcl --kernels matmul=generic
grep -q 'matmul: clblast/gemm' "$run/clblast/environment.json" || {
  echo "check: FAILED: the run's environment.json does not name clblast"; exit 1; }
paste "$run/clblast.losses" "$run/netcl.losses" | awk '
  { d = $1 - $2; if (d < 0) d = -d }
  $1 !~ /^[-+0-9.eE]+$/ || d > 0.0005 * (1 + $2) {
    print "check: FAILED: the losses of step " NR " are " $1 " and " $2; failed = 1; exit 1 }
  END { if (!failed && NR < 2) { print "check: FAILED: no steps"; exit 1 }
        if (!failed) print "check: " NR " losses agree with those of the generic kernels" }'
echo "check: passed"
