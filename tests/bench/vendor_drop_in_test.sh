#!/usr/bin/env bash
# The short form of vendor_drop_in.sh: three rounds of each kind.
set -euo pipefail
prefix=$TEST_TMPDIR/netcl
mkdir "$prefix"
tar -xzf netcl-dist.tar.gz -C "$prefix"
exec "$(dirname "$0")/vendor_drop_in.sh" "$prefix" 3
