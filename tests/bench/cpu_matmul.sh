#!/usr/bin/env bash
# netcl's product on the CPU beside another library's, in all four transpose forms.
#
#   cpu_matmul.sh DIR [ROUNDS]     DIR: an unpacked netcl-dist.tar.gz; ROUNDS (7) of each, in turn
#
# PEER=openblas (the default): Debian's libopenblas0-openmp with as many THREADS as there are
# processors; a ratio passes from 0.95 on. PEER=clblast: Debian's CLBlast on the same OpenCL device,
# after its own tuner had TUNE seconds (300) for products of 512^3; each product goes the faster way of
# the tuned kernel and the library's choice, and a ratio passes from 4 on. What is missing is installed
# (apt-get as root); what the environment says of OpenBLAS's kernels and caches counts for nothing.
#
# In every round each side is a process of its own that warms up and takes the median of 9 times, each
# of as many products one after the other as take some 20 ms, so that neither is charged with more
# than its share of waiting. netcl's products are compared with the reference once before. The table
# has the medians over the rounds; a ratio is the peer's time by netcl's. SHAPES: others, each M,K,N;
# FORMS: fewer of NN NT TN TT. The last line is "N passed, N failed".
set -euo pipefail
prefix=$(cd "${1:?usage: cpu_matmul.sh DIR [ROUNDS]}" && pwd)
rounds=${2:-7}
threads=${THREADS:-$(nproc)}
read -ra shapes <<<"${SHAPES:-256,256,256 512,512,512 1024,1024,1024 2048,2048,2048 128,784,256 256,1024,4096}"
files=$(cd "$(dirname "$(readlink -f "$0")")/cpu_matmul" && pwd)
library=/usr/lib/x86_64-linux-gnu/openblas-openmp/libopenblas.so.0
peer=${PEER:-openblas}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export NETCL_CACHE_DIR=$work/cache POCL_CACHE_DIR=$work/pocl
unset NETCL_PLUGIN_PATH OPENBLAS_CORETYPE OPENBLAS_L2_SIZE OPENBLAS_NUM_THREADS OMP_NUM_THREADS
install() { # PACKAGES...
  dpkg -s "$@" >/dev/null 2>&1 || { apt-get update && apt-get install -y "$@"; } >&2
}
# product M K N TRANSPOSE_A TRANSPOSE_B CALLS REPEATS: prints the peer's time
case $peer in
  openblas)
    target=0.95
    install libopenblas0-openmp
    gcc -O2 -o "$work/blas_product" "$files/blas_product.c" -ldl
    product() { "$work/blas_product" "$library" "$threads" "$@"; }
    ;;
  clblast)
    target=4
    install libclblast-dev clblast-utils opencl-headers ocl-icd-opencl-dev
    gcc -O2 -o "$work/clblast_product" "$files/clblast_product.c" -lclblast -lOpenCL
    (cd "$work" && timeout "${TUNE:-300}" clblast_tuner_xgemm -m 512 -n 512 -k 512 -runs 1 >tuner || true)
    read -ra tuned <<<"$(python3 -B "$files/tuned_xgemm.py" <"$work/tuner")"
    echo "CLBlast's Xgemm, tuned: ${tuned[*]}"
    product() {
      { "$work/clblast_product" "$@" && "$work/clblast_product" "$@" "${tuned[@]}"; } | sort -g | head -n 1
    }
    ;;
  *)
    echo "cpu_matmul.sh: PEER is $peer; expected openblas or clblast" >&2
    exit 2
    ;;
esac

netcl() { # ARGUMENTS...: one product; prints its time
  "$prefix/bin/netcl-app" bench op --op matmul "${question[@]}" --device cpu:0 --no-tuned --json \
    "$@" | python3 -c "import json, sys; print(json.load(sys.stdin)['results'][0]['time_us'])"
}
median() { # FILE
  sort -g "$1" | sed -n "$(((rounds + 1) / 2))p"
}

passed=0
failed=0
printf '%-16s %-5s %12s %12s %9s %9s %6s\n' M,K,N form 'netcl us' "$peer us" GFLOP/s GFLOP/s ratio
for shape in "${shapes[@]}"; do
  IFS=, read -r m k n <<<"$shape"
  # 2 M N K operations at some 400 GFLOP/s.
  calls=$((4000000000 / (m * k * n) + 1))
  [ "$calls" -le 400 ] || calls=400
  for form in ${FORMS:-NN NT TN TT}; do
    ta=0 tb=0 a=$m,$k b=$k,$n
    if [ "${form:0:1}" = T ]; then ta=1 a=$k,$m; fi
    if [ "${form:1:1}" = T ]; then tb=1 b=$n,$k; fi
    question=(--shape "$a" --shape "$b" --attr "transpose_a=$ta" --attr "transpose_b=$tb")
    netcl --repeats 1 >"$work/checked"
    : >"$work/ours"
    : >"$work/theirs"
    for _ in $(seq "$rounds"); do
      netcl --unchecked --repeats 9 --calls "$calls" >>"$work/ours"
      product "$m" "$k" "$n" $ta $tb "$calls" 9 >>"$work/theirs"
    done
    ours=$(median "$work/ours") theirs=$(median "$work/theirs")
    line=$(python3 -c "
ours, theirs, work = $ours, $theirs, 2e-3 * $m * $k * $n
ratio = theirs / ours
print(f'{ours:12.1f} {theirs:12.1f} {work / ours:9.0f} {work / theirs:9.0f} {ratio:6.3f}'
      + ('' if ratio >= $target else '  below $target'))")
    case $line in *below*) failed=$((failed + 1)) ;; *) passed=$((passed + 1)) ;; esac
    printf '%-16s %-5s %s\n' "$shape" $form "$line"
  done
done
echo "$passed passed, $failed failed"
[ "$failed" -eq 0 ]
