#!/bin/bash
# Writes the tables of layers at the end of apps/README.md from the plugins.
set -euo pipefail
cd "$(dirname "$0")/.."
bazel build //apps:netcl-app //plugins:dir
python3 tests/apps/layer_pages.py --update apps/README.md bazel-bin/apps/netcl-app
