#!/usr/bin/env bash
# netcl's all-reduce beside two concurrent memcpys, Open MPI and Gloo, on two processors.
#
#   allreduce_peers.sh [BYTES...]     default: 4 KiB, 64 KiB, 1 MiB, 64 MiB
#
# Builds netcl's side with Bazel, Open MPI's with mpicc and Gloo's from PyPI; what is missing is
# installed (apt-get as root; programs and a virtual environment in PEERS, default: netcl-peers in the
# user's cache directory).
# All run in turn, ROUNDS times (default 7) with INNER timed rounds each (default 5); the table has
# medians over all. Times of netcl and Open MPI include the copies between device and host, Gloo's
# do not. On a machine with other work, `chrt -f 5 allreduce_peers.sh` (root) keeps that off the
# processors while something is timed. With OUT the times stay there, one file for each. NO_GLOO=1
# leaves Gloo out (its download has some gigabytes).
set -euo pipefail
cd "$(dirname "$0")/../.."
sizes=("$@")
[ ${#sizes[@]} -gt 0 ] || sizes=(4096 65536 1048576 67108864)
rounds=${ROUNDS:-7}
inner=${INNER:-5}
peers=${PEERS:-${XDG_CACHE_HOME:-$HOME/.cache}/netcl-peers}
mkdir -p "$peers"

bazel build //tests/bench/allreduce:ranks //plugins:dir >&2
if ! command -v mpicc >/dev/null; then
  apt-get update >&2 && apt-get install -y openmpi-bin libopenmpi-dev >&2
fi
mpicc -O2 -o "$peers/mpi_ranks" tests/bench/allreduce/mpi_ranks.c
gcc -O2 -o "$peers/memcpys" tests/bench/allreduce/memcpys.c
python=${PYTHON:-$peers/venv/bin/python}
if [ "${NO_GLOO:-0}" != 1 ] && ! "$python" -c 'import torch' 2>/dev/null; then
  python3 -m venv "$peers/venv"
  "$peers/venv/bin/pip" install --quiet torch numpy >&2
  python=$peers/venv/bin/python
fi

if [ -n "${OUT:-}" ]; then
  work=$OUT
  mkdir -p "$work"
else
  work=$(mktemp -d)
  trap 'rm -rf "$work"' EXIT
fi
mpi=(mpirun -np 2 --bind-to core)
if [ "$(id -u)" -eq 0 ]; then mpi+=(--allow-run-as-root); fi
columns=("netcl=$work/netcl" "memcpys=$work/memcpys" "Open MPI=$work/mpi")
if [ "${NO_GLOO:-0}" != 1 ]; then columns+=("Gloo=$work/gloo"); fi
for ((i = 0; i < rounds; ++i)); do
  echo "round $((i + 1)) of $rounds, load $(cut -d' ' -f1 /proc/loadavg)" >&2
  bazel-bin/tests/bench/allreduce/ranks --plugins bazel-bin/plugins/dir --devices cpu:0/2 \
    --rounds "$inner" "${sizes[@]}" >>"$work/netcl"
  "$peers/memcpys" "$inner" "${sizes[@]}" >>"$work/memcpys"
  "${mpi[@]}" "$peers/mpi_ranks" "$inner" "${sizes[@]}" >>"$work/mpi"
  if [ "${NO_GLOO:-0}" != 1 ]; then
    "$python" tests/bench/allreduce/gloo_ranks.py "$inner" "${sizes[@]}" >>"$work/gloo"
  fi
done
python3 tests/bench/allreduce/table.py "${columns[@]}"
