#!/bin/bash
# Every op, case and variant under Oclgrind's checks: accesses out of bounds, data races, misuse of
# the API, and (where the simulator can) values that nothing has written. Any finding fails. A kernel
# set whose barriers were taken out shows first that the checks see anything at all.
#
# Arguments: the program of device_cases_test, the directory of the plugins, the program of
# settings_test, and further device tests, which run whole: replayed graphs use memory in other ways
# than single ops. Without Oclgrind there is nothing to run: the test says so and passes.
set -u
cases=$1
plugins=$2
settings=$3
others=("${@:4}")
work=$(mktemp -d "${TEST_TMPDIR:-/tmp}/oclgrind.XXXXXX")
trap 'rm -rf "$work"' EXIT
unset XML_OUTPUT_FILE  # several runs of one program

tool=$(command -v oclgrind) || { echo "SKIPPED: Oclgrind is not installed"; exit 0; }
prefix=$(dirname "$(dirname "$(readlink -f "$tool")")")
driver=$(ls "$prefix"/lib*/oclgrind/liboclgrind-rt-icd.so \
  "$prefix"/lib/*/oclgrind/liboclgrind-rt-icd.so 2>/dev/null | head -1)
[ -n "$driver" ] || { echo "SKIPPED: no liboclgrind-rt-icd.so below $prefix"; exit 0; }
mkdir "$work/vendors"
echo "$driver" >"$work/vendors/oclgrind.icd"
export OCL_ICD_VENDORS="$work/vendors" OCLGRIND_LOG="$work/log"

# run NAME PLUGINS GTEST_FILTER [VARIABLE=VALUE...] [--smallest]: leaves the status in $status
run() {
  local name=$1 dir=$2 filter=$3 extent=()
  shift 3
  if [ "${*: -1}" = --smallest ]; then
    extent=(--smallest)
    set -- "${@:1:$#-1}"
  fi
  rm -f "$OCLGRIND_LOG"
  env "$@" "$cases" --plugins="$dir" --device=oclgrind:0 --gtest_filter="$filter" "${extent[@]}" \
    >"$work/out" 2>&1
  status=$?
  echo "$name: exit $status, $(grep -c Kernel: "$OCLGRIND_LOG" 2>/dev/null) findings"
  grep '^device ' "$work/out"
}

must_be_clean() {
  run "$@"
  if [ "$status" -ne 0 ] || [ -s "$OCLGRIND_LOG" ]; then
    tail -60 "$work/out"
    head -60 "$OCLGRIND_LOG"
    exit 1
  fi
}

cp -rL "$plugins" "$work/broken"
chmod -R u+w "$work/broken"
sed -i 's/barrier(CLK_LOCAL_MEM_FENCE);//' "$work/broken/generic/reduce.cl"
run "canary without barriers" "$work/broken" '*Forward*/sum' OCLGRIND_DATA_RACES=1
grep -q 'data race' "$OCLGRIND_LOG" || { echo "the canary's races were not seen"; exit 1; }

must_be_clean "bounds, races, API" "$plugins" '*Forward*' OCLGRIND_DATA_RACES=1 OCLGRIND_CHECK_API=1
# Oclgrind crashes on LLVM's freeze instruction while it tracks initialisation; the compiler makes one in
# the kernels of these ops.
frozen='*softmax:*matmul:*conv*:*_cell:*_cell_grad:*sdpa_grad_mask:*layer_norm:*rms_norm:*group_norm'
frozen+=':*norm_stats:*/norm_grad_input:*batch_norm*sums'
must_be_clean "uninitialised values" "$plugins" "*Forward*-$frozen" \
  OCLGRIND_UNINITIALIZED=1 --smallest
cases=$settings
must_be_clean "settings: bounds, races" "$plugins" \
  '*/matmul:*/conv2d:*/conv2d_grad_*:*/sum:*/var:*/layer_norm:*/batch_norm*' OCLGRIND_DATA_RACES=1
for cases in "${others[@]}"; do
  must_be_clean "$(basename "$cases")" "$plugins" '*' OCLGRIND_DATA_RACES=1
done
