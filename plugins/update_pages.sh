#!/bin/bash
# Writes plugins/abi.md from the header of the boundary.
set -euo pipefail
cd "$(dirname "$0")/.."
python3 tests/plugins/abi_page.py --update plugins/abi.md core/abi/netcl_plugin.h
