#!/usr/bin/env bash
# Unit tests of the lint's rules.
set -euo pipefail
cd tests/lint
exec python3 -B lint_rules_test.py
