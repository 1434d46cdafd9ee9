#!/usr/bin/env bash
# From a fresh checkout to a trained network: installs what is missing, builds netcl-app, shows this
# machine's OpenCL devices, trains the digits example on them.
#
#   apps/quickstart.sh [--devices LIST] [further options of netcl-app train]
#
# Workers, unless --devices or NETCL_DEVICES says otherwise: without a GPU the CPU cut in two
# (cpu:0/2), with one GPU that and the CPU (gpu:0,cpu:0), with several every GPU (gpu).
set -euo pipefail

readonly CONFIG=apps/examples/digits_mlp.json
devices=${NETCL_DEVICES:-}
extra=()
while [ $# -gt 0 ]; do
  case $1 in
    -h | --help)
      sed -n '2,/^set -/{/^set -/d;s/^# \{0,1\}//;p}' "${BASH_SOURCE[0]}"
      exit 0
      ;;
    --devices)
      if [ $# -lt 2 ]; then
        echo "quickstart: --devices needs a list, such as cpu:0/2" >&2
        exit 2
      fi
      devices=$2
      shift 2
      ;;
    --devices=*)
      devices=${1#--devices=}
      shift
      ;;
    *)
      extra+=("$1")
      shift
      ;;
  esac
done

cd "$(dirname "${BASH_SOURCE[0]}")/.."

echo "== dependencies"
bash third_party/install_deps.sh

echo "== build (the first one takes some minutes)"
bazel build --noshow_progress //apps:netcl-app //plugins:dir
readonly app=bazel-bin/apps/netcl-app

echo "== devices"
"$app" devices

if [ -z "$devices" ]; then
  # "GPUS CPUS": how many of each kind the machine has
  counts=$("$app" devices --json --quiet | python3 -c '
import json, sys
types = [d["type"] for d in json.load(sys.stdin)["devices"]]
print(types.count("gpu"), types.count("cpu"))')
  read -r gpus cpus <<<"$counts"
  if [ "$gpus" -gt 1 ]; then
    devices=gpu
  elif [ "$gpus" -eq 1 ] && [ "$cpus" -gt 0 ]; then
    devices=gpu:0,cpu:0
  elif [ "$gpus" -eq 1 ]; then
    devices=gpu:0
  elif [ "$cpus" -gt 0 ]; then
    devices=cpu:0/2
  else
    devices=all
  fi
fi

echo "== training on $devices"
printf '+ %s' "$app train $CONFIG --devices $devices"
printf ' %q' ${extra[@]+"${extra[@]}"}
echo
exec "$app" train "$CONFIG" --devices "$devices" ${extra[@]+"${extra[@]}"}
