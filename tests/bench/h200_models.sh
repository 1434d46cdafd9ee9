#!/usr/bin/env bash
# ResNet-18 and ViT-Tiny at 224 x 224, and ResNet-18 at 32 x 32, some steps each in fp32 and bf16, on an
# NVIDIA card.
#
#   h200_models.sh DIR           DIR: where netcl-dist.tar.gz is unpacked
#
# DEVICES: selectors (default nvidia:0). STEPS: of each run (default 30). A run passes if its loss fell
# below half of the first. The last line is "N passed, N failed".
set -uo pipefail
prefix=$(cd "$1" && pwd)
app=$prefix/bin/netcl-app
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export NETCL_CACHE_DIR=$work/cache POCL_CACHE_DIR=$work/pocl
passed=0
failed=0
train() { # NAME LAYER INPUT BATCH SAMPLES PRECISION
  cat >"$work/$1.json" <<J
{"model": {"input": $3, "layers": [$2]},
 "data": {"format": "synthetic", "samples": $5, "classes": 10, "kind": "blobs", "seed": 1,
          "split": [0.9, 0.1]},
 "optimizer": {"type": "adamw", "lr": 1e-3}, "batch_size": $4, "epochs": 200, "seed": 1}
J
  timeout 300 "$app" train "$work/$1.json" --devices "${DEVICES:-nvidia:0}" --precision "$6" \
    --max-steps "${STEPS:-30}" --out "$work/run-$1-$6" --json --quiet >"$work/out.json"
  local status=$?
  if python3 - "$work/out.json" "$status" "$1 $6" <<'P'; then
import json, math, sys
result = json.load(open(sys.argv[1]))
print("%s: %.0f samples/s, train loss %.4f, test %s %s" % (
    sys.argv[3], result["samples_per_second"], result["train_loss"], result["metrics"],
    result.get("error") or ""))
sys.exit(0 if sys.argv[2] == "0" and result["train_loss"] < math.log(10) / 2 else 1)
P
    passed=$((passed + 1))
  else
    failed=$((failed + 1))
  fi
}
for precision in fp32 bf16; do
  train resnet18_224 '{"type": "resnet18", "classes": 10}' '[3, 224, 224]' 128 1024 $precision
  train vit_tiny_224 '{"type": "vit_tiny", "classes": 10}' '[3, 224, 224]' 128 1024 $precision
  train resnet18_32 '{"type": "resnet18", "classes": 10}' '[3, 32, 32]' 256 8192 $precision
done
echo "$passed passed, $failed failed"
[ "$failed" -eq 0 ]
