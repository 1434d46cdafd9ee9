#!/usr/bin/env bash
# Data-parallel training and the all-reduce on two NVIDIA cards, and on one card beside PoCL.
#
#   h200_pair.sh DIR           DIR: where netcl-dist.tar.gz is unpacked
#
# PAIR: the two cards (default nvidia:0,nvidia:1). CPU: the other device (default cpu:0). PARTS: what
# to measure (default "allreduce step trace mixed auto groups"; `auto` is how --transport auto
# chooses, `groups` is PoCL's CPU in two groups of 4 and 12 cores, which needs 16 of them). ROUNDS:
# how often what is compared takes turns (default 2 for `mixed`, 3 for `step` and `groups`). MIXED:
# the models of `mixed` (default "mlp cnn"). BATCH: of `groups` (default 2048). Every figure is a
# median; the last line is "N passed, N failed", where a run passes if it ended well and its results
# were checked.
set -uo pipefail
prefix=$(cd "$1" && pwd)
app=$prefix/bin/netcl-app
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export NETCL_CACHE_DIR=$work/cache POCL_CACHE_DIR=$work/pocl
pair=${PAIR:-nvidia:0,nvidia:1}
first=${pair%%,*}
passed=0
failed=0
count() { if [ "$1" -eq 0 ]; then passed=$((passed + 1)); else failed=$((failed + 1)); fi; }
model() { # NAME LAYER INPUT BATCH SAMPLES
  cat >"$work/$1.json" <<J
{"model": {"input": $3, "layers": [$2]},
 "data": {"format": "synthetic", "samples": $5, "classes": 10, "kind": "blobs", "seed": 1,
          "split": [0.9, 0.1]},
 "optimizer": {"type": "adamw", "lr": 1e-3}, "batch_size": $4, "epochs": 1000, "seed": 1}
J
}
# Prints samples/s of the second half of a run's steps: median of its steps' seconds.
speed() { # NAME DEVICES STEPS ARGS...
  local name=$1 devices=$2 steps=$3
  shift 3
  rm -rf "$work/run"
  timeout 280 "$app" train "$work/$name.json" --devices "$devices" --max-steps "$steps" \
    --out "$work/run" --json "$@" >"$work/out.json" 2>"$work/err.txt"
  python3 - "$work" "$name on $devices $*" <<'P'
import json, statistics, sys
work, what = sys.argv[1:]
result = json.load(open(work + "/out.json"))
if result.get("error"):
    print(what, "failed:", result["error"])
    sys.exit(1)
batch = json.load(open(work + "/run/config.json"))["batch_size"]
seconds = [row["seconds"] for row in map(json.loads, open(work + "/run/metrics.jsonl"))
           if "seconds" in row]
median = statistics.median(seconds[len(seconds) // 2:])
print("%s: %.2f ms a step, %.0f samples/s" % (what, median * 1e3, batch / median))
for key in ("account", "trace"):
    if key in result:
        print("   ", key, json.dumps(result[key]))
P
  count $?
  grep -E "host transport|left out|measured speed|stays|goes on" "$work/err.txt" | tail -4
}
# The same on some cores alone.
alone() { # NAME CORES COUNT
  local whole=$app
  app=$work/on_cores
  printf '#!/bin/sh\nexec taskset -c %s env POCL_MAX_PTHREAD_COUNT=%s POCL_CPU_MAX_CU_COUNT=%s %s "$@"\n' \
    "$2" "$3" "$3" "$whole" >"$app"
  chmod +x "$app"
  echo "cores $2:"
  speed "$1" cpu:0 36
  app=$whole
}
for part in ${PARTS:-allreduce step trace mixed auto groups}; do
  case $part in
    allreduce)
      timeout 280 "$app" bench allreduce --devices "$pair" \
        --bytes 4096,65536,1048576,26214400,67108864,268435456
      count $?
      ;;
    step)
      model one '{"type": "resnet18", "classes": 10}' '[3, 224, 224]' 128 1024
      model two '{"type": "resnet18", "classes": 10}' '[3, 224, 224]' 256 1024
      for round in $(seq "${ROUNDS:-3}"); do
        speed one "$first" 24
        speed two "$pair" 24 --shard even
      done
      ;;
    trace)
      model two '{"type": "resnet18", "classes": 10}' '[3, 224, 224]' 256 1024
      speed two "$pair" 34 --shard even --trace "$work/trace.json" --trace-steps 20
      ;;
    mixed)
      model mlp '{"type": "linear", "out": 256}, {"type": "relu"}, {"type": "linear", "out": 10}' \
        '[784]' 4096 81920
      model cnn '{"type": "resnet18", "classes": 10}' '[3, 32, 32]' 256 8192
      for round in $(seq "${ROUNDS:-2}"); do
        for each in ${MIXED:-mlp cnn}; do
          steps=1500 # long enough for a group to be formed anew
          [ "$each" = mlp ] || steps=300
          speed "$each" "$first" "$steps"
          speed "$each" "$first,${CPU:-cpu:0}" "$steps"
        done
      done
      ;;
    auto)
      model small '{"type": "resnet18", "classes": 10}' '[3, 32, 32]' 256 8192
      timeout 200 "$app" train "$work/small.json" --devices "$pair" --max-steps 20 \
        --out "$work/auto" --json >"$work/out.json" 2>"$work/err.txt"
      count $?
      grep "^transport" "$work/err.txt"
      grep -A 8 transport_probe "$work/out.json"
      ;;
    groups)
      model lenet '{"type": "lenet5", "classes": 10}' '[1, 28, 28]' "${BATCH:-2048}" 81920
      for round in $(seq "${ROUNDS:-3}"); do
        alone lenet 0-3 4
        alone lenet 4-15 12
        speed lenet cpu:0/4+12 60
      done
      ;;
  esac
done
echo "$passed passed, $failed failed"
[ "$failed" -eq 0 ]
