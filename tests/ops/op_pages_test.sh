#!/bin/bash
# The op pages of kernels/README.md are those that the op table gives.
# Usage: op_pages_test.sh [--update] README.md OP_PAGES VARIANTS.json...
set -euo pipefail
update=0
if [ "$1" = --update ]; then
  update=1
  shift
fi
readme=$1 pages=$2
shift 2
wanted=$(mktemp)
trap 'rm -f "$wanted"' EXIT
{
  sed '/^<!-- op pages -->$/q' "$readme"
  "$pages" "$@"
} >"$wanted"
grep -q '^<!-- op pages -->$' "$readme" || {
  echo "$readme: there is no line <!-- op pages -->" >&2
  exit 1
}
if [ "$update" = 1 ]; then
  cat "$wanted" >"$readme"
elif ! diff -u "$readme" "$wanted" >&2; then
  echo "kernels/README.md does not show the op table as it is: run kernels/update_pages.sh" >&2
  exit 1
fi
