#!/usr/bin/env bash
# What dropping a vendor's kernel set into a plugins directory does to a training run.
#
#   vendor_drop_in.sh DIR [ROUNDS]     DIR: an unpacked netcl-dist.tar.gz; ROUNDS (3) of each kind
#
# Trains tests/bench/drop_in/train.json on cpu:0 with the plain installation, then with the
# kernel set beside it (sealed here, dropped into the user's plugins directory), then with that set
# tuned. `plugins why` must name who computes tanh each time, the run's environment.json, too; the
# throughput must rise by a fifth with the set, and not fall by tuning; the losses must stay within 1e-3. The
# last line is "N passed, N failed".
set -euo pipefail
prefix=$(cd "${1:?usage: vendor_drop_in.sh DIR [ROUNDS]}" && pwd)
rounds=${2:-3}
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
# Medians of the rounds: samples/s and loss of NAME, in $work/NAME.
train() { # NAME ARGUMENTS...
  local name=$1
  shift
  for round in $(seq "$rounds"); do
    "$app" train "$files/train.json" --devices cpu:0 --json --quiet --out "$work/run-$name-$round" "$@" |
      json "d['samples_per_second'], d['train_loss']"
  done | tr -d '(),' | sort -g | sed -n "$(((rounds + 1) / 2))p" >"$work/$name"
  echo "$name: $(cut -d' ' -f1 "$work/$name") samples/s, loss $(cut -d' ' -f2 "$work/$name")"
}
kernel_of_run() { # NAME
  json "[k for k in d['workers'][0]['kernels'] if k.startswith('tanh: ')]" \
    <"$work/run-$1-1/environment.json"
}
chosen() {
  "$app" plugins why "${question[@]}" --json |
    json "[c for c in d['candidates'] if c['verdict'] == 'chosen'][0]"
}
speed() { cut -d' ' -f1 "$work/$1"; }
loss() { cut -d' ' -f2 "$work/$1"; }

train plain
plain=$(chosen)
echo "  $plain"

mkdir -p "$work/drop_in" "$XDG_DATA_HOME/netcl/plugins"
cp "$files"/plugin.json "$files"/variants.json "$files"/tanh.cl "$work/drop_in/"
"$app" plugins seal "$work/drop_in" --quiet
mv "$work/drop_in" "$XDG_DATA_HOME/netcl/plugins/"
why=$(chosen)
echo "  $why"
holds "'drop_in' not in '''$plain''' and 'drop_in' in '''$why'''" "plugins why names the set once it is there"
train dropped
holds "'drop_in/vector' in '''$(kernel_of_run dropped)'''" "the run says so, too"
holds "$(speed dropped) > 1.2 * $(speed plain)" "the set makes training faster"

"$app" tune "${question[@]}" --budget 60s
why=$(chosen)
echo "  $why"
holds "'tuned record, exact' in '''$why'''" "plugins why names the tuned record"
train tuned
holds "'drop_in/vector(' in '''$(kernel_of_run tuned)'''" "the run has the settings that were found"
holds "$(speed tuned) > 0.95 * $(speed dropped)" "tuning does not make it slower"
for name in dropped tuned; do
  holds "abs($(loss $name) - $(loss plain)) <= 1e-3 * abs($(loss plain))" "the loss of $name is that of plain"
done
echo "$passed passed, $failed failed"
[ "$failed" -eq 0 ]
