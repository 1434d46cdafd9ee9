#!/bin/sh
# Compares the kernels with the recorded ops, which netcl runs in double precision, and then trains
# the model of check.json with the kernels, with the recorded ops in their place, and with kernels on
# two workers: the losses must agree, and fall.
# usage: sh check.sh DIR     DIR holds the built plugin's directory; NETCL_APP and DEVICE may be set
set -eu
app=${NETCL_APP:-netcl-app}
device=${DEVICE:-cpu:0}
here=$(dirname "$0")
plugins=$1
run=$(mktemp -d)
trap 'rm -rf "$run"' EXIT
op=example.gated_norm

echo "check: the kernels beside the recorded ops"
for shape in 33,64 7,1028; do
  for variant in group16 group128; do
    for each in "$op" "$op.grad"; do
      "$app" bench op --op "$each" --layer "$op" --shape "$shape" --device "$device" --repeats 3 \
        --plugin-path "$plugins" --kernels "$each=fused_layer:$variant" --quiet
    done
  done
done

# train NAME OPTIONS...   leaves the losses of its steps in $run/NAME.losses
train() {
  name=$1
  shift
  echo "check: training, $name"
  "$app" train "$here/check.json" --plugin-path "$plugins" --out "$run/$name" --quiet "$@"
  # metrics.jsonl has a line {"step":...,"loss":...} for every step; a loss that is no number is null.
  grep '"step":' "$run/$name/metrics.jsonl" | sed 's/.*"loss":\([^,}]*\).*/\1/' > "$run/$name.losses"
}

# used NAME KERNELS...   these, and for the op and its gradient no others, must have been chosen
used() {
  name=$1
  shift
  found=$(tr ',[]' '\n\n\n' < "$run/$name/environment.json" | grep -o "$op[a-z.]*: [a-z_]*" | sort -u)
  wanted=$(printf '%s\n' "$@" | sort)
  if [ "$found" != "$wanted" ]; then
    echo "check: FAILED: $name ran with"; echo "$found"; echo "and not with"; echo "$wanted"; exit 1
  fi
}

train kernels --devices "$device"
used kernels "$op: fused_layer" "$op: trace" "$op.grad: fused_layer" "$op.grad: trace"
train ops --devices "$device" --kernels "$op=trace"
used ops "$op: trace" "$op.grad: trace"
train two_workers --devices "$device/2"

# The kernels add numbers up in another order than the ops: differences in the last digits grow from
# step to step, but stay small in so short a training.
for other in ops two_workers; do
  paste "$run/kernels.losses" "$run/$other.losses" | awk -v other="$other" '
    $1 !~ /^[-+0-9.eE]+$/ || $2 !~ /^[-+0-9.eE]+$/ {
      print "check: FAILED: the losses of step " NR " are " $1 " and " $2; failed = 1; exit
    }
    NR == 1 { first = $1 }
    { last = $1; difference = $1 - $2; if (difference < 0) difference = -difference
      if (difference > 0.002 * (1 + $1)) {
        print "check: FAILED: the losses of step " NR " are " $1 " with kernels, " $2 " with " other
        failed = 1; exit
      } }
    END {
      if (failed) exit 1
      if (NR < 2 || last + 0 >= first + 0) {
        print "check: FAILED: the loss went from " first " to " last " in " NR " steps"; exit 1
      }
      print "check: " NR " losses agree with " other ", from " first " to " last
    }'
done

echo "check: what every plugin promises"
"$app" plugins verify "$plugins/fused_layer" --device "$device"
echo "check: passed"
