#!/usr/bin/env bash
# What dropping a vendor's kernel set into a plugins directory does to a training run.
#
#   vendor_drop_in.sh DIR [ROUNDS]     DIR: an unpacked netcl-dist.tar.gz; ROUNDS (7) of each kind
#
# Trains tests/bench/drop_in/train.json on cpu:0. First with the plain installation; then the kernel
# set beside this file is sealed, dropped into the user's plugins directory, and tuned. `plugins why`
# and the run's environment.json must name who computes tanh each time. Then ROUNDS times in turn:
# without the set, with it, and with its tuned record. The median of the last must be a fifth above
# that of the first, and the losses within 1e-3. The last line is "N passed, N failed".
set -euo pipefail
prefix=$(cd "${1:?usage: vendor_drop_in.sh DIR [ROUNDS]}" && pwd)
rounds=${2:-7}
files=$(cd "$(dirname "$(readlink -f "$0")")/drop_in" && pwd)
app=$prefix/bin/netcl-app
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export HOME=$work XDG_DATA_HOME=$work/data NETCL_CACHE_DIR=$work/cache POCL_CACHE_DIR=$work/pocl
unset NETCL_PLUGIN_PATH
question=(--op tanh --shape 128,4096 --device cpu:0)
passed=0
failed=0

verdict() { # STATUS WORDS
  if [ "$1" -eq 0 ]; then passed=$((passed + 1)); else failed=$((failed + 1)); fi
  echo "$([ "$1" -eq 0 ] && echo passed || echo FAILED): $2"
}
holds() { # PYTHON-EXPRESSION WORDS
  local status=0
  python3 -c "import sys; sys.exit(not ($1))" || status=1
  verdict $status "$2"
}
json() { # PYTHON-EXPRESSION of the document d on standard input
  python3 -c "import json, sys; d = json.load(sys.stdin); print($1)"
}
train() { # NAME ARGUMENTS...: adds samples/s and loss to $work/NAME
  local name=$1
  shift
  runs=$((${runs:-0} + 1))
  "$app" train "$files/train.json" --devices cpu:0 --json --quiet --out "$work/run-$runs" "$@" \
    >"$work/result.json"
  json "'%.9g %.9g' % (d['samples_per_second'], d['train_loss'])" <"$work/result.json" >>"$work/$name"
}
kernel_of_run() { # of the last one: "tanh: PLUGIN/VARIANT"
  json "[k for k in d['workers'][0]['kernels'] if k.startswith('tanh: ')][0]" \
    <"$work/run-$runs/environment.json"
}
chosen() { # "PLUGIN/VARIANT REASON"
  "$app" plugins why "${question[@]}" --json |
    json "['%(plugin)s/%(variant)s %(reason)s' % c for c in d['candidates'] if c['verdict'] == 'chosen'][0]"
}
speed() { # NAME: the median
  sort -g "$work/$1" | sed -n "$(((rounds + 1) / 2))p" | cut -d' ' -f1
}
loss() { head -n 1 "$work/$1" | cut -d' ' -f2; }
says() { # TEXT PATTERN WORDS
  local status=0
  # shellcheck disable=SC2053
  [[ $1 == $2 ]] || status=1
  verdict $status "$3"
}

train first
why=$(chosen)
echo "plain: $why"
says "$why" "*specificity*" "no tuned record and no set but the plain one serves"
plain=${why%% *}

mkdir -p "$work/drop_in" "$XDG_DATA_HOME/netcl/plugins"
cp "$files"/plugin.json "$files"/variants.json "$files"/tanh.cl "$work/drop_in/"
"$app" plugins seal "$work/drop_in" --quiet
mv "$work/drop_in" "$XDG_DATA_HOME/netcl/plugins/"
why=$(chosen)
echo "dropped in: $why"
says "$why" "drop_in/vector specificity*" "plugins why names the set once it is there"
train second
says "$(kernel_of_run)" "tanh: drop_in/vector*" "the run says so, too, in place of $plain"

"$app" tune "${question[@]}" --budget 60s
why=$(chosen)
echo "tuned: $why"
says "$why" "drop_in/vector* tuned record, exact: *" "plugins why names the tuned record"
train third
says "$(kernel_of_run)" "tanh: ${why%% *}" "the run has the variant of the record"

for _ in $(seq "$rounds"); do
  train plain --disable-plugins drop_in --no-tuned
  train dropped --no-tuned
  train tuned
done
for name in plain dropped tuned; do echo "$name: $(speed $name) samples/s, loss $(loss $name)"; done
holds "$(speed tuned) > 1.2 * $(speed plain)" "the tuned set makes training a fifth faster"
for name in first dropped tuned; do
  holds "abs($(loss $name) - $(loss plain)) <= 1e-3 * abs($(loss plain))" "the loss of $name is that of plain"
done
echo "$passed passed, $failed failed"
[ "$failed" -eq 0 ]
