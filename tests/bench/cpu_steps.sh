#!/usr/bin/env bash
# Training steps on the processor beside PyTorch's, of the same models, batches and optimisers.
#
#   cpu_steps.sh DIR [ROUNDS]     DIR: an unpacked netcl-dist.tar.gz; ROUNDS (7) of each, in turn
#
# Every round times each model's steps with PyTorch (torch_steps.py) and then with `netcl-app bench
# step` on cpu:0, both with all processors; MODEL@2 are two workers of one processor each, which share
# the batch: DistributedDataParallel through Gloo, and core groups of cpu:0. The table has the medians
# of the rounds and their ratio, and what two workers do of one worker's samples a second; the last
# line is "N passed, N failed": each ratio must reach its target. What is missing of Debian's
# python3-torch and libopenblas0-openmp is installed (apt-get as root); PYTHON names another Python
# with PyTorch. MODELS: a list of the models to run. With OUT the times stay there.
set -euo pipefail
prefix=$(cd "${1:?usage: cpu_steps.sh DIR [ROUNDS]}" && pwd)
rounds=${2:-7}
here=$(cd "$(dirname "$(readlink -f "$0")")" && pwd)
app=$prefix/bin/netcl-app
python=${PYTHON:-/usr/bin/python3}
models=${MODELS:-mlp mlp@2 lenet5 lenet5@2 resnet18_cifar resnet18_imagenet gpt_mini}
declare -A target=([mlp]=1.5 [lenet5]=1.5 [resnet18_cifar]=1.0 [resnet18_imagenet]=1.0 [gpt_mini]=1.0
                   [mlp@2]=3.0 [lenet5@2]=1.5)
declare -A of_one_worker=([mlp@2]=0.9)
declare -A steps=([mlp]=500 [lenet5]=200 [resnet18_cifar]=10 [resnet18_imagenet]=20 [gpt_mini]=20)
# Of another processor's kernels OpenBLAS would take half the speed of this one's.
unset OPENBLAS_CORETYPE OPENBLAS_L2_SIZE
threads=$(nproc)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
times=${OUT:-$work}
mkdir -p "$times"

if [ -z "${PYTHON:-}" ] && ! dpkg -s python3-torch libopenblas0-openmp >/dev/null 2>&1; then
  apt-get update >&2 && apt-get install -y python3-torch libopenblas0-openmp >&2
fi

# Any text does for the time of a step: as many characters as the vocabulary holds, in a fixed order.
cp "$here"/cpu_steps/*.json "$work"
python3 - "$work/text.txt" <<'END'
import random
import sys

random.seed(1)
letters = [chr(c) for c in range(32, 127)]
with open(sys.argv[1], "w", encoding="ascii") as out:
    out.write("".join(random.choices(letters, k=200000)))
END

for ((i = 1; i <= rounds; ++i)); do
  echo "round $i of $rounds, load $(cut -d' ' -f1 /proc/loadavg)" >&2
  for run in $models; do
    model=${run%@*}
    ranks=1
    devices=cpu:0
    if [ "$model" != "$run" ]; then
      ranks=${run#*@}
      devices=cpu:0/1$(printf '+1%.0s' $(seq 2 "$ranks"))
    fi
    each=$((threads / ranks))
    OMP_NUM_THREADS=$each "$python" "$here/torch_steps.py" "$model" --threads "$each" --ranks "$ranks" \
      >"$work/torch.json"
    "$app" bench step "$work/$model.json" --devices "$devices" --rounds 1 --steps "${steps[$model]}" \
      --json --quiet >"$work/netcl.json"
    python3 - "$work" >>"$times/$run" <<'END'
import json
import sys

torch = json.load(open(sys.argv[1] + "/torch.json", encoding="utf-8"))
netcl = json.load(open(sys.argv[1] + "/netcl.json", encoding="utf-8"))
print(torch["step_ms"], netcl["step_ms"])
END
  done
done

passed=0
failed=0
count() {
  if [[ $1 == *passed ]]; then passed=$((passed + 1)); else failed=$((failed + 1)); fi
}
# compare TIMES_A COLUMN_A TIMES_B COLUMN_B TARGET: medians, their ratio, and whether it reaches TARGET.
compare() {
  python3 - "$@" <<'END'
import statistics
import sys

a, b = (statistics.median(float(line.split()[int(column)]) for line in open(path, encoding="ascii"))
        for path, column in (sys.argv[1:3], sys.argv[3:5]))
print("%12.2f %12.2f %7.2f %7s %s" % (a, b, a / b, sys.argv[5], "passed" if a / b >= float(sys.argv[5]) else "FAILED"))
END
}
printf '%-18s %12s %12s %7s %7s\n' model 'PyTorch ms' 'netcl ms' ratio target
for run in $models; do
  row=$(compare "$times/$run" 0 "$times/$run" 1 "${target[$run]}")
  printf '%-18s %s\n' "$run" "$row"
  count "$row"
done
for run in $models; do
  [ -n "${of_one_worker[$run]:-}" ] && [ -e "$times/${run%@*}" ] || continue
  row=$(compare "$times/${run%@*}" 1 "$times/$run" 1 "${of_one_worker[$run]}")
  printf '%-18s %s\n' "$run / ${run%@*}" "$row (both netcl)"
  count "$row"
done
echo "$passed passed, $failed failed"
[ "$failed" -eq 0 ]
