#!/usr/bin/env bash
# Fuzzes the readers of what others write: manifests, variants.json, launch rules, settings, records.
#
#   tests/fuzz/run.sh [MINUTES [TARGET...]]     default: 10 minutes for every target
#
# Needs clang with libFuzzer (Debian: clang). Address and undefined-behaviour sanitizers are on. New
# inputs that reach new code are kept in a folder beside the build, not in the tree. Stops at the
# first finding; the input is then named by libFuzzer. Exit status: 0 only without a finding.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
minutes=${1:-10}
shift || true
declare -A sources=(
  [expr]="plugins/pack/expr.cc plugins/pack/expr_lexer.cc plugins/pack/expr_parser.cc plugins/pack/template.cc"
  [manifest]="core/runtime/manifest.cc core/runtime/file_gates.cc core/runtime/device_match.cc core/base/*.cc core/cl/device_info.cc"
)
sources[variants]="${sources[expr]} plugins/pack/variants.cc plugins/pack/planner.cc plugins/pack/settings.cc"
sources[settings]="${sources[variants]}"
# Everything below the reader of records.
sources[record]="core/runtime/tuned_record.cc core/ops/*.cc core/base/*.cc core/cl/device_info.cc core/cl/loader.cc core/tensor/half.cc core/tensor/shape.cc"
# Those of third_party/BUILD.
defines=(-DCL_TARGET_OPENCL_VERSION=300 -DCL_HPP_TARGET_OPENCL_VERSION=300
  -DCL_HPP_MINIMUM_OPENCL_VERSION=200 -DCL_HPP_ENABLE_EXCEPTIONS)
targets=("$@")
[ ${#targets[@]} -gt 0 ] || targets=($(printf '%s\n' "${!sources[@]}" | sort))
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
for target in "${targets[@]}"; do
  [ -n "${sources[$target]:-}" ] || { echo "no target $target; there are: ${!sources[*]}" >&2; exit 2; }
  # shellcheck disable=SC2086
  clang++ -std=c++17 -g -O1 -I. -Icore/abi "${defines[@]}" \
    -fsanitize=fuzzer,address,undefined -fno-sanitize-recover=undefined \
    -o "$work/$target" "tests/fuzz/${target}_fuzz.cc" ${sources[$target]} -lmbedcrypto -ldl
  mkdir -p "$work/new-$target"
  echo "== $target: $minutes minutes"
  (cd "$work" && "./$target" -max_total_time=$((minutes * 60)) -max_len=4096 -timeout=10 -print_final_stats=1 \
    "new-$target" "$OLDPWD/tests/fuzz/corpus/$target" 2>&1 | tail -n 12)
  echo "== $target: no finding"
done
