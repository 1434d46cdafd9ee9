#!/bin/sh
# Tries the kernels: each must be chosen where it should be, and its results must be right, beside
# the reference of the op in double precision.
# usage: sh check.sh DIR     DIR holds the built plugin's directory; NETCL_APP and DEVICE may be set
set -eu
app=${NETCL_APP:-netcl-app}
device=${DEVICE:-cpu:0}

echo "check: what every plugin promises"
"$app" plugins verify "$1/@NAME@" --device "${DEVICE:-cpu:0}"

echo "check: which kernels compute softmax"
why=$("$app" plugins why --op softmax --shape 37,53 --device "$device" --plugin-path "$1")
echo "$why"
if ! echo "$why" | grep -q 'chosen  @NAME@/'; then
  echo "check: FAILED: @NAME@ is not chosen for softmax; the lines above say why"
  exit 1
fi

# Each variant, also with sizes that are odd, prime, small and large. bench op fails for a result
# that is wrong by more than the limit.
for variant in rows groups; do
  for shape in 1,1 7,3 37,53 64,1000 3,5,129; do
    "$app" bench op --op softmax --shape $shape --device "$device" --plugin-path "$1" \
      --kernels softmax=@NAME@:$variant --max-rel-err 2e-6 --repeats 3
  done
done
echo "check: passed: @NAME@ is chosen and its results are right"
