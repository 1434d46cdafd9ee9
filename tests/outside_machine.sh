#!/usr/bin/env bash
# Proves that plugins can be written, built and checked with g++, make and the archive alone.
#
#   tests/outside_machine.sh ARCHIVE      bazel build //:dist makes bazel-bin/netcl-dist.tar.gz
#
# In a Debian 12 chroot made for it, with g++, make and PoCL as a device, in an empty directory: each
# kind of plugin that `plugins new` writes, and each of the archive's examples, is built and passes its
# check; the layer is then installed and trained by name. CLBlast is installed for its example only.
# Needs root and debootstrap; takes some 10 minutes and leaves nothing behind. Exit status: 0 only if
# every command succeeded.
set -euo pipefail
archive=$(readlink -f "${1:?usage: outside_machine.sh ARCHIVE}")
[ -f "$archive" ] || {
  echo "outside machine: $archive is no file; bazel build //:dist makes it" >&2
  exit 2
}
cd "$(dirname "${BASH_SOURCE[0]}")/.."
readonly NAME="outside machine"
. tests/chroot.sh

started=$SECONDS
step "debootstrap"
make_chroot ca-certificates,g++,make,pocl-opencl-icd,ocl-icd-libopencl1
took "a system with g++, make and PoCL" "$started"
inside '! command -v cmake && ! command -v python3 && ! command -v bazel' || refuse "the chroot is not bare"
mkdir -p "$root/srv/empty"
cp "$archive" "$root/srv/netcl-dist.tar.gz"

passed=0
failed=0
in_empty() { # COMMAND LINE: in the empty directory, with netcl-app in PATH
  echo "\$ $1"
  if inside "cd /srv/empty && PATH=\$PATH:/srv/empty/netcl/bin && $1"; then
    passed=$((passed + 1))
  else
    echo "$NAME: FAILED: $1"
    failed=$((failed + 1))
  fi
}

in_empty "mkdir netcl && tar -xzf ../netcl-dist.tar.gz -C netcl"
in_empty "netcl-app devices"
for kind in kernels layer transport; do
  in_empty "netcl-app plugins new $kind my_$kind"
  in_empty "make -C my_$kind check"
done
in_empty "make -C my_layer install"
in_empty "netcl-app plugins inspect my_layer"
in_empty "netcl-app train my_layer/check.json --devices cpu:0 --quiet"
in_empty "make -C netcl/share/netcl/examples/plugins/fused_layer check"
in_empty "make -C netcl/share/netcl/examples/plugins/tcp_transport check"
step "CLBlast"
inside "apt-get update -qq && apt-get install -qq -y --no-install-recommends libclblast-dev" \
  >"$work/apt.log" 2>&1 || {
  tail -n 30 "$work/apt.log" >&2
  refuse "libclblast-dev cannot be installed"
}
in_empty "make -C netcl/share/netcl/examples/plugins/clblast check"

echo "$NAME: $((SECONDS - started)) s, $(downloaded) MB of packages"
echo "$passed passed, $failed failed"
[ "$failed" -eq 0 ]
