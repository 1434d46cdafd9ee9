#!/usr/bin/env bash
# Installs every Debian package that netcl's build, tests and main job need (Debian 12).
# Run as root, or as a user who may use sudo; running it again changes nothing.
set -euo pipefail

packages=(
  # build
  bazel-bootstrap bazel-rules-java bazel-rules-proto bazel-platforms
  g++ make python3 python-is-python3 git ca-certificates
  # libraries
  opencl-headers opencl-clhpp-headers ocl-icd-opencl-dev
  libboost-dev libboost-filesystem-dev libboost-system-dev
  nlohmann-json3-dev libcli11-dev zlib1g-dev libmbedtls-dev
  # run time and tests: an OpenCL device on any CPU, and a checker of kernels
  ocl-icd-libopencl1 pocl-opencl-icd oclgrind libgtest-dev
  # plugins from outside: a vendor's library, another compiler; a library for a kernel set
  libclblast-dev clang libopenblas0-openmp
  # compilers for kernel sets whose devices are not here: AMD's newer GPUs, Intel's (ocloc)
  clang-19 intel-opencl-icd
)

missing=()
for package in "${packages[@]}"; do
  state=$(dpkg-query -W -f='${db:Status-Status}' "$package" 2>/dev/null || true)
  [ "$state" = installed ] || missing+=("$package")
done
if [ ${#missing[@]} -eq 0 ]; then
  echo "dependencies: all ${#packages[@]} packages are installed"
  exit 0
fi

as_root=()
if [ "$(id -u)" -ne 0 ]; then
  if ! command -v sudo >/dev/null; then
    echo "dependencies: these packages are missing: ${missing[*]}" >&2
    echo "dependencies: run this script as root, or install sudo" >&2
    exit 1
  fi
  as_root=(sudo)
fi
echo "dependencies: installing ${missing[*]}"
"${as_root[@]}" apt-get update -q
"${as_root[@]}" env DEBIAN_FRONTEND=noninteractive \
  apt-get install -y -q --no-install-recommends "${missing[@]}"
