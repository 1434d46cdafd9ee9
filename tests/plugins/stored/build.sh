#!/usr/bin/env bash
# Compiles the plugins that are stored for one version of the boundary: a layer, a kernel set and a
# transport, as the tree had them in a revision that has this version.
#
#   tests/plugins/stored/build.sh MINOR REVISION     writes tests/plugins/stored/0.MINOR
#
# What is stored must stay as it is: it stands for what others have built. Run this once for a
# version, before the next one is begun. The versions so far:
#   0.1 28d84e0^    0.2 aac9f95^    0.3 7a46461
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"
minor=$1 revision=$2
out=$PWD/0.$minor
[ ! -e "$out" ] || { echo "$out exists; stored plugins do not change" >&2; exit 1; }
libraries=
tree=$(mktemp -d)
trap 'git worktree remove --force "$tree/netcl"; rm -rf "$tree"' EXIT
git worktree add -q --detach "$tree/netcl" "$revision"
old=$tree/netcl
flags=(-std=c++17 -Os -s -fPIC -shared -fvisibility=hidden -fno-gnu-unique -ffp-contract=off
  -DCL_TARGET_OPENCL_VERSION=120 "-Wl,--version-script=$old/plugins/exports.lds" -I"$old" -I"$old/core/abi")

plugin() { # ID KIND PROVIDES VERSION SOURCES...
  local id=$1 kind=$2 provides=$3 version=$4
  shift 4
  mkdir -p "$out/$id"
  g++ "${flags[@]}" -o "$out/$id/lib$id.so" "$@" -ldl $libraries
  chmod 644 "$out/$id/lib$id.so"
  cat >"$out/$id/plugin.json" <<J
{
  "manifest": "netcl-plugin/1",
  "id": "$id",
  "version": "$version",
  "kinds": ["$kind"],
  "library": {"linux-x86_64": "lib$id.so"},
  "abi": {"major": 0, "minor": $minor},
  "provides": [$provides]
}
J
}
plugin example layer '{"layer": "example.scaled_tanh"}' 1.0.0 "$old/tests/plugins/outside/scaled_tanh.cc"
plugin stored_kernels kernels '{"op": "relu", "dtypes": ["f32"], "priority": 5}' 1.0.0 kernels.cc
if [ -d "$old/plugins/templates/transport" ]; then # the skeleton of a transport, with its name in it
  mkdir "$tree/skeleton"
  for file in "$old"/plugins/templates/transport/*.cc "$old"/plugins/templates/transport/*.h.in; do
    sed 's/@NAME@/stored/g' "$file" >"$tree/skeleton/$(basename "${file%.in}")"
  done
  plugin stored transport '{"transport": "stored"}' 0.1.0 "$tree"/skeleton/*.cc
else
  libraries=-lOpenCL
  plugin host transport '{"transport": "host"}' 1.0.0 "$old"/plugins/transport/host/*.cc
fi
ls -l "$out"/*/*.so
